"""A report in a file: the page to sign, or the same as JSON or as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lastiterate.certificate.replay import json_safe
from lastiterate.errors import InvalidInput
from lastiterate.report.digests import data_digest, digest_of, model_digest
from lastiterate.report.label import label_of
from lastiterate.report.page import page_of
from lastiterate.report.sheet import sheet_of
from lastiterate.runs.files import checked_path, write_text

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report

KINDS = (".html", ".json", ".txt")


def save(
    report: Report,
    path: str | Path,
    stated: dict[str, Any] | None,
    model: Any,
    data: Any,
    data_key: str | Path | None,
    data_is_public: bool,
    curves: bool,
) -> None:
    kind = checked_kind(path)
    digests = {} if model is None else {"model": model_digest(model)}
    if data is not None:
        digests["data"] = data_digest(data, data_key, data_is_public)
    sheet = sheet_of(report, stated or {}, digests, curves and kind == ".html")
    label_of(sheet.claimed, sheet.version, sheet.stated)  # what is stated wrongly is told before anything is written
    if kind == ".html":
        write_text(path, page_of(sheet))
    elif kind == ".json":
        content = {"report": report.to_dict(), "certificate": sheet.certificate, "label": sheet.label}
        written = {"version": sheet.version, "date": sheet.date, "digests": digests}
        write_text(path, json.dumps(json_safe(content | {"written": written}), indent=2) + "\n")
    else:
        named = [f"{name} {value}" for name, value in digests.items()]
        about = [f"lastiterate {sheet.version}, {sheet.date}", f"run sha256:{digest_of(sheet.certificate['run'])}"]
        write_text(path, "\n".join([report.details(), "", *about, *named]) + "\n")


def checked_kind(path: str | Path) -> str:
    """Return the ending of the file, or raise an error if no report can be written so."""
    kind = checked_path(path).suffix.lower()
    if kind not in KINDS:
        raise InvalidInput(
            f"{path} must end in {', '.join(KINDS[:-1])} or {KINDS[-1]}. Got {kind or 'no ending'!r}. "
            "For a PDF, open the .html in a browser and print it.",
            field="path",
        )
    return kind
