"""The lines of bench/results.jsonl, and the table of bench/RESULTS.md that is made of them.

    python -m bench.results            write the table anew
    python -m bench.results --print    only show it

A line is the result of one side of one row: medians of some rounds, with the date, the commit, the load average and the
machine. Lines are only ever added. Of each row the table has the newest lines: those of one run, both sides in turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).with_name("results.jsonl")
DOCUMENT = Path(__file__).with_name("RESULTS.md")
BEGIN, END = "<!-- made by python -m bench.results -->", "<!-- end -->"


@dataclass(frozen=True)
class Result:
    """One side of one row in one run."""

    run: str
    """When the run began, and the commit that was measured: 2026-11-23 04:45 1a2b3c4."""
    row: str
    side: str
    per_second: float
    microseconds: float
    """Processor time of the broker a message."""
    rounds: tuple[float, ...] = ()
    """Messages a second of each round."""
    load_average: float = 0.0
    """That of the last minute, when the row ended; the load itself has a part in it."""
    machine: str = ""
    remark: str = ""


def this_run() -> str:
    """The name of a run that begins now."""
    return f"{time.strftime('%Y-%m-%d %H:%M')} {commit()}"


def commit() -> str:
    """The commit checked out, with a + if a file differs from it; "unknown" outside a repository."""
    here = Path(__file__).parent
    words = ("git", "describe", "--always", "--exclude=*", "--dirty=+", "--abbrev=7")
    found = subprocess.run(words, cwd=here, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def machine() -> str:
    """Its cores and memory."""
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{len(os.sched_getaffinity(0))} cores, {gibibytes:.0f} GiB"


def result(run: str, row: str, side: str, rounds: Sequence[tuple[float, float]], remark: str = "") -> Result:
    """The medians of some rounds, each messages a second and processor microseconds a message."""
    return Result(
        run,
        row,
        side,
        round(statistics.median(rate for rate, _ in rounds), 1),
        round(statistics.median(cost for _, cost in rounds), 2),
        tuple(round(rate, 1) for rate, _ in rounds),
        round(os.getloadavg()[0], 1),
        machine(),
        remark,
    )


def append(results: Iterable[Result], path: Path = RESULTS) -> None:
    with path.open("a", encoding="utf-8") as file:
        for found in results:
            file.write(json.dumps(asdict(found)) + "\n")


def read(path: Path = RESULTS) -> list[Result]:
    """All lines in their order; ValueError names the line that is none."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            values = json.loads(line)
            found.append(Result(**{**values, "rounds": tuple(values["rounds"])}))
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{path.name}, line {number}: not a result: {error}") from error
    return found


OFFICIAL, OURS, TEMPLATE = ("official 4.9", "official 5.5"), "ours", "template"
WITH_PORT = "with gRPC port"
"""Ours, with a gRPC port that nobody uses."""


def newest(results: Iterable[Result]) -> dict[str, dict[str, Result]]:
    """Of each row the sides in one run: the newest of those that measured most sides, ours among them.

    The rows are in the order in which they first appeared.
    """
    rows: dict[str, dict[str, dict[str, Result]]] = {}
    for found in results:
        rows.setdefault(found.row, {}).setdefault(found.run, {})[found.side] = found
    chosen = {}
    for row, runs in rows.items():
        with_ours = [measured for measured in runs.values() if OURS in measured]
        if with_ours:
            most = max(len(measured) for measured in with_ours)
            chosen[row] = [measured for measured in with_ours if len(measured) == most][-1]
    return chosen


def table(results: Iterable[Result]) -> str:
    """The rows as Markdown tables: against official brokers, the template, ours with a port. Then runs and remarks."""
    rows = newest(results)
    runs: dict[str, list[Result]] = {}
    for measured in rows.values():
        for one in measured.values():
            runs.setdefault(one.run, []).append(one)
    numbers = {run: str(number) for number, run in enumerate(sorted(runs), 1)}
    limits = {row: measured for row, measured in rows.items() if TEMPLATE in measured}
    beside = {row: measured for row, measured in rows.items() if WITH_PORT in measured}
    compared = {row: measured for row, measured in rows.items() if row not in limits and row not in beside}
    parts = []
    for others, chosen in ((OFFICIAL, compared), ((TEMPLATE,), limits), ((WITH_PORT,), beside)):
        if chosen:
            parts.append("\n".join(_table(others, chosen, numbers)))
    parts.append("\n".join(f"- Run {numbers[run]}: {_run_words(run, runs[run])}" for run in sorted(runs)))
    remarks = [one for measured in rows.values() for one in measured.values() if one.remark]
    if remarks:
        parts.append("\n".join(f"- {one.row}, {one.side}: {one.remark}." for one in remarks))
    return "\n\n".join(parts)


def _table(
    others: Sequence[str], rows: Mapping[str, Mapping[str, Result]], numbers: Mapping[str, str]
) -> list[str]:
    sides = (*others, OURS)
    heads = ["load", *(f"{side} /s" for side in sides), *(f"ours : {side.split()[-1]}" for side in others)]
    heads += [*(f"{side} us" for side in sides), "run"]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for row, measured in rows.items():
        ours = measured[OURS].per_second
        rates = {side: measured[side].per_second for side in sides if side in measured}
        cells = [row, *(f"{rates[side]:,.0f}" if side in rates else "" for side in sides)]
        cells += [f"{ours / rates[side]:.2f}" if rates.get(side) else "" for side in others]
        cells += [f"{measured[side].microseconds:.1f}" if side in measured else "" for side in sides]
        lines.append(_line([*cells, numbers[measured[OURS].run]]))
    return lines


def _run_words(run: str, found: Sequence[Result]) -> str:
    loads = [one.load_average for one in found]
    rounds = {len(one.rounds) for one in found}
    counted = f"{min(rounds)} to {max(rounds)}" if len(rounds) > 1 else f"{min(rounds)}"
    return (
        f"{run}, {found[0].machine}, load average {min(loads):.1f} to {max(loads):.1f} (the loads have a part in it), "
        f"medians of {counted} rounds."
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def replaced(document: str, new_table: str) -> str:
    """The document with the text between its two marks replaced; ValueError if a mark is missing."""
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document must hold the line {BEGIN!r} and after it {END!r}")
    return f"{head}{BEGIN}\n\n{new_table}\n\n{END}{tail}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--print", action="store_true", help="only show the table")
    options = parser.parse_args()
    made = table(read())
    if options.print:
        print(made)
        return
    DOCUMENT.write_text(replaced(DOCUMENT.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main()
