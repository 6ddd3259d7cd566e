"""Whether remoting clients pay for the gRPC port: `python -m bench.grpc_beside [--messages 40000] [--rounds 8]`.

The rows of `send_path`, with the port off and on in turns: two brokers in this process, one of them with an open gRPC
port and a client that is connected to it and waits in a receive. A round is one measurement of each, in alternating
order; the printed ratio is the median of the rounds' ratios. 1.00 is expected: the port is other objects.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.node import Node
from pocketmq.broker.process import loop_factory
from pocketmq.grpc_endpoint.endpoint import open_endpoint
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.send import SendMessageV2
from pocketmq.protocol.wire.command import JSON
from pocketmq.store.config import StoreConfig

from .grpc_waiting import TOPIC, Client, receive, settings
from .processor import print_load_average
from .send_path import Bench, measure

ROWS = ("310, JSON, unique key", "310, binary, unique key", "batch of 16, JSON")


def started(folder: Path) -> Node:
    config = BrokerConfig(store=StoreConfig(store_path_root_dir=str(folder)), listen_port=0)
    return Node(config, NameServerConfig(listen_port=0))


async def connect(node: Node, port: int) -> Client:
    """A member of a group that waits for a message."""
    node.broker.topics.update(TopicConfig(topic_name=TOPIC.name, read_queue_nums=1, write_queue_nums=1))
    client = Client(0)
    await client.connect(port)
    client.open("Telemetry", settings(), end=False)
    await client.read()
    client.open("ReceiveMessage", receive(), end=True)
    return client


async def run(folder: Path, names: Sequence[str], messages: int, rounds: int) -> None:
    off, on = started(folder / "off"), started(folder / "on")
    await off.start()
    await on.start()
    try:
        async with open_endpoint(on) as endpoint:
            await connect(on, int(endpoint.address.rpartition(":")[2]))
            sides = [Bench(off), Bench(on)]
            for side in sides:
                await side.feed(side.frames.send(SendMessageV2, JSON, {}) for _ in range(4000))
            for name in names:
                pairs = []
                for number in range(rounds):
                    order = sides if number % 2 else sides[::-1]
                    found = {id(side): await measure(side, name, messages) for side in order}
                    pairs.append([found[id(side)] for side in sides])
                ratio = statistics.median(with_port / without for without, with_port in pairs)
                without, with_port = (statistics.median(column) for column in zip(*pairs, strict=True))
                print(
                    f"{name:26} off {without:6.2f} us   on {with_port:6.2f} us   ratio {ratio:.3f}",
                    flush=True,
                )
    finally:
        await on.stop()
        await off.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds it")
    options = parser.parse_args()
    print_load_average()
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=loop_factory()) as runner:
        names = [name for name in ROWS if options.only in name]
        runner.run(run(Path(folder), names, options.messages, options.rounds))
    print_load_average()


if __name__ == "__main__":
    main()
