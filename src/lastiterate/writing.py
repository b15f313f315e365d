"""Files that are replaced as a whole: a full disk or a loss of power leaves the old one as it was."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def write_bytes(path: Path, content: bytes, *, mode: int | None = None, draft: Path | None = None) -> None:
    """Write a file beside the old one, on the disk before it takes its name: `path` holds all of the old or all of the new.

    A symbolic link keeps pointing to the file that is replaced, and that file keeps its permissions. What is no regular
    file, such as /dev/stdout, is written to as it is. With `draft`, the name to write to first, an older draft is removed,
    and `path` itself is replaced, even if it is a link. `mode`: the permissions of the file, old or new. Raises OSError; the
    draft is then removed.
    """
    if draft is None:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        path = path.resolve()
        draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    else:
        draft.unlink(missing_ok=True)  # whoever opened an older one keeps reading that
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is None and path.exists():
                os.chmod(draft, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; not every system lets folders be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
