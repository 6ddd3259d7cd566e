"""How far away is the limit? The same Java clients at a server that only answers, in turns with our broker.

    python -m bench.limit [--rounds 3] [--seconds 4] [--warm-up 5]

The server of `template_server.py` checks and stores nothing: it reaches what clients, kernel and event loop allow
on this machine, and what it spends a message is the least a server in Python spends. The rows are added to
bench/results.jsonl as those of `bench.java_ratio` are.
"""

import sys
from dataclasses import replace

from . import results
from .frame import parsed, print_load_average
from .java_loads import LOADS, Timing
from .java_ratio import compare
from .java_sides import OURS, SETTINGS, TEMPLATE

ROWS = ("sync send, 64 threads, 128 B", "sync send, 1 thread, 128 B")


def main() -> None:
    options = parsed(__doc__, rounds=3, seconds=4.0, warm_up=5.0)
    loads = [replace(load, name=f"limit: {load.name}") for load in LOADS if load.name in ROWS]
    print_load_average()
    timing = Timing(options.warm_up, options.seconds, 0)
    found, failures = compare((TEMPLATE, OURS), loads, SETTINGS, timing, options.rounds, minutes=10.0)
    print(results.table(found))
    if failures:
        sys.exit("failed:\n" + "\n".join(failures))


if __name__ == "__main__":
    main()
