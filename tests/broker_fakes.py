"""A broker without sockets for tests of handlers: real store and tables in a temporary folder, everything else faked.

`make_broker` builds it, `FakeConnection` stands for a client, `ask` runs one request through the broker's handler
table as a connection would. Time is a `VirtualClock`. It registers nowhere, and serves every request.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.cluster.name_server_link import Connect
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.broker.handler_modules import HANDLER_MODULES
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.network.dispatch import BROKER, HELD, Answer, Result
from pocketmq.broker.state.broker_state import Identity
from pocketmq.broker.storing.messages import record_at_offset
from pocketmq.broker.time.timers import LONGEST_SLEEP_MS, Timer
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.errors import BodyError, FieldError
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION
from pocketmq.protocol.message.offset_id import encode_message_id, pack_host
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.requests.send import SendMessageV2
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Reply, Request, from_fields, to_fields
from pocketmq.store import NewMessage, StoreConfig, VirtualClock
from pocketmq.testing.time.virtual_timers import VirtualTimers

assert HANDLER_MODULES, "importing them fills the tables of handlers"

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

    def notify(self, request: Request[Any], body: RawBody | None = None) -> None:
        self.notices.append((request, bytes(body or b"")))

    async def exchange(
        self, request: Request[Any], body: RawBody | None = None, *, timeout_seconds: float
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

    def at_pass_end(self, complete: Callable[[], None]) -> None:
        complete()

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


class FakeLoop(VirtualTimers):
    """The event loop's timers on a virtual clock; `run_for` lets time pass from one to the next."""

    def call_at(self, when_ms: int, callback: Callable[[], None]) -> Timer:
        """As `Timers` do: no longer than a second, because a test may set the calendar."""
        return self.call_later(min(max(when_ms - self.clock.now_ms(), 0), LONGEST_SLEEP_MS) / 1000, callback)

    def call_by_wall(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """A test's clock is the wall's, too."""
        return self.call_later(seconds, callback)

    def run_for(self, ms: int, most: int = 1 << 30) -> None:
        """Let time pass; with `most`, no more timers than that fire."""
        end_ms = self.clock.elapsed_ms + ms
        for _ in range(most):
            due_ms = self.next_due_ms(end_ms)
            elapsed_ms = self.clock.elapsed_ms
            self.clock.advance(max((end_ms if due_ms is None else due_ms) - elapsed_ms, 0))
            if self.clock.elapsed_ms > elapsed_ms:
                self.fill_gaps()
            if due_ms is None:
                return
            self.run_next(due_ms)


class WallLoop:
    """The time and timers of an event loop, for waits that are never virtual: put it in the place of a part's loop."""

    def __init__(self) -> None:
        self._now = 0.0
        self._timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Callable[[], None]) -> object:
        self._timers.append((when, callback))
        return callback

    def call_later(self, seconds: float, callback: Callable[[], None]) -> object:
        return self.call_at(self._now + seconds, callback)

    def run_for(self, seconds: float) -> None:
        """Let time pass from one timer to the next."""
        end = self._now + seconds
        while due := [timer for timer in self._timers if timer[0] <= end]:
            first = min(due, key=lambda timer: timer[0])
            self._timers.remove(first)
            self._now = first[0]
            first[1]()
        self._now = end


class Asked(msgspec.Struct):
    """An answer as it would go on the wire."""

    code: int
    remark: str | None
    fields: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body read as fastjson reads it; object keys are MessageQueues."""
        return fastjson.loads(self.body, max_bytes=fastjson.MAX_BYTES)


def make_broker(
    folder: Path,
    clock: VirtualClock,
    *,
    emulate: int = 5,
    store: dict[str, Any] | None = None,
    loop: FakeLoop | None = None,
    connect: Connect | None = None,
    **settings: Any,
) -> Broker:
    """An open broker; end it with `close_broker`. `settings` are fields of BrokerConfig, `store` of StoreConfig.

    Its timers run on the virtual clock, those of `loop` if one is given. Nothing is started.
    """
    sizes: dict[str, Any] = {
        "mapped_file_size_commit_log": 1 << 20,
        "mapped_file_size_consume_queue": 20_000,
        "max_hash_slot_num": 1000,
        "max_index_num": 4000,
    }
    store_config = StoreConfig(store_path_root_dir=str(folder), **{**sizes, **(store or {})})
    config = BrokerConfig(store=store_config, emulate=cast(Any, emulate), **settings)
    identity = Identity(
        address=f"127.0.0.1:{config.listen_port}",
        store_host=pack_host("127.0.0.1", config.listen_port),
        ha_address=f"127.0.0.1:{config.listen_port + 1}",
        boot_time_ms=clock.now_ms(),
    )
    broker = Broker(
        config,
        clock,
        identity,
        connect=connect or _no_peers,
        timers=loop or FakeLoop(clock),
        writes_in_background=False,
    )
    broker.open()
    return broker


async def _no_peers(address: str) -> Connection:
    raise PeerError(f"cannot connect to {address}: this broker has no sockets")


def close_broker(broker: Broker) -> None:
    """Save everything and close the store."""
    broker.tables.stop()
    broker.close()


def connect(broker: Broker, port: int = 50_000) -> FakeConnection:
    """A client's connection; the broker is notified of its end."""
    return FakeConnection(port, lambda connection: broker.membership.connection_closed(connection))


async def send(
    broker: Broker,
    request: Request[Any],
    body: RawBody = b"",
    *,
    connection: FakeConnection | None = None,
    language: str = "JAVA",
    version: int = V5_5_0,
) -> Result:
    """Run a request through its handler, by way of its header fields; refusals become answers as on a connection."""
    handler = BROKER.table[request.code]
    part = next(part for part in broker.parts if type(part) is handler.part_type)
    command = Command(
        request.code, 1, 0, None, to_fields(request), body or None, language=language, version=version
    )
    caller = connection or FakeConnection()
    late = len(caller.late_answers)
    try:
        parsed = from_fields(handler.request_type, command.fields)
        arguments = (parsed,) if handler.call_type is None else (parsed, handler.call_type(caller, command))
        result = handler.function(part, *arguments)
        if inspect.isawaitable(result):
            result = await result
    except Refusal as error:
        return Answer(code=error.code, remark=error.remark)
    except (FieldError, BodyError) as error:
        return Answer(code=ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")
    if result is HELD and len(caller.late_answers) > late:
        result = caller.late_answers.pop()
    return cast(Result, result)


async def ask(broker: Broker, request: Request[Any], body: RawBody = b"", **about: Any) -> Asked:
    """The answer to a request that is answered at once; `about` as for `send`."""
    result = await send(broker, request, body, **about)
    assert result is not HELD
    return as_asked(cast(Answer | Reply | Body | None, result))


async def after_the_flush(broker: Broker, request: Request[Any], body: RawBody = b"") -> Asked:
    """The answer, which comes with the flush and not before."""
    connection = FakeConnection()
    assert await send(broker, request, body, connection=connection) is HELD
    await turns()
    assert connection.late_answers == []
    broker.store.flush_pass()
    await turns()
    (answer,) = connection.late_answers
    return as_asked(answer)


def as_asked(result: Answer | Reply | Body | None) -> Asked:
    """What a handler returned, as the client sees it."""
    if isinstance(result, Body):
        return Asked(0, None, {}, result.encode())
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
            born_timestamp=now_ms,
            born_host=pack_host("127.0.0.1", 50_000),
            store_host=broker.identity.store_host,
        )
    )
    return encode_message_id(broker.identity.store_host, result.position)


def send_request(topic: str = "orders", kind: Any = SendMessageV2, **changes: Any) -> Any:
    """A send as a producer asks for it; `changes` by the names of its fields."""
    fields: dict[str, Any] = {
        "producer_group": "pg",
        "topic": topic,
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
    }
    return kind(**{**fields, **changes})


def pull_request(offset: int = 0, **changes: Any) -> PullMessage:
    """A pull of queue 0 that does not wait."""
    fields: dict[str, Any] = {
        "consumer_group": "g",
        "topic": "orders",
        "queue_id": 0,
        "queue_offset": offset,
        "max_msg_nums": 32,
        "sys_flag": PULL_SUBSCRIPTION,
        "commit_offset": 0,
        "suspend_timeout_millis": 15_000,
        "subscription": "*",
        "sub_version": 0,
    }
    return PullMessage(**{**fields, **changes})


def record_at(broker: Broker, topic: str = "orders", queue_id: int = 0, offset: int = 0) -> Record:
    """The message that is stored there; from the end with a negative offset."""
    queue = broker.store.consume_queue(topic, queue_id)
    assert queue is not None, f"nothing in {topic} {queue_id}"
    record = record_at_offset(broker.store, queue, offset if offset >= 0 else queue.max_offset + offset)
    assert record is not None, f"nothing at {topic} {queue_id} {offset}"
    return record


def records(broker: Broker, topic: str, queue_id: int = 0) -> list[Record]:
    """The messages of a queue."""
    count = broker.store.max_offset(topic, queue_id)
    return [record_at(broker, topic, queue_id, offset) for offset in range(count)]


async def turns(count: int = 6) -> None:
    """Let the event loop go on."""
    for _ in range(count):
        await asyncio.sleep(0)


def _joined(body: RawBody | Sequence[RawBody] | None) -> bytes:
    if body is None:
        return b""
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    return b"".join(bytes(part) for part in body)
