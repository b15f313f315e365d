"""The page as HTML, with the certificate, the label and the rest of its record inside; and back."""

from __future__ import annotations

import json
import re
from typing import Any

from lastiterate.errors import InvalidInput
from lastiterate.report.content import content
from lastiterate.report.layout import framed
from lastiterate.report.sheet import FORMAT, ReportSheet, checked_sheet

_ELEMENT = '<script type="application/json" id="{}">'
_UNSAFE = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"})


def page_of(sheet: ReportSheet) -> str:
    """The same text for the same sheet."""
    held = {"certificate": sheet.certificate, "label": sheet.label, "record": sheet.record}
    return framed(
        "Differential privacy report", [*content(sheet), *(_element(name, one) for name, one in held.items())]
    )


def _element(name: str, value: Any) -> str:
    """Without a letter that could end the element, whatever the strings in it say."""
    return f"{_ELEMENT.format(name)}{json.dumps(value).translate(_UNSAFE)}</script>"


def sheet_in(page: str) -> ReportSheet:
    """What the page says that it is made of."""
    record = _held(page, "record")
    if record["format"] != FORMAT:
        raise InvalidInput(f"it is not a {FORMAT}. Make the page again with this version.")
    names = ("version", "date", "shown", "stated", "digests")
    return checked_sheet(ReportSheet(_held(page, "certificate"), **{name: record[name] for name in names}))


def _held(page: str, name: str) -> Any:
    found = re.findall(f"^{re.escape(_ELEMENT.format(name))}(.*)</script>\\r?$", page, re.MULTILINE)
    if len(found) != 1:
        raise InvalidInput(f"it has {len(found)} elements named {name}, not one.")
    return json.loads(found[0])
