"""What the rows of `scale.py` measure with: an embedded server, connections to it, the clock of its thread, requests.

Figures are processor time of the server's thread (its loop), which other programs on the machine hardly change: the
lower quartile over some slices. What the thread does that writes tables is a figure of its own.
"""

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final, Self

from pocketmq.broker.process import grow_descriptor_table, raise_file_limit
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.offset import UpdateConsumerOffset
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.requests.send import SendMessageV2
from pocketmq.protocol.requests.topic import UpdateAndCreateTopic
from pocketmq.protocol.wire.command import JSON, RESPONSE_FLAG, Command, RawBody
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.schema import Request, to_fields
from pocketmq.testing import EmbeddedServer

TOPIC: Final = "measured"
GROUP: Final = "readers"
QUEUES: Final = 4
AT_ONCE: Final = 8
SLICES, SLICE = 12, 64
FILLED_AT_ONCE: Final = 256
WRITER: Final = "pocketmq-json"
"""The thread that writes tables."""

Figures = Iterator[tuple[int, dict[str, float]]]


def frame_of(request: Request[Any], body: RawBody | None = None) -> bytes:
    fields = to_fields(request)
    return encode_frame(Command(request.code, 1, 0, None, fields, body, "JAVA", V5_5_0, JSON))


class Bench:
    """A server in a thread of this process, and connections to its broker and its name server."""

    def __init__(self, **settings: Any) -> None:
        self.server = EmbeddedServer(maxCallsPerConnection=1 << 20, **settings)
        self._running = ExitStack()

    def __enter__(self) -> Self:
        self._running.enter_context(self.server)
        self.broker = self.connected(self.server.broker_addr)
        self.name_server = self.connected(self.server.namesrv_addr)
        self._loop_clock = _clock(self.server._thread._thread)
        self.topics(0, 1, prefix=TOPIC)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def connected(self, address: str) -> socket.socket:
        host, _, port = address.partition(":")
        peer = self._running.enter_context(socket.create_connection((host, int(port))))
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return peer

    # -- asking

    def ask(self, frames: Sequence[bytes], *, peer: socket.socket | None = None) -> list[Command]:
        """The answers to requests that are sent together."""
        peer = peer or self.broker
        peer.sendall(b"".join(frames))
        cutter, found = FrameCutter(), list[Command]()
        while len(found) < len(frames):
            found += (one for one in cutter.feed(peer.recv(1 << 18)) if one.flag & RESPONSE_FLAG)
        return found

    def ask_all(self, frames: Iterator[bytes], *, peer: socket.socket | None = None) -> None:
        while some := list(itertools.islice(frames, FILLED_AT_ONCE)):
            accepted(self.ask(some, peer=peer))

    # -- measuring

    def loop_us(self) -> float:
        """Processor time of the server's thread since it began."""
        return time.clock_gettime_ns(self._loop_clock) / 1000

    def cost(
        self,
        frame: Callable[[], bytes],
        *,
        at_once: int = AT_ONCE,
        slices: int = SLICES,
        size: int = SLICE,
        peer: socket.socket | None = None,
    ) -> float:
        """Microseconds of the loop for each of such requests, so many on their way at a time."""
        taken = []
        for _ in range(slices + 1):
            rounds = [[frame() for _ in range(at_once)] for _ in range(size // at_once)]
            begun = self.loop_us()
            for frames in rounds:
                accepted(self.ask(frames, peer=peer))
            taken.append((self.loop_us() - begun) / size)
        return quartile(taken[1:])

    def settled_cost(self, frame: Callable[[], bytes]) -> tuple[float, float]:
        """As `cost` for single requests, with what they leave to be done: microseconds of the loop, and of the thread
        that writes tables."""
        taken, written = [], []
        for number in range(7):
            begun, writer = self.loop_us(), _writer_us()
            accepted(self.ask([frame()]))
            self.settle()
            if number:  # the first starts the writing thread
                taken.append(self.loop_us() - begun)
                written.append(_writer_us() - writer)
        return quartile(taken), quartile(written)

    def settle(self) -> None:
        async def settled() -> None:
            broker = self.server.broker
            await broker.tables.wait_until_saved(broker.topics)
            await broker.tables.wait_until_saved(broker.groups)
            await broker.tables.wait_until_saved(broker.offsets)
            await broker.cluster.registration.wait_until_sent()

        self.server.run(settled())
        time.sleep(0.03)

    def turn(self, function: Callable[[], object], times: int = 5) -> float:
        """Microseconds of the loop for a call in it."""
        taken = []
        for _ in range(times):
            begun = self.loop_us()
            self.server.call(function)
            taken.append(self.loop_us() - begun)
        return quartile(taken)

    # -- filling

    def topics(self, begin: int, end: int, *, prefix: str = "topic-") -> None:
        def fill() -> None:
            for number in range(begin, end):
                name = prefix if prefix == TOPIC else f"{prefix}{number}"
                self.server.broker.topics.update(
                    TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
                )

        self.server.call(fill)
        self.settle()

    def groups(self, begin: int, end: int) -> None:
        def fill() -> None:
            for number in range(begin, end):
                self.server.broker.groups.find_or_create(f"group-{number}")

        self.server.call(fill)
        self.settle()


# -- requests


_numbers = itertools.count()


def fresh() -> int:
    """A number that was not used before."""
    return next(_numbers)


def unique_id(number: int) -> str:
    return f"C0000202796B7ED92C9068B1{number:08}"


def send(topic: str = TOPIC, queue_id: int = 0, born_ms: int = 1_700_000_000_000, **properties: str) -> bytes:
    texts = {**properties, "UNIQ_KEY": unique_id(fresh()), "WAIT": "true"}
    request = SendMessageV2(
        producer_group="producers",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=queue_id,
        sys_flag=4 if "TRAN_MSG" in properties else 0,
        born_timestamp=born_ms,
        flag=0,
        properties=encode_properties_text(texts),
        reconsume_times=0,
    )
    return frame_of(request, b"x" * 128)


def pull(
    topic: str, queue_id: int, offset: int, count: int = 1, *, group: str = GROUP, holds: bool = False
) -> bytes:
    request = PullMessage(
        consumer_group=group,
        topic=topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=count,
        sys_flag=6 if holds else 4,
        commit_offset=0,
        suspend_timeout_millis=600_000 if holds else 0,
        subscription="*",
        sub_version=0,
        expression_type="TAG",
    )
    return frame_of(request)


def commit(group: str, topic: str = TOPIC, queue_id: int = 0) -> bytes:
    return frame_of(
        UpdateConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=1)
    )


def create(topic: str) -> bytes:
    request = UpdateAndCreateTopic(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=QUEUES,
        write_queue_nums=QUEUES,
        perm=6,
        topic_filter_type="SINGLE_TAG",
        topic_sys_flag=0,
        order=False,
    )
    return frame_of(request)


def accepted(answers: Sequence[Command]) -> None:
    refused = next((one for one in answers if one.code != 0), None)
    assert refused is None, refused


def _clock(thread: threading.Thread | None) -> int:
    assert thread is not None
    return time.pthread_getcpuclockid(thread.ident or 0)


def _writer_us() -> float:
    threads = [one for one in threading.enumerate() if one.name.startswith(WRITER)]
    return sum(time.clock_gettime_ns(_clock(one)) for one in threads) / 1000


def quartile(values: Sequence[float]) -> float:
    """The lower one: what else the machine does only ever adds."""
    return sorted(values)[len(values) // 4]


def grown(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """What there is, and what there shall be."""
    yield from zip((0, *sizes), sizes, strict=False)


def prepare() -> None:
    """What a server process does at its start."""
    raise_file_limit()
    grow_descriptor_table()
