"""What a pull of 32 messages costs the broker's thread, and the reader of the pipeline, in processor time.

    python -m bench.pull_path [--pulls 6000] [--only TEXT]

As `send_path.py`: broker, connections and reader are the real ones in this process, the socket is not. The broker gets
sixteen pulls in one pass. The messages of a pull have about 400 B each and lie back to back in the log ("runs", as
batches are stored), or each between those of other queues ("singles"). The reader's row is from the request of a pull
to the places of its records, by `RangeReader` with the usual number of pulls in flight; the answers are made
beforehand or outside of its time.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pocketmq.client.connections.connection import Connection
from pocketmq.pipeline.tables.brokers.range_reader import RangeReader
from pocketmq.pipeline.tables.brokers.wait_log import WaitLog
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.ranges import Range
from pocketmq.pipeline.tables.planning.topic_options import SourceOptions
from pocketmq.protocol.bodies.client import ConsumerData, HeartbeatData, tag_subscription
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.pull import PullMessage, PullMessageReply
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessageV2
from pocketmq.protocol.wire.command import JSON, RESPONSE_FLAG, ROCKETMQ, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.schema import to_fields

from .frame import parsed, run, started_node
from .send_path import QUEUES, Bench, Socket

RUNS, SINGLES = "BenchRuns", "BenchSingles"
GROUP = "bench"
MESSAGES = 32
OFFSETS = 6400
"""Of each queue of both topics."""
BODY = b"x" * 256
SLICE_PULLS = 320


class Views(Socket):
    """Keeps what is written as it is: the socket copies from the log, and that is the kernel's part."""

    def writelines(self, list_of_data: Any) -> None:
        self.written += list_of_data


def sends(bench: Bench, topic: str) -> Iterator[bytes]:
    """Messages for all queues: batches of 32, or single ones to each queue in turns."""
    frames, text = (
        bench.frames,
        encode_properties_text({"UNIQ_KEY": "0" * 32, "TAGS": "TagA", "WAIT": "true"}),
    )
    batch = encode_batch([BatchElement(0, BODY, text.encode())] * MESSAGES)
    kind = SendBatchMessage if topic == RUNS else SendMessageV2
    for number in range(QUEUES * OFFSETS // (MESSAGES if topic == RUNS else 1)):
        request = kind(
            producer_group=GROUP,
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=QUEUES,
            queue_id=number % QUEUES,
            sys_flag=0,
            born_timestamp=time.time_ns() // 1_000_000,
            flag=0,
            properties=text,
            reconsume_times=0,
            batch=topic == RUNS,
        )
        yield frames.frame(request, JSON, batch if topic == RUNS else BODY)


def heartbeat(bench: Bench) -> bytes:
    subscriptions = [tag_subscription(topic, "*", sub_version=1) for topic in (RUNS, SINGLES)]
    consumer = ConsumerData(
        GROUP, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET", subscriptions
    )
    data = HeartbeatData(client_id="bench@1", consumer_data_set=[consumer])
    return bench.frames.frame(HeartBeat(), JSON, data.encode())


def pulls(bench: Bench, topic: str, header_type: int, count: int, *, by_group: bool) -> Iterator[bytes]:
    """Pulls of four queues in turns: of a push consumer, which names its group, or of the pipeline's reader."""
    for number in range(count):
        offset = number // QUEUES * MESSAGES % OFFSETS
        request = PullMessage(
            consumer_group=GROUP,
            topic=topic,
            queue_id=number % QUEUES,
            queue_offset=offset,
            max_msg_nums=MESSAGES,
            sys_flag=flags.PULL_COMMIT_OFFSET | flags.PULL_SUSPEND if by_group else flags.PULL_SUBSCRIPTION,
            commit_offset=offset if by_group else 0,
            suspend_timeout_millis=15_000 if by_group else 0,
            subscription=None if by_group else "*",
            sub_version=1 if by_group else 0,
            expression_type="TAG",
        )
        yield bench.frames.frame(request, header_type)


ROWS: dict[str, tuple[str, int, bool]] = {
    "of a group, JSON, runs": (RUNS, JSON, True),
    "of a group, JSON, singles": (SINGLES, JSON, True),
    "of a group, binary, singles": (SINGLES, ROCKETMQ, True),
    "of the reader, JSON, runs": (RUNS, JSON, False),
    "of the reader, JSON, singles": (SINGLES, JSON, False),
}
READER = "the reader's own part"


class Answering(asyncio.Transport):
    """The socket of a client: answers its pulls with the same 32 records. `spent_ns` is what that takes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, body: bytes, header_type: int) -> None:
        super().__init__()
        self.spent_ns = 0
        self.client: Connection
        self._loop, self._body, self._header_type = loop, body, header_type
        self._cutter = FrameCutter()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        began_ns = time.thread_time_ns()
        answers = [self._answer(request) for request in self._cutter.feed(bytes(data))]
        self._loop.call_soon(self.client.data_received, b"".join(answers))
        self.spent_ns += time.thread_time_ns() - began_ns

    def _answer(self, request: Command) -> bytes:
        offset = int((request.fields or {})["queueOffset"])
        reply = PullMessageReply(
            suggest_which_broker_id=0, next_begin_offset=offset + MESSAGES, min_offset=0, max_offset=1 << 30
        )
        fields, header_type = to_fields(reply), self._header_type
        return encode_frame(
            Command(0, request.opaque, RESPONSE_FLAG, "FOUND", fields, self._body, "JAVA", 401, header_type)
        )

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        pass


class OneBroker:
    """What the reader uses of its client: the connection to the broker."""

    def __init__(self, connection: Connection) -> None:
        self.notes = WaitLog()
        self._connection = connection

    async def broker_or_slave(self, topic: str, broker_name: str) -> tuple[Connection, bool]:
        return self._connection, False


async def read(body: bytes, count: int) -> float:
    """Microseconds of the reader for each pull."""
    connection = Connection("127.0.0.1:10911")
    transport = Answering(asyncio.get_running_loop(), body, JSON)
    transport.client = connection
    connection.connection_made(transport)
    options = SourceOptions(namesrv_addr="")
    client = cast(Any, OneBroker(connection))
    slices: list[float] = []
    for number in range(count // SLICE_PULLS):
        lo = number * SLICE_PULLS * MESSAGES
        wanted = Range(Queue(RUNS, "broker-a", 0), lo, lo + SLICE_PULLS * MESSAGES)
        transport.spent_ns, began_ns = 0, time.thread_time_ns()
        async for _ in RangeReader(client, wanted, options).each():
            pass
        slices.append((time.thread_time_ns() - began_ns - transport.spent_ns) / 1000 / SLICE_PULLS)
    connection.close()
    return sorted(slices)[len(slices) // 4]


async def measure(folder: Path, names: list[str], count: int) -> None:
    async with started_node(folder) as node:
        bench = Bench(node, Views())
        for topic in (RUNS, SINGLES):
            # The answers to sends that create a topic wait until it is on disk.
            node.broker.topics.update(
                TopicConfig(topic_name=topic, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
            )
            await node.broker.tables.wait_until_saved(node.broker.topics)
            await bench.feed(sends(bench, topic), MESSAGES if topic == RUNS else 1)
        await bench.prepare(heartbeat(bench))
        records = b""
        for name, (topic, header_type, by_group) in ROWS.items():
            frames = pulls(bench, topic, header_type, count, by_group=by_group)
            spent, (*_, last) = await bench.feed(frames, MESSAGES)
            records = bytes(last.body or b"")
            if name in names:
                print(f"{name:30} {spent * MESSAGES:6.2f} us", flush=True)
        if READER in names:
            print(f"{READER:30} {await read(records, count):6.2f} us", flush=True)


def main() -> None:
    options = parsed(__doc__, pulls=6_000, only="")
    names = [name for name in (*ROWS, READER) if options.only in name]
    run(lambda folder: measure(folder, names, options.pulls))


if __name__ == "__main__":
    main()
