"""Timelines as SVG: bars and moments, a row for each name. Pure; no Spark."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Final

import msgspec

PALETTE: Final = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb8866", "#777777")

_CHARACTER_WIDTH: Final = 7.2
"""Width of a character of the labels' font in pixels, rounded up."""
_PLOT_WIDTH: Final = 820
_ROW_HEIGHT: Final = 24


class Bar(msgspec.Struct, frozen=True):
    """A period in a row of a timeline, in seconds since 1970. `series` decides the colour, `words` are the tooltip."""

    row: str
    begin: float
    end: float
    series: str
    words: str = ""
    label: str = ""
    """Printed inside the bar, if it fits."""


class Mark(msgspec.Struct, frozen=True):
    """A moment in a row; `words` are the tooltip."""

    row: str
    at: float
    words: str = ""


def colours(series: Iterable[str]) -> dict[str, str]:
    """A colour for each name, in order; after eight the colours repeat."""
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
    """The width in pixels of the longest of these names, with a margin."""
    return round(max(map(len, names), default=0) * _CHARACTER_WIDTH) + 16


def timeline(
    bars: Sequence[Bar],
    marks: Sequence[Mark],
    begin: float,
    end: float,
    colour_of: Mapping[str, str],
    left: int,
) -> str:
    """Bars and marks, a row for each name in the order of first use, with time from `begin` to `end`.

    The plot begins `left` pixels from the edge: `room_for` the names, the same in drawings that are compared.
    """
    rows = list(dict.fromkeys([bar.row for bar in bars] + [mark.row for mark in marks]))
    if not rows:
        return "<p class=none>Nothing to draw: no queue was read.</p>"
    span = max(end - begin, 0.001)
    height = len(rows) * _ROW_HEIGHT + 30
    top_of = {row: index * _ROW_HEIGHT + 4 for index, row in enumerate(rows)}

    def x(moment: float) -> float:
        return left + (min(max(moment, begin), end) - begin) / span * _PLOT_WIDTH

    drawing = [_axis(left, span, height)]
    drawing += [
        f'<text x="{left - 8}" y="{top_of[row] + 14}" text-anchor="end">{escape(row)}</text>' for row in rows
    ]
    drawing += [
        _rectangle(bar, lane, count, top_of[bar.row], x, colour_of)
        for bar, (lane, count) in zip(bars, _lanes(bars), strict=True)
    ]
    drawing += [
        f'<circle cx="{x(mark.at):.1f}" cy="{top_of[mark.row] + 9}" r="4" fill="none" stroke="currentColor" '
        f'stroke-width="1.6"><title>{escape(mark.words)}</title></circle>'
        for mark in marks
    ]
    width = left + _PLOT_WIDTH + 20
    return (
        f'<div class=wide><svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
        + "".join(drawing)
        + "</svg></div>"
    )


def _rectangle(
    bar: Bar, lane: int, count: int, top: int, x: Callable[[float], float], colour_of: Mapping[str, str]
) -> str:
    tall, begin, end = (_ROW_HEIGHT - 6) / count, x(bar.begin), x(bar.end)
    drawn = (
        f'<rect x="{begin:.1f}" y="{top + lane * tall:.1f}" rx="2" height="{tall - 1:.1f}" '
        f'width="{max(end - begin, 2):.1f}" fill="{colour_of.get(bar.series, PALETTE[-1])}">'
        f"<title>{escape(bar.words or bar.series)}</title></rect>"
    )
    if not bar.label or count > 1 or len(bar.label) * _CHARACTER_WIDTH > end - begin:
        return drawn
    return (
        f'{drawn}<text class="in" x="{(begin + end) / 2:.1f}" y="{top + (lane + 0.5) * tall + 4:.1f}" '
        f'text-anchor="middle">{escape(bar.label)}</text>'
    )


def _lanes(bars: Sequence[Bar]) -> list[tuple[int, int]]:
    """(lane, lanes of its row) of each bar: overlapping bars of one row are drawn above each other."""
    ends: dict[str, list[float]] = {}
    lane_of: dict[int, int] = {}
    for index in sorted(range(len(bars)), key=lambda index: bars[index].begin):
        bar = bars[index]
        lanes = ends.setdefault(bar.row, [])
        free = next((lane for lane, end in enumerate(lanes) if end <= bar.begin), len(lanes))
        lanes[free : free + 1] = [bar.end]
        lane_of[index] = free
    return [(lane_of[index], len(ends[bar.row])) for index, bar in enumerate(bars)]


def _axis(left: int, span: float, height: int) -> str:
    """Grid lines at even steps, labelled with the time since the beginning."""
    step = next(
        step
        for step in (0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 14400, 86400, 1e9)
        if span / step <= 12
    )
    drawing = []
    size, unit = (1, "s") if span < 120 else (60, "min") if span < 7200 else (3600, "h")
    for count in range(int(span / step) + 1):
        x = left + count * step / span * _PLOT_WIDTH
        drawing.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 24}"/>')
        drawing.append(
            f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{count * step / size:g} {unit}</text>'
        )
    return "".join(drawing)
