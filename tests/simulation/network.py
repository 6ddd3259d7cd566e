"""A network in memory: connections with latency, in pieces, that are cut, held back or not read.

A partition holds bytes back, as TCP does: they arrive when it is over. A killed process resets its connections; a
machine without power says nothing, and the one that follows it resets connections that it does not know.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context
from random import Random
from typing import Any

from simulation.loop import SimulatedLoop
from simulation.machines import LIFE, Life, Machine

NEUTRAL = Context()


def run_in(life: Life, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function as code of that life."""
    return life.context.copy().run(function, *arguments)


SYN_RETRY_SECONDS = 1.0
FIRST_FREE_PORT = 40_000


class ListeningSocket:
    """What `bind_sockets` needs of a socket."""

    family = 2

    def __init__(self, network: "Network") -> None:
        life = LIFE.get()
        assert life is not None
        self.network, self.life = network, life
        self.address = ("", 0)
        self.factory: Callable[[], Any] | None = None

    def setblocking(self, flag: bool) -> None: ...

    def setsockopt(self, *_: Any) -> None: ...

    def bind(self, address: tuple[str, int]) -> None:
        host, port = address
        self.address = host, port or self.network.free_port()
        other = self.network.listeners.get(self.address)
        if other is not None and other.life.is_alive:
            raise OSError(98, "Address already in use")

    def listen(self, backlog: int) -> None:
        self.network.listeners[self.address] = self

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def close(self) -> None:
        if self.network.listeners.get(self.address) is self:
            del self.network.listeners[self.address]


class Listener:
    """What asyncio returns for a server."""

    def __init__(self, factory: Callable[[], Any], below: ListeningSocket) -> None:
        self._factory, self._below = factory, below

    async def start_serving(self) -> None:
        self._below.factory = self._factory

    def close(self) -> None:
        self._below.close()


class Wire(asyncio.Transport):
    """One end of a connection."""

    def __init__(
        self, network: "Network", life: Life, number: str, own: tuple[str, int], other: tuple[str, int]
    ) -> None:
        super().__init__()
        self.network, self.life, self.number = network, life, number
        self._own, self._other = own, other
        self.peer: Wire
        self.protocol: Any = None
        self._inbox: deque[bytes] = deque()
        self._is_reading = True
        self._is_closing = self.is_lost = self.has_ended = False
        self._is_paused = False
        self._high = 65_536
        self.in_flight = 0
        self._last_arrival = 0.0
        self.held: list[tuple[str, bytes]] = []
        """What a partition keeps from arriving here."""

    def connect(self, protocol: Any) -> None:
        self.protocol = protocol
        protocol.connection_made(self)

    # -- sending

    def write(self, data: Any) -> None:
        if self._is_closing or self.is_lost or not data:
            return
        whole = bytes(data)
        for piece in self.network.pieces(whole):
            self.in_flight += len(piece)
            self._carry("data", piece)
        if self.in_flight > self._high and not self._is_paused:
            self._is_paused = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def _carry(self, kind: str, data: bytes) -> None:
        loop, network = self.network.loop, self.network
        self._last_arrival = max(self._last_arrival + 1e-7, loop.now + network.latency())
        loop.call_at(self._last_arrival, self.peer.arrive, kind, data, context=NEUTRAL)

    def read_by_peer(self, count: int) -> None:
        self.in_flight -= count
        if self._is_paused and self.in_flight <= self._high // 4 and not self.is_lost:
            self._is_paused = False
            self.protocol.resume_writing()

    # -- receiving, called by the loop

    def arrive(self, kind: str, data: bytes) -> None:
        network = self.network
        if self.held or network.is_blocked(self.life.machine, self.peer.life.machine):
            self.held.append((kind, data))
            return
        if not self.life.is_alive:
            if self.life.machine.is_up and kind != "reset":
                network.loop.call_later(network.latency(), self.peer.arrive, "reset", b"", context=NEUTRAL)
            return
        if self.is_lost:
            return
        network.trace(f"{self.number} {kind} {len(data)}", data)
        run_in(self.life, self._arrived, kind, data)

    def _arrived(self, kind: str, data: bytes) -> None:
        if kind == "reset":
            self._lose(ConnectionResetError(104, "Connection reset by peer"))
        elif kind == "end":
            self.has_ended = True
            if self._is_reading and not self._inbox:
                self._end()
        elif self._is_closing:
            pass
        elif self._is_reading and not self._inbox:
            self._deliver(data)
        else:
            self._inbox.append(data)

    def _deliver(self, data: bytes) -> None:
        if self.peer.life.is_alive:
            run_in(self.peer.life, self.peer.read_by_peer, len(data))
        self.protocol.data_received(data)

    def _end(self) -> None:
        if not self._is_closing:
            self.protocol.eof_received()
            self.close()

    def release(self) -> None:
        """The partition is over."""
        held, self.held = self.held, []
        for kind, data in held:
            self.arrive(kind, data)

    # -- ending

    def close(self) -> None:
        if not self._is_closing and not self.is_lost:
            self._is_closing = True
            self._carry("end", b"")
            self.network.loop.call_soon(self._lose, None, context=self.life.context.copy())

    def abort(self) -> None:
        if not self.is_lost:
            self._is_closing = True
            self._carry("reset", b"")
            self.network.loop.call_soon(self._lose, None, context=self.life.context.copy())

    def reset(self) -> None:
        """The network ends it on both sides."""
        for end in (self, self.peer):
            self.network.loop.call_soon(end.arrive, "reset", b"", context=NEUTRAL)

    def _lose(self, error: Exception | None) -> None:
        if not self.is_lost:
            self.is_lost = self._is_closing = True
            self.network.wires.pop(self, None)
            self.protocol.connection_lost(error)

    # -- what protocols ask

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self.network.loop.call_soon(self._read_inbox, context=self.life.context.copy())

    def _read_inbox(self) -> None:
        while self._inbox and self._is_reading and not self.is_lost:
            self._deliver(self._inbox.popleft())
        if self.has_ended and not self._inbox and self._is_reading:
            self._end()

    def get_write_buffer_size(self) -> int:
        return max(self.in_flight - 65_536, 0)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 65_536 if high is None else high

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": self._other, "sockname": self._own}.get(name, default)


class Network:
    """`trace` gets a line, and bytes that count as part of it."""

    def __init__(
        self,
        loop: SimulatedLoop,
        chance: Random,
        machines: dict[str, Machine],
        trace: Callable[[str, bytes], None],
    ) -> None:
        self.loop, self.chance, self.trace = loop, chance, trace
        self._machines = {machine.ip: machine for machine in machines.values()}
        self.listeners: dict[tuple[str, int], ListeningSocket] = {}
        self.wires: dict[Wire, None] = {}
        self.blocked: set[frozenset[str]] = set()
        self.slow_seconds = 0.0
        self._free_port = FIRST_FREE_PORT
        self._count = 0

    def free_port(self) -> int:
        self._free_port += 1
        return self._free_port

    def latency(self) -> float:
        return 0.0002 + self.chance.random() * (0.002 + self.slow_seconds)

    def pieces(self, data: bytes) -> list[bytes]:
        if len(data) < 8 or self.chance.random() < 0.9:
            return [data]
        cut = self.chance.randrange(1, len(data))
        return [data[:cut], data[cut:]]

    def is_blocked(self, one: Machine, other: Machine) -> bool:
        return frozenset((one.name, other.name)) in self.blocked

    def block(self, one: str, other: str) -> None:
        self.blocked.add(frozenset((one, other)))

    def unblock(self) -> None:
        self.blocked.clear()
        for wire in list(self.wires):
            if wire.held:
                wire.release()

    def cut(self, name: str) -> None:
        """Reset every connection of a machine."""
        for wire in list(self.wires):
            if wire.life.machine.name == name and wire.life.is_alive:
                wire.reset()

    def process_died(self, life: Life) -> None:
        """Its system resets the connections."""
        for wire in list(self.wires):
            if wire.life is life:
                wire._carry("reset", b"")
                self.wires.pop(wire, None)

    async def connect(self, factory: Callable[[], Any], host: str, port: int) -> tuple[Wire, Any]:
        life = LIFE.get()
        assert life is not None
        await asyncio.sleep(self.latency())
        machine = self._machines[host]
        while self.is_blocked(life.machine, machine) or not machine.is_up:  # noqa: ASYNC110 - as TCP does
            await asyncio.sleep(SYN_RETRY_SECONDS)
        while True:
            below = self.listeners.get((host, port))
            if below is None or not below.life.is_alive:
                raise ConnectionRefusedError(111, f"{host}:{port} refuses")
            if below.factory is not None:
                break
            await asyncio.sleep(0.005)
        self._count += 1
        own, other = (life.machine.ip, self.free_port()), (host, port)
        near = Wire(self, life, f"{life.machine.name}>{machine.name}#{self._count}<", own, other)
        far = Wire(self, below.life, f"{life.machine.name}>{machine.name}#{self._count}>", other, own)
        near.peer, far.peer = far, near
        self.wires[near] = self.wires[far] = None
        run_in(below.life, far.connect, run_in(below.life, below.factory))
        protocol = factory()
        near.connect(protocol)
        return near, protocol

    def serve(self, factory: Callable[[], Any], below: ListeningSocket) -> Listener:
        return Listener(factory, below)
