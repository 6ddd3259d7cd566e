"""How long do the start, stop and reset of an embedded server take, and a snapshot?

    python -m bench.companion [--runs 20]

All in one process, as in a test. The lower quartile stands for a quiet machine; above a limit of `thresholds.toml` the
program fails.
"""

import statistics
import time
from collections.abc import Callable
from typing import Final

from pocketmq.client import TopicConfig
from pocketmq.store import NewMessage
from pocketmq.testing import EmbeddedServer

from .frame import check, parsed

TOPICS: Final = 100
MESSAGES: Final = 10_000


def timed(action: Callable[[], object]) -> float:
    """Milliseconds."""
    begun = time.perf_counter()
    action()
    return (time.perf_counter() - begun) * 1000


def starts_and_stops(runs: int) -> tuple[list[float], list[float]]:
    starts, stops = [], []
    for _ in range(runs):
        server = EmbeddedServer()
        starts.append(timed(server.start))
        stops.append(timed(server.stop))
    return starts, stops


def resets(runs: int, *, with_messages: bool) -> list[float]:
    """Of a server to which a test added 100 topics, each with a message or none."""
    took = []
    with EmbeddedServer() as server:

        def fill() -> None:
            broker = server.broker
            for number in range(TOPICS):
                broker.topics.create_if_absent(TopicConfig(topic_name=f"topic-{number}"))
                if with_messages:
                    broker.store.append(NewMessage(f"topic-{number}", 0, b"x", b""))

        for _ in range(runs):
            server.call(fill)
            time.sleep(0.05)  # the files of the reset before are deleted
            took.append(timed(server.reset))
    return took


def snapshots(runs: int) -> tuple[list[float], list[float]]:
    """Of a server with 10,000 messages of 100 bytes: taking one with its bytes, and restoring it."""
    taken, restored = [], []
    messages = [{"topic": "many", "body": "x" * 100}] * MESSAGES
    with EmbeddedServer(load=[{"topics": {"many": 8}, "messages": messages}]) as server:
        for _ in range(runs):
            taken.append(timed(lambda: server.snapshot().to_bytes()))
            snapshot = server.snapshot()
            restored.append(timed(lambda snapshot=snapshot: server.restore(snapshot)))  # type: ignore[misc]
    return taken, restored


def main() -> None:
    runs = max(parsed(__doc__, runs=20).runs, 4)
    starts, stops = starts_and_stops(runs)
    taken, restored = snapshots(runs)
    quartiles = {}
    for name, took in (
        ("start", starts),
        ("stop", stops),
        (f"reset, {TOPICS} topics", resets(runs, with_messages=False)),
        (f"reset, {TOPICS} topics with a message each", resets(runs, with_messages=True)),
        (f"snapshot of {MESSAGES:,} messages", taken),
        (f"restore of {MESSAGES:,} messages", restored),
    ):
        quartile, median, _ = statistics.quantiles(took, n=4)
        quartiles[name] = quartile
        print(f"{name:<44} lower quartile {quartile:7.2f} ms   median {median:7.2f} ms")
    check("companion", quartiles)


if __name__ == "__main__":
    main()
