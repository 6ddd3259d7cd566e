"""What `scale.py` measured, as bench/scale.json keeps it, and the tables of docs/scale.md that are made of it.

    python -m bench.scale_page     write the tables anew

A point is one figure: a row, a side, a size. The exponent of a row is the slope of the straight line through its points
when both axes are logarithmic: 0 costs the same at every size, 1 grows as the size does.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("scale.json")
DOCUMENT = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- made by make scale -->", "<!-- end -->"
OURS = "ours"
FLAT = 0.3
"""A row with a higher exponent is one of those that read or write everything."""


@dataclass(frozen=True)
class Point:
    """Microseconds, unless the row names another unit."""

    row: str
    side: str
    size: int
    value: float


@dataclass(frozen=True)
class Run:
    """One run of `scale.py`."""

    name: str
    """When it began, and the commit that was measured."""
    machine: str
    load_average: tuple[float, float]
    """At its begin and at its end."""
    points: tuple[Point, ...]
    processes: tuple[dict[str, float], ...] = ()
    """One broker and two: see `scale_servers.two_processes`."""


def write(run: Run, path: Path = RESULTS) -> None:
    path.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")


def read(path: Path = RESULTS) -> Run:
    values = json.loads(path.read_text(encoding="utf-8"))
    points = tuple(Point(**one) for one in values["points"])
    load = tuple(values["load_average"])
    return Run(**{**values, "points": points, "load_average": load, "processes": tuple(values["processes"])})


def exponent(points: Sequence[Point]) -> float:
    """The slope of the line of least squares through the logarithms."""
    at = [(math.log(one.size), math.log(max(one.value, 1e-3))) for one in points]
    x, y = (sum(values) / len(at) for values in zip(*at, strict=True))
    spread = sum((one - x) ** 2 for one, _ in at)
    return sum((one - x) * (other - y) for one, other in at) / spread if spread else 0.0


def rows_of(points: Iterable[Point]) -> dict[tuple[str, str], list[Point]]:
    """By row and side, in the order in which they were measured."""
    found: dict[tuple[str, str], list[Point]] = {}
    for one in points:
        found.setdefault((one.row, one.side), []).append(one)
    return found


def tables(run: Run) -> str:
    rows = rows_of(run.points)
    compared = {row for row, side in rows if side != OURS}
    alone = {row: points for (row, _), points in rows.items() if row not in compared}
    flat = {row: points for row, points in alone.items() if exponent(points) <= FLAT}
    parts = [
        f"Run of {run.name}, {run.machine}, load average {run.load_average[0]:.1f} at its begin and "
        f"{run.load_average[1]:.1f} at its end.",
        "### What stays the same\n\n" + _table(flat),
        "### What grows\n\n" + _table({row: points for row, points in alone.items() if row not in flat}),
    ]
    if compared:
        beside = {key: points for key, points in rows.items() if key[0] in compared}
        parts.append("### Beside official brokers\n\n" + _sides_table(beside))
    if run.processes:
        parts.append("### One broker and two\n\n" + _processes_table(run.processes))
    return "\n\n".join(parts)


def _table(rows: dict[str, list[Point]]) -> str:
    lines = [
        "| what, in microseconds if nothing else is said | sizes | cost at these sizes | exponent |",
        "|---|---|---|---|",
    ]
    for row, points in rows.items():
        lines.append(f"| {row} | {_sizes(points)} | {_values(points)} | {_slope(points)} |")
    return "\n".join(lines)


def _sides_table(rows: dict[tuple[str, str], list[Point]]) -> str:
    lines = [
        "| what, in microseconds if nothing else is said | broker | sizes | cost at these sizes | exponent |"
    ]
    lines.append("|---|---|---|---|---|")
    for (row, side), points in sorted(rows.items(), key=lambda item: item[0][0]):
        lines.append(f"| {row} | {side} | {_sizes(points)} | {_values(points)} | {_slope(points)} |")
    return "\n".join(lines)


def _processes_table(processes: Iterable[dict[str, float]]) -> str:
    lines = ["| brokers | load programs | sends/s | us a send | messages pulled/s | us a message |"]
    lines.append("|---|---|---|---|---|---|")
    lines += [
        f"| {one['brokers']} | {one['loaders']} | {one['sends_per_second']:,.0f} | {one['send_us']:.1f} | "
        f"{one['pulled_per_second']:,.0f} | {one['pulled_us']:.2f} |"
        for one in processes
    ]
    return "\n".join(lines)


def _slope(points: Sequence[Point]) -> str:
    return f"{round(exponent(points), 2) + 0.0:.2f}"  # no -0.00


def _sizes(points: Sequence[Point]) -> str:
    return " / ".join(f"{one.size:,}" for one in points)


def _values(points: Sequence[Point]) -> str:
    return " / ".join(f"{one.value:,.0f}" if one.value >= 100 else f"{one.value:.1f}" for one in points)


def replaced(document: str, made: str) -> str:
    """The document with the text between its two marks replaced; ValueError if a mark is missing."""
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document must hold the line {BEGIN!r} and after it {END!r}")
    return f"{head}{BEGIN}\n\n{made}\n\n{END}{tail}"


def update() -> None:
    """Write the tables of the newest run into the document."""
    text = replaced(DOCUMENT.read_text(encoding="utf-8"), tables(read()))
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update()
