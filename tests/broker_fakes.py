"""A broker without sockets for tests of handlers: real store and tables in a temporary folder, everything else faked.

`make_broker` builds it, `FakeConnection` stands for a client, `ask` runs one request through the broker's handler
table as a connection would. Time is a `VirtualClock`. It registers nowhere, and serves the requests of the handler
modules that the test imports.
"""

import asyncio
import heapq
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.cluster.registration import Registration
from pocketmq.broker.cluster.replication_master import ReplicationMaster
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.delayed.delayed_messages import DelayedMessages
from pocketmq.broker.delayed.timer_messages import TimedMessages
from pocketmq.broker.errors import BrokerError, PeerError
from pocketmq.broker.filters.consumer_filters import ConsumerFilters
from pocketmq.broker.first_position.broadcast_offsets import BroadcastOffsets
from pocketmq.broker.membership.consumer_groups import ConsumerGroups
from pocketmq.broker.membership.consumer_notices import ConsumerNotices
from pocketmq.broker.membership.producer_groups import ProducerGroups
from pocketmq.broker.membership.queue_locks import QueueLocks
from pocketmq.broker.network.dispatch import BROKER, HELD, Answer, Call, Held, Result
from pocketmq.broker.pop import popping
from pocketmq.broker.pulling.pull_waiters import PullWaiters
from pocketmq.broker.state.statistics import Statistics
from pocketmq.broker.state.table_saver import Rhythm
from pocketmq.broker.transactions.half_messages import HalfMessages
from pocketmq.broker.transactions.transaction_check import TransactionCheck
from pocketmq.protocol.errors import BodyError, FieldError
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.message.offset_id import encode_message_id, pack_host
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.command import Body, Command
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Reply, Request, from_fields, to_fields
from pocketmq.store import NewMessage
from pocketmq.store.clock import VirtualClock
from pocketmq.store.config import StoreConfig
from pocketmq.store.message_store import MessageStore
from pocketmq.store.retention import Retention
from pocketmq.store.tables.built_in_topics import TopicSettings
from pocketmq.store.tables.delay_table import DelayTable
from pocketmq.store.tables.group_table import GroupSettings, GroupTable
from pocketmq.store.tables.metric_table import MetricTable
from pocketmq.store.tables.offset_table import OffsetTable
from pocketmq.store.tables.topic_table import TopicTable

MakeBroker = Callable[..., Broker]
"""The fixture `broker_maker`: settings in, an open broker out, closed when the test ends."""


class FakeConnection:
    """A client's connection: keeps what it is sent, answers what it was told to answer."""

    def __init__(
        self, port: int = 50_000, on_close: Callable[["FakeConnection"], None] | None = None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.peer = f"127.0.0.1:{port}"
        self.packed_host = pack_host("127.0.0.1", port)
        self.closed = False
        self.notices: list[tuple[Request[Any], bytes]] = []
        """One-way requests received, with their bodies."""
        self.questions: list[tuple[Request[Any], bytes]] = []
        """Requests received that wanted an answer."""
        self.answers_by_code: dict[int, Command | PeerError] = {}
        """What this client answers; a code not in here is never answered."""
        self.late_answers: list[Result] = []
        """Answers to calls that were held."""
        self._on_close = on_close

    def notify(self, request: Request[Any], body: Body | None = None) -> None:
        self.notices.append((request, bytes(body or b"")))

    async def exchange(
        self, request: Request[Any], body: Body | None = None, *, timeout_seconds: float
    ) -> Command:
        self.questions.append((request, bytes(body or b"")))
        answer = self.answers_by_code.get(request.code)
        if answer is None:
            raise PeerError(f"{self.peer} did not answer {request.name} in {timeout_seconds:g} s")
        if isinstance(answer, PeerError):
            raise answer
        return answer

    def answer(self, command: Command, result: Result) -> None:
        self.late_answers.append(result)

    def close(self) -> None:
        """What the peer's end or ours does to a connection."""
        if self.closed:
            return
        self.closed = True
        if self._on_close is not None:
            self._on_close(self)

    def take_notices(self) -> list[Request[Any]]:
        """The one-way requests since the last look."""
        requests = [request for request, _ in self.notices]
        self.notices.clear()
        return requests


class FakeTimer:
    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class FakeLoop:
    """Timers on a virtual clock; `run_for` lets time pass from one to the next."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._queue: list[tuple[int, int, FakeTimer]] = []
        self._count = 0
        self.fired = 0

    def call_later(self, seconds: float, action: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(action)
        self._count += 1
        heapq.heappush(self._queue, (self._clock.monotonic_ms() + round(seconds * 1000), self._count, timer))
        return timer

    @property
    def waiting(self) -> int:
        return sum(timer.action is not None for _, _, timer in self._queue)

    def run_for(self, ms: int, most: int = 1 << 30) -> None:
        """Let time pass; with `most`, no more timers than that fire."""
        end_ms = self._clock.monotonic_ms() + ms
        while self._queue and self._queue[0][0] <= end_ms:
            due_ms, _, timer = heapq.heappop(self._queue)
            self._clock.advance(max(due_ms - self._clock.monotonic_ms(), 0))
            if timer.action is not None:
                if not most:
                    return
                most -= 1
                self.fired += 1
                timer.action()
        self._clock.advance(end_ms - self._clock.monotonic_ms())


class Asked(msgspec.Struct):
    """An answer as it would go on the wire."""

    code: int
    remark: str | None
    fields: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body read as fastjson reads it; object keys are MessageQueues."""
        return fastjson.loads(self.body)


def make_broker(
    folder: Path,
    clock: VirtualClock,
    *,
    emulate: int = 5,
    store: dict[str, Any] | None = None,
    **settings: Any,
) -> Broker:
    """An open broker; end it with `close_broker`. `settings` are fields of BrokerConfig, `store` of StoreConfig."""
    sizes: dict[str, Any] = {
        "mapped_file_size_commit_log": 1 << 20,
        "mapped_file_size_consume_queue": 20_000,
        "max_hash_slot_num": 1000,
        "max_index_num": 4000,
    }
    store_config = StoreConfig(store_path_root_dir=str(folder), **{**sizes, **(store or {})})
    config = BrokerConfig(store=store_config, emulate=cast(Any, emulate), **settings)
    broker = Broker()
    broker.config, broker.clock = config, clock
    broker.boot_time_ms = clock.now_ms()
    broker.address, broker.store_host = "127.0.0.1:10911", pack_host("127.0.0.1", 10911)
    tables = folder / "config"
    broker.topics = TopicTable(tables, clock.now_ms, _topic_settings(config))
    broker.groups = GroupTable(
        tables,
        clock.now_ms,
        GroupSettings(auto_create_subscription_group=config.auto_create_subscription_group, emulate=emulate),
    )
    broker.offsets = OffsetTable(tables, clock.now_ms)
    broker.delays = DelayTable(tables, clock.now_ms, store_config.message_delay_level)
    broker.waiters = PullWaiters(asyncio.get_running_loop(), 1000)
    broker.store = MessageStore(
        store_config,
        clock,
        on_arrival=partial(_arrived, broker),
        flush_in_background=False,
    )
    broker.store.open()
    broker.retention = Retention(config.store, broker.store, clock)
    broker.notices = ConsumerNotices(broker)
    broker.filters = ConsumerFilters(config, clock.now_ms)
    broker.consumers = ConsumerGroups(
        broker.notices.changed, emulate=emulate, on_gone=broker.filters.unregister
    )
    popping.build(broker)
    broker.producers = ProducerGroups(emulate=emulate)
    broker.locks = QueueLocks()
    broker.broadcasts = BroadcastOffsets(broker)
    broker.statistics = Statistics(broker)
    broker.rhythm = Rhythm()
    broker.delayed = DelayedMessages(broker)
    broker.timed = TimedMessages(broker)
    broker.half_messages = HalfMessages(broker)
    broker.transaction_check = TransactionCheck(broker)
    broker.open_transactions = MetricTable(tables, clock.now_ms, "transactionCount")
    broker.registration = Registration(broker)
    broker.replication = ReplicationMaster(broker)
    broker.unique_ids = UniqueIdMaker(pack_host("127.0.0.1", 0)[:-4], 1, 2, clock.now_ms)
    return broker


def _topic_settings(config: BrokerConfig) -> TopicSettings:
    return TopicSettings(
        broker_cluster_name=config.broker_cluster_name,
        broker_name=config.broker_name,
        auto_create_topic_enable=config.auto_create_topic_enable,
        default_topic_queue_nums=config.default_topic_queue_nums,
        trace_topic_enable=config.trace_topic_enable,
        emulate=config.emulate,
    )


def _arrived(
    broker: Broker,
    topic: str,
    queue_id: int,
    offset: int,
    tags_code: int,
    properties: dict[str, str] | None,
    store_timestamp: int,
) -> None:
    broker.waiters.arrived(topic, queue_id, offset, tags_code, properties)
    popping.arrived(broker, topic, queue_id, offset, tags_code, properties)
    if topic == TIMER_TOPIC:
        broker.timed.arrived(offset, properties)


def close_broker(broker: Broker) -> None:
    broker.store.close()


def connect(broker: Broker, port: int = 50_000) -> FakeConnection:
    """A client's connection whose end the broker hears of."""

    def gone(connection: FakeConnection) -> None:
        broker.consumers.connection_closed(connection)
        broker.producers.connection_closed(connection)

    return FakeConnection(port, gone)


async def send(
    broker: Broker,
    request: Request[Any],
    body: Body = b"",
    *,
    connection: FakeConnection | None = None,
    language: str = "JAVA",
    version: int = V5_5_0,
) -> Answer | Reply | Held | None:
    """Run a request through its handler, by way of its header fields; refusals become answers as on a connection."""
    handler = BROKER.table[request.code]
    command = Command(
        request.code, 1, 0, None, to_fields(request), body or None, language=language, version=version
    )
    caller = connection or FakeConnection()
    try:
        parsed = from_fields(handler.request_type, command.fields)
        arguments = (parsed, Call(caller, command)) if handler.wants_call else (parsed,)
        result = handler.function(broker, *arguments)
        if inspect.isawaitable(result):
            result = await result
    except BrokerError as error:
        return Answer(code=error.code, remark=error.remark)
    except (FieldError, BodyError) as error:
        return Answer(code=ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")
    return cast(Answer | Reply | Held | None, result)


async def ask(
    broker: Broker,
    request: Request[Any],
    body: Body = b"",
    *,
    connection: FakeConnection | None = None,
    language: str = "JAVA",
    version: int = V5_5_0,
) -> Asked:
    """The answer to a request that is answered at once."""
    result = await send(broker, request, body, connection=connection, language=language, version=version)
    assert result is not HELD
    return as_asked(cast(Answer | Reply | None, result))


def as_asked(result: Answer | Reply | None) -> Asked:
    """What a handler returned, as the client sees it."""
    if not isinstance(result, Answer):
        return Asked(0, None, {} if result is None else to_fields(result), b"")
    fields = {} if result.reply is None else to_fields(result.reply)
    return Asked(result.code, result.remark, {**fields, **(result.fields or {})}, _joined(result.body))


def store_message(
    broker: Broker,
    topic: str,
    queue_id: int = 0,
    body: bytes = b"hello",
    properties: dict[str, str] | None = None,
) -> str:
    """Put a message into the store past all handlers; its offset message id."""
    names = properties or {}
    now_ms = broker.clock.now_ms()
    result = broker.store.append(
        NewMessage(
            topic=topic,
            queue_id=queue_id,
            body=body,
            properties=encode_properties(names),
            property_map=names,
            born_timestamp=now_ms,
            born_host=pack_host("127.0.0.1", 50_000),
            store_host=broker.store_host,
        )
    )
    return encode_message_id(broker.store_host, result.position)


def _joined(body: Body | Sequence[Body] | None) -> bytes:
    if body is None:
        return b""
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    return b"".join(bytes(part) for part in body)
