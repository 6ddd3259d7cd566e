"""Whether remoting clients pay for the gRPC port: `python -m bench.grpc_beside [--messages 40000] [--rounds 8]`.

The rows of `send_path`, with the port off and on in turns: two brokers in this process, one of them with an open gRPC
port and a client that is connected to it and waits in a receive. A round is one measurement of each, in alternating
order; the printed ratio is the median of the rounds' ratios. 1.00 is expected: the port is other objects.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path

from pocketmq.broker.node import Node
from pocketmq.grpc_endpoint.endpoint import open_endpoint
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.send import SendMessageV2
from pocketmq.protocol.wire.command import JSON

from .frame import parsed, run, started_node
from .grpc_waiting import TOPIC, Client, receive, settings
from .send_path import Bench, measure

ROWS = ("310, JSON, unique key", "310, binary, unique key", "batch of 16, JSON")


async def connect(node: Node, port: int) -> Client:
    """A member of a group that waits for a message."""
    node.broker.topics.update(TopicConfig(topic_name=TOPIC.name, read_queue_nums=1, write_queue_nums=1))
    client = Client(0)
    await client.connect(port)
    client.open("Telemetry", settings(), end=False)
    await client.read()
    client.open("ReceiveMessage", receive(), end=True)
    return client


async def compare(folder: Path, names: Sequence[str], messages: int, rounds: int) -> None:
    async with (
        started_node(folder / "off") as off,
        started_node(folder / "on") as on,
        open_endpoint(on) as endpoint,
    ):
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
            row = f"{name:26} off {without:6.2f} us   on {with_port:6.2f} us   ratio {ratio:.3f}"
            print(row, flush=True)


def main() -> None:
    options = parsed(__doc__, messages=40_000, rounds=8, only="")
    names = [name for name in ROWS if options.only in name]
    run(lambda folder: compare(folder, names, options.messages, options.rounds))


if __name__ == "__main__":
    main()
