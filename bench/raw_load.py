"""A load of sends, as fast as one Python process can send, with latencies. Not the client: it measures a broker.

Frames are built once and only their opaque changes, so that the measured time is mostly the server's. Each connection
keeps `depth` sends in flight: depth 1 is one synchronous sender. Works with any RocketMQ broker. Run by `load.py`.
"""

import asyncio
import struct
import time
from collections.abc import Mapping
from functools import partial
from typing import Final, cast

import msgspec
from pocketmq.client import NotReachable
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.send import SendMessageV2
from pocketmq.protocol.wire.command import ROCKETMQ, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.schema import to_fields

_OPAQUE_AT: Final = 8 + 5  # prefix, then code, language and version of the binary header
_OPAQUE: Final = struct.Struct(">i")


class LoadResult(msgspec.Struct, frozen=True):
    """Counts, seconds, and latencies in milliseconds, ascending."""

    sent: int
    failed: int
    seconds: float
    latencies_ms: list[float]

    @property
    def per_second(self) -> float:
        return self.sent / self.seconds if self.seconds else 0.0

    def percentile_ms(self, percent: float) -> float:
        """The latency that `percent` of the sends did not exceed; 0 without sends."""
        if not self.latencies_ms:
            return 0.0
        index = min(len(self.latencies_ms) - 1, int(len(self.latencies_ms) * percent / 100))
        return self.latencies_ms[index]


async def load(
    address: str,
    topic: str,
    *,
    queue_nums: int,
    connections: int,
    depth: int,
    body_bytes: int,
    seconds: float,
    properties: Mapping[str, str] | None = None,
) -> LoadResult:
    """Send for `seconds` over `connections`, then wait for the last replies; `NotReachable` if it cannot connect.

    `properties` are those of every message, besides the usual ones.
    """
    loop = asyncio.get_running_loop()
    host, _, port = address.rpartition(":")
    senders = []
    for number in range(connections):
        frame = _frame(topic, number % queue_nums, body_bytes, properties or {})
        protocol = partial(_Sender, frame, depth)
        try:
            _, sender = await loop.create_connection(protocol, host, int(port))
        except OSError as error:
            raise NotReachable(f"cannot connect to {address}: {error}") from error
        senders.append(sender)
    started = time.perf_counter()
    for sender in senders:
        sender.begin(started + seconds)
    for sender in senders:
        await sender.done
    elapsed = time.perf_counter() - started
    for sender in senders:
        sender.close()
    latencies = sorted(latency for sender in senders for latency in sender.latencies_ms)
    return LoadResult(len(latencies), sum(sender.failed for sender in senders), elapsed, latencies)


def _frame(topic: str, queue_id: int, body_bytes: int, properties: Mapping[str, str]) -> bytearray:
    request = SendMessageV2(
        producer_group="load",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=0,
        properties=encode_properties_text(
            {"UNIQ_KEY": "7F0000010000" + "0" * 20, "WAIT": "true", "TAGS": "load", **properties}
        ),
        reconsume_times=0,
    )
    command = Command(
        request.code, 0, 0, None, to_fields(request), b"x" * body_bytes, "PYTHON", V5_5_0, ROCKETMQ
    )
    return bytearray(encode_frame(command))


class _Sender(asyncio.Protocol):
    """One connection with `depth` sends in flight."""

    def __init__(self, frame: bytearray, depth: int) -> None:
        self._frame = frame
        self._depth = depth
        self._cutter = FrameCutter()
        self._sent_at: dict[int, float] = {}
        self._next = 0
        self._end = 0.0
        self.latencies_ms: list[float] = []
        self.failed = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def begin(self, end: float) -> None:
        self._end = end
        self._send(self._depth)

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        replies = self._cutter.feed(data)
        for reply in replies:
            self.latencies_ms.append((now - self._sent_at.pop(reply.opaque)) * 1000)
            self.failed += reply.code != 0
        if now < self._end:
            self._send(len(replies))
        elif not self._sent_at and not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(NotReachable("the broker closed the connection"))

    def _send(self, count: int) -> None:
        now = time.perf_counter()
        frames = []
        for _ in range(count):
            _OPAQUE.pack_into(self._frame, _OPAQUE_AT, self._next)
            self._sent_at[self._next] = now
            self._next += 1
            frames.append(bytes(self._frame))
        self._transport.write(b"".join(frames))
