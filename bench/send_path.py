"""What a message costs the broker's thread, in processor time: from the bytes of a read to the bytes of the answers.

    python -m bench.send_path [--messages 40000] [--only TEXT]

Broker and connection are the real ones in this process, the socket is not: frames are built beforehand, and the
connection gets sixteen at a time, as many as it reads in one pass; in rows that say "a read", fewer, as from producers
that send one message after the other. A row is the lower quartile over slices of 50 reads: the cost of other processes,
which use the same caches, is mostly in the upper ones. 128-byte bodies. The kernel's part is not measured here
(`load.py`).
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from pocketmq.broker.network.connection import Connection
from pocketmq.broker.node import Node
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.pop_receipt import Receipt
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.requests.pop import AckMessage
from pocketmq.protocol.requests.send import EndTransaction, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import JSON, ROCKETMQ, Command, RawBody
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.schema import Request, to_fields

from .frame import parsed, run, started_node

TOPIC = "BenchmarkTest"
BODY = b"x" * 128
FRAMES_A_READ = 16
SLICE_READS = 50
BATCH = 16
QUEUES = 4
MIXED_BATCHES = (64, 1000)
KEYED = {"TAGS": "TagA", "KEYS": "order-1"}
COMMIT = 8


class Socket(asyncio.Transport):
    """A transport that keeps what the connection writes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 40_000)})
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


class Frames:
    """Requests as bytes, with unique ids that increase like those of a producer."""

    def __init__(self) -> None:
        self._ids = UniqueIdMaker(b"\x7f\0\0\1", os.getpid(), 1, lambda: time.time_ns() // 1_000_000)
        self._opaque = 0
        self._number = 0

    def frame(self, request: Request[object], header_type: int, body: RawBody | None = None) -> bytes:
        self._opaque += 1
        return encode_frame(
            Command(
                request.code, self._opaque, 0, None, to_fields(request), body, "JAVA", V5_5_0, header_type
            )
        )

    def send(
        self, cls: type[SendMessage | SendMessageV2], header_type: int, properties: dict[str, str]
    ) -> bytes:
        text = encode_properties_text({**properties, "UNIQ_KEY": self._ids.next(), "WAIT": "true"})
        return self.frame(self._request(cls, text), header_type, BODY)

    def unlike(self, cls: type[SendMessage | SendMessageV2], header_type: int) -> bytes:
        """A send whose key, trace context, user and amount no other has."""
        self._number += 1
        number = self._number
        return self.send(
            cls,
            header_type,
            {
                "TAGS": f"tag{number % 7}",
                "KEYS": f"order-{number}",
                "traceparent": f"00-{number * 0x9E3779B97F4A7C15 % (1 << 128):032x}-{number:016x}-01",
                "user": f"user-{number % 1000}",
                "amount": f"{number * 37 % 100_000 / 100}",
            },
        )

    def batch(self, header_type: int) -> bytes:
        elements = [
            BatchElement(
                0, BODY, encode_properties_text({"UNIQ_KEY": self._ids.next(), "WAIT": "true"}).encode()
            )
            for _ in range(BATCH)
        ]
        text = encode_properties_text({"UNIQ_KEY": self._ids.next(), "WAIT": "true"})
        return self.frame(
            self._request(SendBatchMessage, text, batch=True), header_type, encode_batch(elements)
        )

    def mixed_batch(self, messages: int) -> bytes:
        """A batch as the Spark sink sends it: each message has a key, a tag and a property."""
        elements = []
        for _ in range(messages):
            self._number += 1
            text = encode_properties_text(
                {
                    "color": "red",
                    "KEYS": f"k{self._number}",
                    "TAGS": "AB"[self._number % 2],
                    "WAIT": "true",
                    "UNIQ_KEY": self._ids.next(),
                }
            )
            elements.append(BatchElement(0, BODY, text.encode()))
        text = encode_properties_text({"WAIT": "true"})
        return self.frame(self._request(SendBatchMessage, text, batch=True), JSON, encode_batch(elements))

    def end(self, half: Command, header_type: int) -> bytes:
        """The commit of a half message, built from the answer to its send."""
        fields = half.fields or {}
        return self.frame(
            EndTransaction(
                producer_group="bench",
                tran_state_table_offset=int(fields["queueOffset"]),
                commit_log_offset=int(fields["msgId"][16:], 16),
                commit_or_rollback=COMMIT,
                msg_id=fields["transactionId"],
                transaction_id=fields["transactionId"],
            ),
            header_type,
        )

    def ack(self, header_type: int) -> bytes:
        """The ack of a message that was popped with sixteen others."""
        self._number += 1
        queue_id, offset = self._number % QUEUES, self._number % 900
        now_ms = time.time_ns() // 1_000_000
        receipt = Receipt(offset // 16 * 16, now_ms, 60_000, 0, "0", "broker-a", queue_id, offset)
        request = AckMessage(
            consumer_group="bench", topic=TOPIC, queue_id=queue_id, extra_info=str(receipt), offset=offset
        )
        return self.frame(request, header_type)

    def _request(
        self, cls: type[SendMessage | SendMessageV2], text: str, *, batch: bool = False
    ) -> SendMessage | SendMessageV2:
        return cls(
            producer_group="bench",
            topic=TOPIC,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=self._opaque % QUEUES,
            sys_flag=0,
            born_timestamp=time.time_ns() // 1_000_000,
            flag=0,
            properties=text,
            reconsume_times=0,
            batch=batch,
        )


class Bench:
    """One broker, one connection to it."""

    def __init__(self, node: Node, socket: Socket | None = None) -> None:
        self._socket = Socket() if socket is None else socket
        self._connection = Connection(node.server)
        self._connection.connection_made(self._socket)
        self.frames = Frames()

    async def prepare(self, frame: bytes) -> None:
        """Let the broker handle a request that is not measured."""
        self._connection.data_received(frame)
        await asyncio.sleep(0)
        self._socket.written.clear()

    async def feed(
        self, frames: Iterator[bytes], messages_a_frame: int = 1, frames_a_read: int = FRAMES_A_READ
    ) -> tuple[float, list[Command]]:
        """This thread's microseconds per message, and the answers."""
        slices: list[float] = []
        replies: list[Command] = []
        cutter = FrameCutter()
        slice_reads = max(SLICE_READS // messages_a_frame, 1)
        while reads := [b"".join(islice(frames, frames_a_read)) for _ in range(slice_reads)]:
            if not reads[-1]:
                break
            received = self._connection.data_received
            began_ns = time.thread_time_ns()
            for data in reads:
                received(data)
                while self._connection._unhandled:  # noqa: ASYNC110 - too much for one pass: the loop goes on
                    await asyncio.sleep(0)
            spent_ns = time.thread_time_ns() - began_ns
            slices.append(spent_ns / 1000 / (slice_reads * frames_a_read * messages_a_frame))
            replies += cutter.feed(b"".join(self._socket.written))
            self._socket.written.clear()
            await asyncio.sleep(0)  # what the broker deferred
        assert replies, "too few messages for one slice"
        assert all(reply.code == 0 for reply in replies), replies[0].remark
        return sorted(slices)[len(slices) // 4], replies


async def measure(bench: Bench, name: str, messages: int) -> float:
    """One row."""
    frames = bench.frames

    def sends(
        cls: type[SendMessage | SendMessageV2], header_type: int, properties: dict[str, str]
    ) -> Iterator[bytes]:
        return (frames.send(cls, header_type, properties) for _ in range(messages))

    half = {"TRAN_MSG": "true", "PGROUP": "bench"}
    rows: dict[str, Callable[[], Iterator[bytes]]] = {
        "310, JSON, unique key": lambda: sends(SendMessageV2, JSON, {}),
        "310, JSON, tag and key": lambda: sends(SendMessageV2, JSON, KEYED),
        "310, binary, unique key": lambda: sends(SendMessageV2, ROCKETMQ, {}),
        "310, JSON, unlike": lambda: (frames.unlike(SendMessageV2, JSON) for _ in range(messages)),
        "310, binary, unlike": lambda: (frames.unlike(SendMessageV2, ROCKETMQ) for _ in range(messages)),
        "10, JSON, unlike": lambda: (frames.unlike(SendMessage, JSON) for _ in range(messages)),
        "delay level, JSON": lambda: sends(SendMessageV2, JSON, {"DELAY": "18"}),
        "timed, absolute": lambda: sends(
            SendMessageV2, JSON, {"TIMER_DELIVER_MS": str(time.time_ns() // 1_000_000 + 3_600_000)}
        ),
        "10, JSON, tag and key": lambda: sends(SendMessage, JSON, KEYED),
        "half, JSON": lambda: sends(SendMessageV2, JSON, half),
        "ack, JSON": lambda: (frames.ack(JSON) for _ in range(messages)),
        "timed, binary": lambda: sends(SendMessageV2, ROCKETMQ, {"TIMER_DELAY_SEC": "3600"}),
    }
    if name.endswith(" a read"):
        kind, _, few = name.removesuffix(" a read").rpartition(", ")
        return (await bench.feed(rows[kind](), frames_a_read=int(few)))[0]
    if name == "batch of 16, JSON":
        batches = (frames.batch(JSON) for _ in range(messages // BATCH))
        return (await bench.feed(batches, BATCH))[0]
    if name in MIXED_ROWS:
        size = MIXED_ROWS[name]
        batches = (frames.mixed_batch(size) for _ in range(messages // size))
        return (await bench.feed(batches, size, max(BATCH * FRAMES_A_READ // size, 1)))[0]
    if name == "commit, JSON":
        _, halves = await bench.feed(rows["half, JSON"]())
        return (await bench.feed(frames.end(reply, JSON) for reply in halves))[0]
    return (await bench.feed(rows[name]()))[0]


FEW_FRAMES = (1, 2, 4)
FEW_ROWS = tuple(
    f"{kind}, {few} a read"
    for few in FEW_FRAMES
    for kind in (
        "310, JSON, unique key",
        "310, JSON, tag and key",
        "310, binary, unique key",
        "310, JSON, unlike",
        "310, binary, unlike",
        "10, JSON, unlike",
    )
)
MIXED_ROWS = {f"batch of {size}, mixed": size for size in MIXED_BATCHES}
ROWS = (
    "310, JSON, unique key",
    "310, JSON, tag and key",
    "310, binary, unique key",
    "10, JSON, tag and key",
    "310, JSON, unlike",
    "310, binary, unlike",
    "10, JSON, unlike",
    *FEW_ROWS,
    "batch of 16, JSON",
    *MIXED_ROWS,
    "half, JSON",
    "commit, JSON",
    "timed, binary",
    "timed, absolute",
    "delay level, JSON",
    "ack, JSON",
)


async def measure_all(folder: Path, names: list[str], messages: int) -> None:
    # No producer is online for checks of the remaining half messages.
    async with started_node(folder, transaction_check_interval=3_600_000) as node:
        bench = Bench(node)
        await bench.feed(bench.frames.send(SendMessageV2, JSON, {}) for _ in range(4000))
        for name in names:
            print(f"{name:32} {await measure(bench, name, messages):6.2f} us", flush=True)


def main() -> None:
    options = parsed(__doc__, messages=40_000, only="")
    names = [name for name in ROWS if options.only in name]
    run(lambda folder: measure_all(folder, names, options.messages))


if __name__ == "__main__":
    main()
