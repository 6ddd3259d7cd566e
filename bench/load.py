"""What one broker achieves with our own load program: throughput and latency, p50 to p99.9.

    python -m bench.load [--seconds 5] [--namesrv HOST:PORT]

Without --namesrv it starts a server on free ports with a temporary store. The load program and the server share the
machine: the figures are those of a laptop, not of a dedicated server.
"""

import asyncio
import tempfile

from pocketmq.broker.process import loop_factory
from pocketmq.cli.bench.runs import ensure_topic
from pocketmq.client import Producer
from pocketmq.client.connections.name_servers import NameServers
from pocketmq.client.connections.pool import ConnectionPool

from .frame import parsed, print_load_average, served
from .raw_load import load

TOPIC = "BenchLoad"
ROWS = ((1, 1, 128), (64, 1, 128), (8, 16, 128), (64, 1, 4096))
"""ConnectionPool, sends under way on each, body bytes."""


async def measure(namesrv: str, seconds: float) -> None:
    """Run each row, one after the other."""
    async with Producer("bench-load", namesrv_addr=namesrv) as producer:
        await ensure_topic(producer, TOPIC)
    connections = ConnectionPool()
    route = await NameServers(connections, namesrv).find(TOPIC)
    connections.close()
    queues = route.queues
    address = route.master(queues[0].broker_name)
    for count, depth, size in ROWS:
        result = await load(
            address,
            TOPIC,
            queue_nums=len(queues),
            connections=count,
            depth=depth,
            body_bytes=size,
            seconds=seconds,
        )
        latencies = ", ".join(
            f"p{percent:g} {result.percentile_ms(percent):.3f} ms" for percent in (50, 99, 99.9)
        )
        print(
            f"{count} connections x {depth}, {size} bytes: {result.per_second:.0f} messages/s, "
            f"{result.failed} failed, {latencies}",
            flush=True,
        )


def run(namesrv: str, seconds: float) -> None:
    print_load_average()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(measure(namesrv, seconds))
    print_load_average()


def main() -> None:
    options = parsed(__doc__, seconds=5.0, namesrv=None)
    if options.namesrv:
        run(options.namesrv, options.seconds)
        return
    with tempfile.TemporaryDirectory() as folder, served(folder) as server:
        run(server.namesrv, options.seconds)


if __name__ == "__main__":
    main()
