"""The command `lastiterate verify`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from lastiterate.certificate.verdict import PageVerdict, Request, Verdict, rejected
from lastiterate.certificate.verify import is_page, verdict_on
from lastiterate.cli.show import show
from lastiterate.errors import InvalidInput
from lastiterate.report.digests import digests_in, disagreement
from lastiterate.runs.files import read_run, read_text

_REJECTED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("certificate", help="certificate, trained model, or report (.html or .json)")
    parser.add_argument("--run", metavar="FILE", help="reject it unless it describes this run")
    parser.add_argument("--model", metavar="FILE", help="reject a report of another released model")
    parser.add_argument("--data", metavar="FILE", help="reject a report of other training data")
    parser.add_argument("--data-key", metavar="FILE", help="with --data, secret key that the report was written with")


def answer(options: argparse.Namespace) -> int:
    content = _read(options.certificate)
    verdict = verdict_on(content, Request(read_run(options.run) if options.run else None, str(options.run)))
    if verdict.accepted and (options.model or options.data):
        verdict = _of_files(verdict, content, options)
    show(options, verdict.to_dict(), str(verdict))
    return 0 if verdict.accepted else _REJECTED


def _read(path: str) -> Any:
    text = read_text(path)
    if is_page(text):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("verified_file_not_json", path=path, reason=str(error)) from error


def _of_files(verdict: Verdict, content: Any, options: argparse.Namespace) -> Verdict:
    """Return the verdict, rejected if the report was written with another model or other data."""
    found = dict(verdict.digests) if isinstance(verdict, PageVerdict) else digests_in(content)
    reason = disagreement(found, options.model, options.data, options.data_key)
    return rejected(reason) if reason else verdict
