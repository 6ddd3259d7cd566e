"""Virtual time: what a jump costs that has much to do, and one that has little to do but is long.

    python -m bench.clock [--count 10000] [--runs 5]

An embedded server. Due times are a second apart, so each delivery is a slot, a store and a turn of the event loop of
its own; levels become due 18 times. The jump of 72 hours has one message at its end, over a wheel of 100 ms.
Milliseconds by the wall, and of processor time, which other work on the machine changes less; above a limit of
`thresholds.toml` the program fails.
"""

import statistics
import time
from collections.abc import Callable, Mapping

from pocketmq.testing import EmbeddedServer, RocketMQ

from .frame import check, parsed, print_load_average

TOPIC = "BenchmarkTest"
Properties = Callable[[int], Mapping[str, str]]


def jump(count: int, properties: Properties, step: str, **settings: int) -> tuple[float, float]:
    """Wall and processor milliseconds of one step that delivers `count` messages."""
    with EmbeddedServer(virtual_time=True, **settings) as server:
        mq = RocketMQ(server)
        for number in range(count):
            mq.send(TOPIC, b"x", properties=properties(number))
        began, began_cpu = time.perf_counter(), time.process_time()
        mq.clock.advance(step)
        wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        delivered = len(mq.messages(TOPIC))
        if delivered != count:
            raise RuntimeError(f"{delivered} of {count} messages were delivered")
        return wall * 1000, cpu * 1000


def main() -> None:
    options = parsed(__doc__, count=10_000, runs=5)
    print_load_average()
    count = options.count
    rows: list[tuple[str, Callable[[], tuple[float, float]]]] = [
        (
            f"{count} timed messages, a second apart",
            lambda: jump(count, lambda number: {"TIMER_DELAY_SEC": str(10 + number)}, f"{count + 60}s"),
        ),
        (
            f"{count} messages of 18 delay levels",
            lambda: jump(count, lambda number: {"DELAY": str(1 + number % 18)}, "3h"),
        ),
        (
            "72 h of a wheel of 100 ms, one message",
            lambda: jump(1, lambda _: {"TIMER_DELAY_SEC": str(71 * 3600)}, "72h", timerPrecisionMs=100),
        ),
    ]
    medians = {}
    for name, measure in rows:
        walls, cpus = zip(*(measure() for _ in range(options.runs)), strict=True)
        medians[name] = statistics.median(cpus)
        print(f"{name}: {statistics.median(walls):.1f} ms, {medians[name]:.1f} ms of processor time")
    check("clock", medians)


if __name__ == "__main__":
    main()
