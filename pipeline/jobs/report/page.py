"""One self-contained HTML file: headings, tables, timelines as SVG. No script, no network, no Spark.

The colours are a palette that colour-blind readers can tell apart, and every bar has a tooltip. The page follows the
reader's light or dark setting.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from .cells import LONG, are_numbers, column_title, format_value, shared_columns, shared_values_line

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #ffffff; --line: #d7dce3; --soft: #f3f5f8; --bad: #b3261e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --paper: #14181e; --line: #353c47; --soft: #1d232c; --bad: #ff8a80 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 1320px; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line) }
h3 { margin-bottom: .4rem } p.lead { margin-top: 0; opacity: .75 } p.none { opacity: .6; font-style: italic }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0 }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; text-align: left; white-space: nowrap }
th { background: var(--soft); font-weight: 600; white-space: normal; vertical-align: bottom }
.number { text-align: right } td.long { white-space: normal; min-width: 18rem; overflow-wrap: anywhere }
div.wide { overflow-x: auto }
ul.findings li { color: var(--bad) } svg text { fill: var(--ink); font: 12px system-ui, sans-serif }
svg text.in { fill: #fff; stroke: #1c2430; stroke-width: 2.5; paint-order: stroke; pointer-events: none }
svg .grid { stroke: var(--line) } .legend span { display: inline-block; margin-right: 1.2rem }
.legend i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px }
"""


def page(title: str, lead: str, sections: Iterable[str]) -> str:
    """The whole document."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1><p class=lead>{escape(lead)} Made {made}.</p>"
        + "".join(sections)
        + "</html>\n"
    )


def heading(text: str, level: int = 2) -> str:
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def findings(texts: Sequence[str]) -> str:
    """The findings as a list, or the line that there are none."""
    if not texts:
        return "<p class=none>Nothing found.</p>"
    return "<ul class=findings>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows under a row of titles; numbers are aligned right.

    A text or time that all rows share is printed once, above.
    """
    if not rows:
        return "<p class=none>No rows.</p>"
    shared = shared_columns(rows)
    names = [name for name in rows[0] if name not in shared]
    above = f"<p class=lead>{escape(shared_values_line(rows, shared))}</p>" if shared else ""
    numbers = {name for name in names if are_numbers([row.get(name) for row in rows])}
    head = "".join(
        f"<th{' class=number' if name in numbers else ''}>{escape(column_title(name))}</th>" for name in names
    )
    body = "".join(
        "<tr>" + "".join(_cell(row.get(name), is_right=name in numbers) for name in names) + "</tr>"
        for row in rows
    )
    return f"{above}<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(value: Any, *, is_right: bool) -> str:
    text = format_value(value)
    kind = " class=number" if is_right else " class=long" if len(text) > LONG else ""
    return f"<td{kind}>{escape(text)}</td>"
