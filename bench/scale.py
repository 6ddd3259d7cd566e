"""How does what a client does cost more, the more others have stored? The figures of docs/scale.md: `make scale`.

    python -m bench.scale [--quick] [--most 1000000] [--only topics,held] [--show]

Each row is measured at three or four sizes, and its exponent says how the cost grows. `scale_rows.py` has the rows of a
server in this process, `scale_servers.py` those of server processes, the official brokers among them where Java is.
Figures are processor time, because other programs on the machine change it little. The results go to bench/scale.json,
docs/scale.md and its picture; with `--quick` (two minutes, up to 10,000, no official broker), `--most`, `--only` or
`--show` they are only printed.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from . import results, scale_bench, scale_page, scale_rows
from .frame import parsed, print_load_average
from .scale_bench import Figures
from .scale_page import OURS, Point, Run

QUICK_MOST: Final = 10_000
PLENTY: Final = 1_000_000
SECONDS: Final = 4.0
"""Of each load of one broker and of two."""

ROWS: Final[dict[str, tuple[Callable[[Sequence[int]], Figures], tuple[int, ...]]]] = {
    "topics": (scale_rows.topics, (100, 1000, 10_000, 100_000)),
    "groups": (scale_rows.groups, (100, 1000, 10_000, 100_000)),
    "clients": (scale_rows.clients, (100, 1000, 10_000, 50_000)),
    "offsets": (scale_rows.offsets, (1000, 10_000, 100_000, 800_000)),
    "timed": (scale_rows.timed, (1000, 10_000, 100_000, 1_000_000)),
    "transactions": (scale_rows.transactions, (100, 1000, 10_000, 100_000)),
    "held": (scale_rows.held, (100, 1000, 10_000, 90_000)),
    "queues": (scale_rows.queues, (100, 1000, 10_000, 20_000)),
    "pages": (scale_rows.pages, (100, 1000, 10_000, 100_000)),
    "ledger": (scale_rows.ledger, (1000, 10_000, 90_000)),
}
TOPICS: Final = (1000, 10_000, 100_000)
GROUPS: Final = (1000, 10_000, 100_000)
MESSAGES: Final = (10_000, 100_000, 1_000_000)
SERVERS: Final = ("servers", "processes")


def fitting(sizes: Sequence[int], most: int) -> Sequence[int]:
    """The sizes up to `most`; two small ones if there are none."""
    found = [size for size in sizes if size <= most]
    return found if len(found) > 1 else (max(1, most // 10), most)


def rows(names: Sequence[str], most: int) -> Iterator[Point]:
    """Of a server in this process."""
    for name in names:
        if name in ROWS:
            measure, sizes = ROWS[name]
            began = time.monotonic()
            for size, figures in measure(fitting(sizes, most)):
                for row, value in figures.items():
                    yield Point(row, OURS, size, round(value, 2))
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


def servers(most: int, *, official: bool) -> Iterator[Point]:
    from . import scale_servers

    sides = scale_servers.SIDES if official else (OURS,)
    for measure in (
        lambda: scale_servers.beside_topics(sides, fitting(TOPICS, most)),
        lambda: scale_servers.restarts(sides, fitting(MESSAGES, most)),
        lambda: ((OURS, *found) for found in scale_servers.group_memory(fitting(GROUPS, most))),
    ):
        for side, size, figures in measure():
            print(f"{side}, {size:,}: {figures}", flush=True)
            for row, value in figures.items():
                yield Point(row, side, size, round(value, 2))


def main() -> None:
    options = parsed(__doc__, quick=False, most=PLENTY, only=",".join((*ROWS, *SERVERS)), show=False)
    most = min(options.most, QUICK_MOST) if options.quick else options.most
    names = options.only.split(",")
    is_whole = most == PLENTY and set(names) == {*ROWS, *SERVERS} and not options.show
    scale_bench.prepare()
    run, load = results.this_run(), os.getloadavg()[0]
    print_load_average()
    points = list(rows(names, most))
    if "servers" in names:
        official = not options.quick and all(map(shutil.which, ("java", "javac", "mvn")))
        points += servers(most, official=official)
    processes: list[dict[str, float]] = []
    if "processes" in names:
        from .scale_servers import two_processes

        processes = two_processes(SECONDS if is_whole else 1.0)
    loads = round(load, 1), round(os.getloadavg()[0], 1)
    measured = Run(run, results.machine(), loads, tuple(points), tuple(processes))
    print(scale_page.tables(measured))
    if is_whole:
        scale_page.write(measured)
        scale_page.update()
        draw = scale_page.ROOT / "docs" / "pictures" / "draw.py"
        environment = {**os.environ, "PYTHONPATH": str(scale_page.ROOT / "tests")}
        subprocess.run([sys.executable, str(draw), "scale"], env=environment, check=True)


if __name__ == "__main__":
    main()
