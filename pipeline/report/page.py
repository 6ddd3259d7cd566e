"""One HTML file with everything in it: headings, tables, timelines as SVG. No script, no network, no Spark.

Colours are those of a palette that colour-blind readers can tell apart, and every bar has its words in a tooltip as
well. It follows the reader's light or dark setting.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

import msgspec

PALETTE: Final = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb8866", "#777777")
_CHARACTER_WIDTH: Final = 7.2
"""Of the labels' font, on the wide side of what browsers choose."""
_PLOT_WIDTH: Final = 820
_ROW_HEIGHT: Final = 24
LONG: Final = 44
"""Characters of a cell, from which on it may be broken into lines."""
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


class Bar(msgspec.Struct, frozen=True):
    """A stretch of time in a row of a timeline. `series` decides the colour; seconds since 1970."""

    row: str
    begin: float
    end: float
    series: str
    words: str = ""
    label: str = ""
    """Stands inside, where there is room."""


class Mark(msgspec.Struct, frozen=True):
    """A moment in a row."""

    row: str
    at: float
    words: str = ""


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
    """What needs somebody's eye, or that nothing does."""
    if not texts:
        return "<p class=none>Nothing found.</p>"
    return "<ul class=findings>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows with a head; numbers stand right. A text or time that all rows share stands once, above them."""
    if not rows:
        return "<p class=none>No rows.</p>"
    shared = shared_columns(rows, columns)
    names = [name for name in columns or rows[0] if name not in shared]
    above = f"<p class=lead>{escape(told_once(rows, shared))}</p>" if shared else ""
    numbers = {name for name in names if _are_numbers([row.get(name) for row in rows])}
    head = "".join(
        f"<th{' class=number' if name in numbers else ''}>{escape(words(name))}</th>" for name in names
    )
    body = "".join(
        "<tr>" + "".join(_cell(row.get(name), is_right=name in numbers) for name in names) + "</tr>"
        for row in rows
    )
    return f"{above}<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def shared_columns(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> list[str]:
    """The columns in which all of several rows have the same text or time; none where that is all columns."""
    names = list(columns or rows[0])
    shared = [name for name in names if len(rows) > 1 and _is_shared([row.get(name) for row in rows])]
    return shared if len(shared) < len(names) else []


def told_once(rows: Sequence[Mapping[str, Any]], shared: Sequence[str]) -> str:
    """The sentence about what all rows share."""
    return f"All rows: {', '.join(f'{words(name)} {shown(rows[0][name])}' for name in shared)}."


def _is_shared(values: Sequence[Any]) -> bool:
    is_text = values[0] is None or isinstance(values[0], str | datetime)
    return is_text and all(value == values[0] for value in values)


def words(name: str) -> str:
    """messagesPerSecond as words, which can be broken."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])", " ", name).lower()


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_numbers(values: Sequence[Any]) -> bool:
    return any(map(is_number, values)) and all(value is None or is_number(value) for value in values)


def _cell(value: Any, *, is_right: bool) -> str:
    text = shown(value)
    kind = " class=number" if is_right else " class=long" if len(text) > LONG else ""
    return f"<td{kind}>{escape(text)}</td>"


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return str(value)


def colours(series: Iterable[str]) -> dict[str, str]:
    """A colour for each name, in the order given; after eight they come again."""
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(dict.fromkeys(series))}


def legend(colour_of: Mapping[str, str]) -> str:
    return (
        '<p class="legend">'
        + "".join(
            f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
            for name, colour in colour_of.items()
        )
        + "</p>"
    )


def room_for(names: Iterable[str]) -> int:
    """Pixels that the longest of these names takes beside a drawing."""
    return round(max(map(len, names), default=0) * _CHARACTER_WIDTH) + 16


def timeline(
    bars: Sequence[Bar],
    marks: Sequence[Mark],
    begin: float,
    end: float,
    colour_of: Mapping[str, str],
    left: int,
) -> str:
    """Bars and moments, a row for each name in the order of their first mention; time from `begin` to `end`, which
    stands `left` pixels from the edge: `room_for` the names, the same in drawings that are to be compared."""
    rows = list(dict.fromkeys([bar.row for bar in bars] + [mark.row for mark in marks]))
    if not rows:
        return "<p class=none>Nothing to draw: no queue was read.</p>"
    span = max(end - begin, 0.001)
    height = len(rows) * _ROW_HEIGHT + 30
    place = {row: index * _ROW_HEIGHT + 4 for index, row in enumerate(rows)}

    def x(moment: float) -> float:
        return left + (min(max(moment, begin), end) - begin) / span * _PLOT_WIDTH

    drawn = [_axis(left, span, height)]
    drawn += [
        f'<text x="{left - 8}" y="{place[row] + 14}" text-anchor="end">{escape(row)}</text>' for row in rows
    ]
    drawn += [
        _rectangle(bar, lane, count, place[bar.row], x, colour_of)
        for bar, (lane, count) in zip(bars, _lanes(bars), strict=True)
    ]
    drawn += [
        f'<circle cx="{x(mark.at):.1f}" cy="{place[mark.row] + 9}" r="4" fill="none" stroke="currentColor" '
        f'stroke-width="1.6"><title>{escape(mark.words)}</title></circle>'
        for mark in marks
    ]
    width = left + _PLOT_WIDTH + 20
    return (
        f'<div class=wide><svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
        + "".join(drawn)
        + "</svg></div>"
    )


def _rectangle(
    bar: Bar, lane: int, count: int, top: int, x: Callable[[float], float], colour_of: Mapping[str, str]
) -> str:
    tall = (_ROW_HEIGHT - 6) / count
    return (
        f'<rect x="{x(bar.begin):.1f}" y="{top + lane * tall:.1f}" rx="2" height="{tall - 1:.1f}" '
        f'width="{max(x(bar.end) - x(bar.begin), 2):.1f}" fill="{colour_of.get(bar.series, PALETTE[-1])}">'
        f"<title>{escape(bar.words or bar.series)}</title></rect>"
        + _label(
            bar,
            (x(bar.begin) + x(bar.end)) / 2,
            top + (lane + 0.5) * tall + 4,
            x(bar.end) - x(bar.begin),
            count,
        )
    )


def _label(bar: Bar, middle: float, bottom: float, room: float, lanes: int) -> str:
    if not bar.label or lanes > 1 or len(bar.label) * _CHARACTER_WIDTH > room:
        return ""
    return (
        f'<text class="in" x="{middle:.1f}" y="{bottom:.1f}" text-anchor="middle">{escape(bar.label)}</text>'
    )


def _lanes(bars: Sequence[Bar]) -> list[tuple[int, int]]:
    """(lane, lanes of its row) of each bar: bars of one row that overlap lie above each other."""
    ends: dict[str, list[float]] = {}
    lane_of: dict[int, int] = {}
    for index in sorted(range(len(bars)), key=lambda one: bars[one].begin):
        bar = bars[index]
        lanes = ends.setdefault(bar.row, [])
        free = next((lane for lane, end in enumerate(lanes) if end <= bar.begin), len(lanes))
        lanes[free : free + 1] = [bar.end]
        lane_of[index] = free
    return [(lane_of[index], len(ends[bar.row])) for index, bar in enumerate(bars)]


def _axis(left: int, span: float, height: int) -> str:
    """A line every so often, with the time since the beginning in one unit."""
    step = next(
        step
        for step in (0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 14400, 86400, 1e9)
        if span / step <= 12
    )
    drawn = []
    size, unit = (1, "s") if span < 120 else (60, "min") if span < 7200 else (3600, "h")
    for count in range(int(span / step) + 1):
        x = left + count * step / span * _PLOT_WIDTH
        drawn.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 24}"/>')
        drawn.append(
            f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{count * step / size:g} {unit}</text>'
        )
    return "".join(drawn)
