"""An executed notebook as a page of the site, with its pictures and a link to the notebook itself."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter
from traitlets.config import Config

SHOWN = Config({"NbConvertBase": {"display_data_priority": ["text/html", "image/png", "text/plain"]}})


def pages(notebook: Path) -> dict[str, str | bytes]:
    """The page and its pictures, by their paths beside the notebook."""
    name = notebook.stem
    resources = {"unique_key": name, "output_files_dir": "."}
    body, found = MarkdownExporter(config=SHOWN).from_notebook_node(nbformat.read(notebook, as_version=4), resources)
    title, _, rest = body.partition("\n")
    link = f"[Download this notebook]({notebook.name}); `make notebooks` executes it."
    return {f"{name}.md": f"{title}\n\n{link}\n{rest}", **found["outputs"]}
