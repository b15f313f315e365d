"""One page about all exhibits, complete in itself: a summary, then every picture with its numbers."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from lastiterate.reproduction import TITLES
from lastiterate.reproduction.exhibit import Claim, Entry, Setting

if TYPE_CHECKING:
    from lastiterate.reproduction.reproduce import Shown

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
:root {
  --ink: #1c1c1c; --paper: #ffffff; --soft: #f3f4f6; --line: #d0d3d8;
  --good: #176b2c; --fair: #8a5a00; --bad: #a3261b; --link: #0b57b0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e6e6; --paper: #16181b; --soft: #22252a; --line: #3c4148;
    --good: #7bd88f; --fair: #f0c060; --bad: #ff8f80; --link: #8ab8ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 72rem;
  font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
}
h1 { font-size: 1.6rem; }
h2 { font-size: 1.3rem; margin-top: 2.5rem; }
h3 { font-size: 1.05rem; margin-bottom: 0.3rem; }
p, dl, figcaption { overflow-wrap: anywhere; }
a { color: var(--link); }
.scroll { overflow: auto; max-height: 80vh; border: 1px solid var(--line); border-radius: 0.4rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { padding: 0.35rem 0.6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { background: var(--soft); position: sticky; top: 0; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.exhibit { white-space: nowrap; }
td.claim { min-width: 14rem; }
td.verdict { min-width: 12rem; }
figure { margin: 0.5rem 0 0; }
figure img { display: block; width: 100%; max-width: 60rem; min-width: 36rem; height: auto; background: #ffffff; }
.picture { overflow-x: auto; max-width: 60rem; border: 1px solid var(--line); border-radius: 0.4rem; }
figcaption { font-size: 0.9rem; margin-top: 0.3rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 0.8rem; font-size: 0.9rem; margin: 0.5rem 0; }
dt { font-weight: 600; }
dd { margin: 0; }
.REPRODUCED { color: var(--good); }
.CORRECTED { color: var(--fair); }
.NOT { color: var(--bad); }
.NOTHING, .NOT_MADE { opacity: 0.75; }
@media (max-width: 30rem) {
  th, td { padding: 0.3rem 0.4rem; }
  td.exhibit { white-space: normal; }
  td.claim { min-width: 10rem; }
}
</style>
</head>
<body>
<h1>$title</h1>
<p>$what, reproduced by lastiterate $version$quick: $counts. Where the paper prints no number, “paper” is its formula,
evaluated here. For an ε, δ, μ or ρ, “ours” is a proved upper bound and “lower bound” is an exact instance: the true value
lies between them. Errors in the papers: <code>lastiterate errata</code>.</p>
<h2 id="summary">Summary</h2>
<div class="scroll"><table>
<thead><tr><th>exhibit</th><th>quantity</th><th>paper</th><th>ours</th><th>lower bound</th><th>verdict</th></tr></thead>
<tbody>
$summary
</tbody></table></div>
$sections
</body>
</html>
""")
_ROW = Template(
    '<tr><td class="exhibit"><a href="#$key">$exhibit</a></td><td class="claim">$claim</td><td class="number">$printed</td>'
    '<td class="number">$ours</td><td class="number">$lower</td><td class="verdict $outcome">$verdict</td></tr>'
)
_SECTION = Template("""<section id="$key">
<h3>$heading</h3>
<p class="$outcome">$verdict</p>
$figure
<dl>$parameters</dl>
<p>Numbers: <a href="$key.csv">$key.csv</a>, computed in $seconds s</p>
</section>""")


def page(shown: Sequence[Shown], folder: Path, setting: Setting) -> str:
    """The page as HTML; pictures are read from the folder and put into it."""
    sections = []
    papers = list(dict.fromkeys(one.exhibit.paper for one in shown))
    for paper in papers:
        sections.append(f"<h2>{escape(TITLES[paper] if len(papers) > 1 else 'Figures and tables')}</h2>")
        sections += [_section(one, folder) for one in shown if one.exhibit.paper == paper]
    return _PAGE.substitute(
        title=escape(_title(shown)),
        what=escape(f"{len(shown)} figures, tables and examples" if len(shown) > 1 else shown[0].exhibit.called),
        version=version("lastiterate"),
        quick=" with --quick (coarser grids, fewer repetitions)" if setting.quick else "",
        counts=_counts(shown),
        summary="\n".join(row for one in shown for row in _rows(one)),
        sections="\n".join(sections),
    )


def _title(shown: Sequence[Shown]) -> str:
    """Of the paper, if all exhibits are from one."""
    papers = {one.exhibit.paper for one in shown}
    return f"{TITLES[papers.pop()]}, reproduced" if len(papers) == 1 else "Five papers, reproduced"


def _counts(shown: Sequence[Shown]) -> str:
    outcomes = [one.verdict.outcome.value for one in shown]
    return ", ".join(f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes))


def _rows(shown: Shown) -> list[str]:
    """One line for each claim, or one for the exhibit as such."""
    claims = shown.claims or (Claim(shown.exhibit.title),)
    return [_row(shown, claim, first=place == 0) for place, claim in enumerate(claims)]


def _row(shown: Shown, claim: Claim, first: bool) -> str:
    verdict = shown.verdict
    errata = f" ({', '.join(verdict.errata)})" if verdict.errata else ""
    return _ROW.substitute(
        key=shown.exhibit.key,
        exhibit=escape(f"{shown.exhibit.paper} {shown.exhibit.called}"),
        claim=escape(claim.text),
        printed=_text(claim.printed),
        ours=_text(claim.ours),
        lower=_text(claim.lower),
        outcome=verdict.outcome.name,
        verdict=escape(verdict.outcome.value + errata) if first else "",
    )


def _section(shown: Shown, folder: Path) -> str:
    exhibit = shown.exhibit
    return _SECTION.substitute(
        key=exhibit.key,
        heading=escape(f"{exhibit.called}: {exhibit.title}"),
        outcome=shown.verdict.outcome.name,
        verdict=escape(str(shown.verdict)),
        figure=_figure(shown, folder / f"{exhibit.key}.svg"),
        parameters="".join(f"<dt>{escape(name)}</dt><dd>{_text(value)}</dd>" for name, value in exhibit.parameters),
        seconds=f"{shown.seconds:.1f}",
    )


def _figure(shown: Shown, picture: Path) -> str:
    """As an image of its own: names inside one SVG would collide with those of the next."""
    if not picture.exists():
        return ""
    held = base64.b64encode(picture.read_bytes()).decode()
    caption = escape(shown.exhibit.title)
    return (
        f'<figure><div class="picture"><img alt="{caption}" src="data:image/svg+xml;base64,{held}"></div>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _text(value: Entry) -> str:
    """Five digits; thousands are written out."""
    if isinstance(value, float):
        return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.5g}"
    return "" if value is None else escape(str(value))
