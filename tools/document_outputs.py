"""Runs the Python blocks of documents, and writes what they print into the text blocks that follow them.

`python tools/document_outputs.py docs/start.md README.md` after a change of what is printed; the tests compare the two.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def printed_and_shown(text: str) -> Iterator[tuple[str, str | None, re.Match[str]]]:
    """What each block of Python prints, what the document shows for it (None: nothing), and the last block of the two."""
    # Without a name, whoever pickles a function of it would look for the function in all modules that are loaded.
    namespace: dict[str, object] = {"__name__": "__main__"}
    waiting: tuple[str, re.Match[str]] | None = None
    for block in BLOCK.finditer(text):
        if block[1] == "python":
            if waiting:
                yield waiting[0], None, waiting[1]
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(block[2], "document", "exec"), namespace)
            waiting = (output.getvalue(), block)
        elif block[1] == "text" and waiting:
            yield waiting[0], block[2], block
            waiting = None
    if waiting:
        yield waiting[0], None, waiting[1]


def rewritten(text: str) -> str:
    """The document with fresh outputs."""
    parts, end = [], 0
    for printed, shown, block in printed_and_shown(text):
        if shown is not None:
            parts += [text[end : block.start()], f"```text\n{printed}```"]
            end = block.end()
        elif printed:
            raise SystemExit(f"a text block is missing after:\n{block[2]}")
    return "".join([*parts, text[end:]])


if __name__ == "__main__":
    os.chdir(ROOT)
    (ROOT / "out").mkdir(exist_ok=True)
    for name in sys.argv[1:]:
        before = Path(name).read_text()
        after = rewritten(before)
        Path(name).write_text(after)
        print(name, "changed" if after != before else "as it was")
