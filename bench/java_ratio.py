"""How fast is our broker for the official Java clients, against the official brokers in the same run?

    python -m bench.java_ratio [--against both] [--rounds 3] [--seconds 4] [--warm-up 4] [--minutes 20]
    python -m bench.java_ratio --against 4.9 --rows "64 threads, 128" --rows batch
    python -m bench.java_ratio --against port --rows "64 threads, 128"
    python -m bench.java_ratio --list

Official benchmark programs of 5.5.0, and one of ours over the official client, drive the brokers in turns: 4.9.7, 5.5.0
and ours, each in a network namespace of its own and stopped while another is measured. Of each row the median of the
rounds is added to bench/results.jsonl, with the processor time of the broker a message; `python -m bench.results` makes
the table of bench/RESULTS.md of them. A row that fails is reported and the others go on. After `--minutes` each row
left gets one round. Needs Java and Maven, as the interop tests do. `--against port` compares ours with and without a
gRPC port that nobody uses.
"""

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from . import results
from .frame import print_load_average
from .java_loads import LOADS, Load, LoadFailed, Measured, Timing, measure
from .java_sides import OFFICIAL, OURS, SERVERS, SETTINGS, WITH_PORT, Side

FAILURES = (LoadFailed, AssertionError, OSError, RuntimeError, ValueError, KeyError)
"""Of a load program, of a server that ended, of a reply: they concern one row. ProgramFailed is an AssertionError."""


class Comparison:
    """One run: the sides, started once for all rows that need the same servers."""

    def __init__(
        self, names: Sequence[str], settings: dict[str, object], timing: Timing, folder: Path
    ) -> None:
        self._names = names
        self._settings = settings
        self._timing = timing
        self._folder = folder
        self._homes = 0
        self._servers = ""
        self._sides: dict[str, Side] = {}
        self.run = results.this_run()
        self.failures: list[str] = []

    def row(self, load: Load, rounds: int, deadline: float) -> list[results.Result]:
        """Measure one row on all sides in turns; the sides that failed are missing."""
        self._prepare(load.servers)
        measured: dict[str, list[Measured]] = {name: [] for name in self._names}
        for number in range(rounds):
            if number and time.monotonic() > deadline:
                break
            for name in self._names:
                if load.is_pop and name == OFFICIAL["4.9"]:
                    continue
                try:
                    measured[name].append(self._measure(name, load))
                except FAILURES as error:
                    self._failed(f"{load.name}, {name}, round {number + 1}", error)
        found = []
        for name, rows in measured.items():
            if rows:
                figures = [(one.per_second, one.microseconds) for one in rows]
                found.append(
                    results.result(self.run, load.name, name, figures, self._remark(name, load, rows))
                )
        return found

    def _measure(self, name: str, load: Load) -> Measured:
        side = self._sides.get(name)
        if side is None or not side.alive:
            side = self._start(name)
        with side.awake():
            measured = measure(side.server, load, side.pid, self._timing)
        print(
            f"  {name:13} {load.name:55} {measured.per_second:9.0f} /s {measured.microseconds:7.1f} us",
            flush=True,
        )
        return measured

    def _remark(self, name: str, load: Load, rows: list[Measured]) -> str:
        """What a rate does not say: whether a consumer kept up, how far behind a slave was."""
        if load.beside_consumer:
            share = sum(one.read for one in rows) / sum(one.messages for one in rows)
            return f"the consumer read {share:.0%} of what was sent meanwhile"
        if load.servers == "with slave" and name in self._sides:
            try:
                with self._sides[name].awake():
                    return f"the slave had the whole log {self._sides[name].seconds_behind():.1f} s later"
            except FAILURES as error:
                self._failed(f"{load.name}, {name}, its slave", error)
        return ""

    def _prepare(self, servers: str) -> None:
        """Start the servers that the next row needs, unless they run already."""
        if servers == self._servers:
            return
        self.close()
        self._servers = servers
        for name in self._names:
            try:
                self._start(name)
            except FAILURES as error:
                self._failed(f"the start of {name}, {servers}", error)

    def _start(self, name: str) -> Side:
        if (old := self._sides.pop(name, None)) is not None:
            old.close()
        self._homes += 1
        settings = self._settings | SERVERS[self._servers]
        home = self._folder / f"{self._homes}"
        side = Side(name, home, settings, with_slave=self._servers == "with slave")
        self._sides[name] = side
        return side

    def _failed(self, what: str, error: BaseException) -> None:
        self.failures.append(f"{what}: {type(error).__name__}: {error}")
        print(f"  FAILED {self.failures[-1]}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End everything that was started."""
        while self._sides:
            _, side = self._sides.popitem()
            try:
                side.close()
            except FAILURES as error:
                self._failed(f"the end of {side.name}", error)


def compare(
    names: Sequence[str],
    loads: Sequence[Load],
    settings: dict[str, object],
    timing: Timing,
    rounds: int,
    minutes: float,
) -> tuple[list[results.Result], list[str]]:
    """All rows; the results that were added to the file, and what failed."""
    deadline = time.monotonic() + minutes * 60
    found: list[results.Result] = []
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(names, settings, timing, Path(folder))
        with contextlib.closing(comparison):
            for load in loads:
                row = comparison.row(load, rounds, deadline)
                results.append(row)
                found += row
    return found, comparison.failures


def chosen(words: Sequence[str]) -> list[Load]:
    """The loads whose name holds one of the words, in an order that starts each kind of server once."""
    loads = [load for load in LOADS if not words or any(word in load.name for word in words)]
    return sorted(loads, key=lambda load: list(SERVERS).index(load.servers))


def end_on_signal(*_: object) -> None:
    sys.exit("ended by a signal; what was measured is in the file")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", choices=("4.9", "5.5", "both", "port"), default="both")
    parser.add_argument(
        "--rows", action="append", default=[], metavar="TEXT", help="rows whose name holds it"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--warm-up", type=float, default=4.0, help="seconds before each measurement")
    parser.add_argument("--minutes", type=float, default=20.0, help="after them each row left gets one round")
    parser.add_argument("--backlog", type=int, default=1_000_000, help="messages of the drain")
    parser.add_argument("--clients", choices=("4.9", "5.5"), default="5.5", help="whose benchmark programs")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all brokers")
    parser.add_argument("--list", action="store_true", help="only name the rows")
    options = parser.parse_args()
    loads = chosen(options.rows)
    if options.list or not loads:
        print("\n".join(load.name for load in loads or LOADS))
        sys.exit(0 if loads else "no row has such a name; these exist")
    if options.set:  # a row of its own in the file
        loads = [replace(load, name=f"{load.name} ({', '.join(options.set)})") for load in loads]
    signal.signal(signal.SIGTERM, end_on_signal)
    if options.against == "port":
        loads = [replace(load, name=f"{load.name}, beside a gRPC port") for load in loads]
    sides = {"both": tuple(OFFICIAL.values()), "port": (WITH_PORT,)}
    sides |= {line: (name,) for line, name in OFFICIAL.items()}
    names = (*sides[options.against], OURS)
    settings = SETTINGS | dict(word.split("=", 1) for word in options.set)
    timing = Timing(options.warm_up, options.seconds, options.backlog, options.clients)
    print_load_average()
    found, failures = compare(names, loads, settings, timing, options.rounds, options.minutes)
    print_load_average()
    print(results.table(found))
    if failures:
        sys.exit("failed:\n" + "\n".join(failures))


if __name__ == "__main__":
    main()
