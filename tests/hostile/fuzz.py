"""Requests at random to every port of one server, from many connections at once, and what they leave behind.

    make fuzz REQUESTS=1000000 [SEED=1]

The peers are in `fuzz_peers.py`. They come in rounds. After each, all connections are closed, the server is reset, and
memory and descriptors are counted; what the last round stores stays for `store check`. A report says what a run showed,
and which rule it broke:

    wire        no byte that is sent has a Java or Python stack in it
    log         no unexpected error
    memory      the least of the later rounds is no more than the least of those before (what is free is not all given
                back to the system, so single rounds differ)
    handles     after the first rounds, there are no more descriptors (of store files apart) and no more threads
    turns       the longest turn of the loop takes less than 250 ms of processor time
    good sends  another client's sends are all stored, and 999 of 1000 answered within 250 ms of the server's processor
                time (more may pass until this program, which has many threads, reads an answer)
    store       `store check` finds nothing afterwards

The seed decides what each peer sends; in which order the server sees the peers depends on the machine.
"""

import argparse
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from hostile import http_rows
from hostile.exchange import exchange
from hostile.fuzz_peers import WAIT_SECONDS, Requests, Round
from hostile.judge import MIB, GoodClient, Judge, Kept

GOOD_MS: Final = 250
GROWTH_BYTES: Final = 4 * MIB
"""What the allocator's choice of places makes of equal rounds."""
GROWTH_PER_REQUEST: Final = 4
ROUNDS: Final = 13
"""The last one is not measured."""
FIRST_ROUNDS: Final = 4
"""They fill what is bounded: caches, logs, tables of names."""
SETTINGS: Final = ("mappedFileSizeCommitLog=16777216", "mappedFileSizeConsumeQueue=20000")


class Report(NamedTuple):
    requests: int
    seconds: float
    kept: dict[int, Kept]
    """By the number of requests until then."""
    cpu_ms: list[float]
    wall_ms: list[float]
    turn_ms: float
    broken: list[str]

    @property
    def slope(self) -> float:
        """Bytes of memory a request, after the first rounds."""
        later = list(self.kept)[FIRST_ROUNDS:]
        return statistics.linear_regression(later, [self.kept[sent].memory for sent in later])[0]

    @property
    def growth(self) -> int:
        """Bytes by which the least memory of the later rounds is more than that of the rounds before."""
        later = [one.memory for one in self.kept.values()][FIRST_ROUNDS:]
        half = len(later) // 2
        return min(later[half:]) - min(later[:half])

    def lines(self) -> Iterator[str]:
        yield f"{self.requests} requests in {self.seconds:.0f} s, {self.requests / self.seconds:.0f} a second"
        yield f"memory {' '.join(f'{one.memory / MIB:.1f}' for one in self.kept.values())} MiB, "
        yield f"  {self.slope:.2f} bytes a request; least memory grew by {self.growth >> 10} KiB"
        yield f"handles {' '.join(str(one.handles) for one in self.kept.values())}"
        yield f"threads {' '.join(str(one.threads) for one in self.kept.values())}"
        yield f"good sends {len(self.cpu_ms)}: {_percentiles(self.cpu_ms)} ms of the server's processor time, "
        yield f"  {_percentiles(self.wall_ms)} ms on the clock; longest turn {self.turn_ms:.0f} ms"
        yield from ["BROKEN", *self.broken] if self.broken else ["all rules are kept"]


def _percentiles(values: list[float]) -> str:
    ranked = sorted(values)
    return ", ".join(f"p{share * 100:g} {_share_of(ranked, share):.1f}" for share in (0.5, 0.99, 0.999, 1))


def _share_of(ranked: list[float], share: float) -> float:
    return ranked[int((len(ranked) - 1) * share)]


def run(folder: Path, count: int, seed: str, log: Callable[[str], None] = lambda _: None) -> Report:
    """Send `count` requests to a server in `folder`, then check its store."""
    broken: list[str] = []
    kept: dict[int, Kept] = {}
    sent = 0
    began = time.monotonic()
    with Judge(folder, SETTINGS) as judge:
        requests = Requests(judge.ports)
        judge.reset()
        good = GoodClient(judge.server, "Undisturbed", WAIT_SECONDS)
        for number in range(ROUNDS):
            one = Round(judge, requests, f"{seed} {number}", count // ROUNDS)
            with good:
                one.run()
            broken += one.broken
            sent += one.sent
            if number == ROUNDS - 1:
                _ask(judge, "DELETE", "/api/faults")
                break
            _ask(
                judge, "POST", "/api/reset"
            )  # empties the log of requests, and removes faults that requests have set
            kept[sent] = judge.kept()
            log(f"round {number + 1}: {sent} requests, {kept[sent]}, {len(broken)} broken")
            if judge.server.process.poll() is not None or len(broken) > 20:
                break
        seconds = time.monotonic() - began
        turn_ms = judge.turn_ms()
        log_text = judge.server.errors
    broken += good.failures[:20]
    surprises = set(re.findall(r"Traceback.*(?:\n .*)*\n.*", log_text))
    broken += [f"log: {text[-2000:]}" for text in sorted(surprises)[:20]]
    report = Report(sent, seconds, kept, good.cpu_ms, good.wall_ms, turn_ms, broken)
    broken += _rules(report)
    check = [sys.executable, "-m", "pocketmq.cli", "store", "check", str(judge.server.store)]
    checked = subprocess.run(check, capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        broken.append(f"store check: {checked.stdout[-2000:]}{checked.stderr[-1000:]}")
    return report


def _rules(report: Report) -> Iterator[str]:
    if len(report.kept) < ROUNDS - 1:
        yield "the run ended early"
        return
    sent, later = list(report.kept)[FIRST_ROUNDS:], list(report.kept.values())[FIRST_ROUNDS:]
    if report.growth > max(GROWTH_BYTES, GROWTH_PER_REQUEST * (sent[-1] - sent[0])):
        yield f"memory grows by {report.growth} bytes"
    for name in ("handles", "threads"):
        counts = [getattr(one, name) for one in later]
        if counts[-1] > counts[0] + 2:
            yield f"{name} grow: {counts}"
    if report.turn_ms > GOOD_MS:
        yield f"one turn of the loop took {report.turn_ms:.0f} ms of processor time"
    if (slowest := _share_of(sorted(report.cpu_ms), 0.999)) > GOOD_MS:
        yield f"good sends were answered after {slowest:.0f} ms of the server's processor time"


def _ask(judge: Judge, method: str, path: str) -> None:
    """A request to the HTTP port whose answer does not matter."""
    with socket.create_connection(("127.0.0.1", judge.ports["http"]), WAIT_SECONDS) as peer:
        exchange(peer, [http_rows.request_of(method, path)], closes=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="hostile.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", default=str(random.randrange(1 << 32)))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        report = run(Path(folder), options.requests, options.seed, lambda line: print(line, flush=True))
    print("\n".join(report.lines()))
    sys.exit(bool(report.broken))


if __name__ == "__main__":
    main()
