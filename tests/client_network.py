"""A network in memory, on a clock that jumps: how long a client waits for hosts that are dead, silent or slow.

    @in_network
    async def test_it(network: Network) -> None:
        network.hosts["b0:10911"] = answering({HeartBeat.code: ok})

Loop time starts at 0 and jumps to the next timer when nothing is ready, so a wait of three seconds takes no time and is
measured exactly. A host answers requests one by one; `BLACK_HOLE` never answers a connect, `REFUSING` refuses it,
`SILENT` accepts and reads. An address without a host refuses.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pocketmq.client import Producer
from pocketmq.protocol.bodies.routes import BrokerData, QueueData, TopicRouteData
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessageReply, SendMessageV2
from pocketmq.protocol.wire.command import RESPONSE_FLAG, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import to_fields

NAMESRV = "ns:1"
Answer = Command | None
"""A reply whose opaque is set later; None: no answer, ever."""
Host = Callable[[Command], Answer]


def BLACK_HOLE(asked: Command) -> Answer:
    raise AssertionError("nobody can connect")


def REFUSING(asked: Command) -> Answer:
    raise AssertionError("nobody can connect")


def SILENT(asked: Command) -> Answer:
    return None


class _JumpingSelector(selectors.DefaultSelector):
    """Sleeps by moving the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("every task waits, and no timer is set")
        if not ready and timeout is not None and timeout > 0:
            self.now += timeout
        return ready


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose connections lead into a `Network`."""

    def __init__(self, network: "Network") -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self._network = network

    def time(self) -> float:
        return self._jumping.now

    async def create_connection(  # type: ignore[override]
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int, *, ssl: object = None
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        address = f"{host}:{port}"
        self._network.connects.append(address)
        serve = self._network.hosts.get(address, REFUSING)
        if serve is BLACK_HOLE:
            await self.create_future()
        if serve is REFUSING:
            raise ConnectionRefusedError(f"{address} refuses")
        protocol = factory()
        wire = Wire(self, self._network, address, protocol)
        protocol.connection_made(wire)
        return wire, protocol


class Wire(asyncio.Transport):
    """One connection. `lost = True` and its bytes arrive nowhere, as after a firewall forgot it."""

    def __init__(self, loop: Loop, network: "Network", address: str, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop, self._network, self.address, self._protocol = loop, network, address, protocol
        self._cutter = FrameCutter()
        self._closing = False
        self.lost = False
        self.writes = 0
        network.wires.append(self)

    def write(self, data: Any) -> None:
        self.writes += 1
        if self.lost:
            return
        for asked in self._cutter.feed(bytes(data)):
            self._network.requests.append((self._loop.time(), self.address, asked.code))
            answer = self._network.hosts[self.address](asked)
            if answer is not None and not asked.is_oneway:
                answer.opaque = asked.opaque
                delay = self._network.delays.get(self.address, 0.0)
                self._loop.call_later(delay, self._reply, encode_frame(answer))

    def _reply(self, frame: bytes) -> None:
        if not self._closing and not self.lost:
            self._protocol.data_received(frame)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close


class Network:
    """Hosts by `host:port`; `delays` in seconds before a host answers."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.delays: dict[str, float] = {}
        self.connects: list[str] = []
        self.wires: list[Wire] = []
        self.requests: list[tuple[float, str, int]] = []
        """Loop time, address and code of each request that arrived."""

    def cluster(self, *names: str, queues: int = 1) -> dict[str, TopicRouteData]:
        """A name server with the topic T on these brokers, which store all they get: b at b:1. Its routes."""
        routes = {"T": route({name: f"{name}:1" for name in names}, queues)}
        self.hosts[NAMESRV] = name_server(routes)
        self.hosts |= {f"{name}:1": broker() for name in names}
        return routes

    def run(self, scenario: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        with asyncio.Runner(loop_factory=lambda: Loop(self)) as runner:
            return runner.run(scenario())

    def drop(self, address: str) -> None:
        """End the connections to a host."""
        for wire in self.wires:
            if wire.address == address:
                wire.close()

    def count(self, code: int, address: str = "") -> int:
        return sum(asked == code and (not address or address == at) for _, at, asked in self.requests)


def in_network(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that runs in the time of its fixture `network`, and connects to its hosts."""

    @functools.wraps(test)
    def run(*, network: Network, **fixtures: Any) -> None:
        network.run(functools.partial(test, network=network, **fixtures))

    return run


def reply(fields: Mapping[str, str] | None = None, body: bytes | None = None, code: int = 0) -> Command:
    return Command(code, 0, RESPONSE_FLAG, None, dict(fields or {}), body)


def answering(answers: Mapping[int, Host]) -> Host:
    """A host that knows these codes, and refuses all others."""

    def serve(asked: Command) -> Answer:
        known = answers.get(asked.code)
        return reply(code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED) if known is None else known(asked)

    return serve


def broker(answers: Mapping[int, Host] | None = None) -> Host:
    """A broker that stores every message it gets, at offset 0."""
    stored = to_fields(SendMessageReply(msg_id="0" * 32, queue_id=0, queue_offset=0))

    def store(asked: Command) -> Answer:
        return reply({**stored, "queueId": str((asked.fields or {}).get("e", "0"))})

    known = {SendMessageV2.code: store, SendBatchMessage.code: store, HeartBeat.code: lambda asked: reply()}
    return answering(known | dict(answers or {}))


def route(brokers: Mapping[str, str], queues: int = 1) -> TopicRouteData:
    """A topic with so many queues on each of these brokers: name to address."""
    return TopicRouteData(
        queue_datas=[
            QueueData(broker_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=6)
            for name in brokers
        ],
        broker_datas=[
            BrokerData(cluster="c", broker_name=name, broker_addrs={0: address})
            for name, address in brokers.items()
        ],
    )


def name_server(routes: Mapping[str, TopicRouteData]) -> Host:
    """A name server with these routes; it reads the map at each question."""

    def find(asked: Command) -> Answer:
        found = routes.get((asked.fields or {})["topic"])
        return reply(code=ResponseCode.TOPIC_NOT_EXIST) if found is None else reply(body=found.encode())

    return answering({GetRouteInfoByTopic.code: find})


def producer(**settings: Any) -> Producer:
    return Producer("p", namesrv_addr=NAMESRV, client_ip="10.0.0.9", **settings)


async def passed(seconds: float) -> None:
    """Let so much loop time pass."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_later(seconds, over.set_result, None)
    await over


async def timed(work: Coroutine[Any, Any, Any]) -> tuple[float, Any]:
    """How many seconds of loop time something took, and its result or exception."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        result = await work
    except Exception as error:
        result = error
    return loop.time() - began, result
