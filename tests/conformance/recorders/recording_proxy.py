"""A TCP proxy that keeps the frames passing through it, and the choice of which frames are worth keeping.

It connects two namespaces: the client connects to the official port of its own network, the proxy to the same port of
the server's. The proxy changes nothing. It cuts copies of the bytes into frames and never delays the forwarding.
"""

import asyncio
import base64
import json
import socket
import struct
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from conformance.servers.namespaces import Namespace
from conformance.servers.remoting import BINARY, JSON, Header, read_header

FORMS = {JSON: "JSON", BINARY: "ROCKETMQ"}
ORDINARY_FRAME_BYTES = 6000
LARGEST_FRAME_BYTES = 40_000
RICH_FRAME_BYTES = 1600


@dataclass(frozen=True)
class Kind:
    """Frames of one kind have the same fields; the smallest of them is kept."""

    writer: str
    """Version of the program that wrote it."""
    peer: str
    direction: str
    request_code: int
    code: int
    header: str
    fields: tuple[str, ...]
    has_body: bool


@dataclass
class Collection:
    """The frames kept of one pair of a server and a client version.

    For each kind the smallest frame, and the largest one that is still small where it holds much more. A frame that
    is large at its smallest (the text of all settings) is kept once, with a JSON header.
    """

    server: str
    known: frozenset[Kind] = frozenset()
    """Kinds that other collections have already."""
    smallest: dict[Kind, bytes] = field(default_factory=dict)
    richest: dict[Kind, bytes] = field(default_factory=dict)
    asking: dict[bytes, str] = field(default_factory=dict)
    """Version of the program on the client's side of a frame: a broker, too, is a client of its name server."""

    def offer(self, kind: Kind, frame: bytes, asking: str) -> None:
        limit = LARGEST_FRAME_BYTES if kind.header == "JSON" else ORDINARY_FRAME_BYTES
        if kind in self.known or len(frame) > limit:
            return
        self.asking[frame] = asking
        if kind not in self.smallest or len(frame) < len(self.smallest[kind]):
            self.smallest[kind] = frame
        if len(frame) <= RICH_FRAME_BYTES and len(frame) > len(self.richest.get(kind, b"")):
            self.richest[kind] = frame

    def lines(self) -> list[str]:
        """The lines of a vector file, in a stable order."""
        chosen = list(self.smallest.items())
        for kind, frame in self.smallest.items():
            rich = self.richest.get(kind, b"")
            if kind.has_body and len(rich) > 1.5 * len(frame):
                chosen.append((kind, rich))
        chosen.sort(key=lambda each: (each[0].request_code, each[0].direction, each[0].code, each[0].fields))
        return [self._line(kind, frame) for kind, frame in chosen]

    def _line(self, kind: Kind, frame: bytes) -> str:
        values = {
            "server": self.server,
            "client": self.asking[frame],
            "peer": kind.peer,
            "direction": kind.direction,
            "code": kind.code,
            "request_code": kind.request_code,
            "header": kind.header,
            "frame": base64.b64encode(frame).decode("ascii"),
        }
        return json.dumps(values)


FROM_CLIENT = ("request", "answer")
DIRECTIONS = {
    ("client", False): "request",
    ("client", True): "reply",
    ("server", False): "push",
    ("server", True): "answer",
}
"""(who asked, whether this is the response)"""


def kind_of(frame: bytes, header: Header, writer: str, peer: str, direction: str, request_code: int) -> Kind:
    (word,) = struct.unpack_from(">I", frame, 4)
    has_body = len(frame) > 8 + (word & 0xFFFFFF)
    return Kind(
        writer, peer, direction, request_code, header.code, FORMS[header.form], header.fields, has_body
    )


@dataclass
class Exchange:
    """One proxied connection: pairs responses with requests, both ways, and offers every frame to the collection."""

    asking: str
    """Version of the program that connected: a client, or a broker of the server's version."""
    peer: str
    collection: Collection
    asked: dict[tuple[str, int], int] = field(default_factory=dict)

    def passed(self, sender: str, frame: bytes) -> None:
        """sender is client or server."""
        header = read_header(frame)
        asker = {"client": "server", "server": "client"}[sender] if header.is_response else sender
        request_code: int | None = header.code
        if header.is_response:
            request_code = self.asked.pop((asker, header.opaque), None)
        else:
            self.asked[asker, header.opaque] = header.code
        if request_code is None:
            return
        writer = self.asking if sender == "client" else self.collection.server
        direction = DIRECTIONS[asker, header.is_response]
        self.collection.offer(
            kind_of(frame, header, writer, self.peer, direction, request_code), frame, self.asking
        )


class RecordingProxy:
    """The proxies of one recording, on an event loop in a thread of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recording proxy", daemon=True)
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()

    def forward(self, port: int, inside: Namespace, outside: Namespace, exchange: Exchange | None) -> None:
        """Connections to 127.0.0.1:port inside go to the same port outside. Without an exchange nothing is
        recorded.
        """
        listening = inside.listen(port)
        listening.setblocking(False)
        self._run(self._accept(listening, port, outside, exchange))

    def _run(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        async def keep() -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await work
            finally:
                self._tasks.discard(task)

        return asyncio.run_coroutine_threadsafe(keep(), self._loop)

    async def _accept(
        self, listening: socket.socket, port: int, outside: Namespace, exchange: Exchange | None
    ) -> None:
        with listening:
            while True:
                near, _ = await self._loop.sock_accept(listening)
                self._run(self._serve(near, port, outside, exchange))

    async def _serve(
        self, near: socket.socket, port: int, outside: Namespace, exchange: Exchange | None
    ) -> None:
        far = outside.new_socket()
        far.setblocking(False)
        with near, far:
            try:
                await self._loop.sock_connect(far, ("127.0.0.1", port))
            except OSError:
                return
            own = None
            if exchange is not None:
                own = Exchange(exchange.asking, exchange.peer, exchange.collection)
            pumps = [
                asyncio.ensure_future(self._pump(near, far, "client", own)),
                asyncio.ensure_future(self._pump(far, near, "server", own)),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(
        self, source: socket.socket, sink: socket.socket, sender: str, exchange: Exchange | None
    ) -> None:
        pending = bytearray()
        while True:
            try:
                chunk = await self._loop.sock_recv(source, 1 << 16)
                if not chunk:
                    return
                pending += chunk
                if exchange is not None:  # before forwarding: a reply must find its request recorded
                    cut_frames(pending, sender, exchange)
                await self._loop.sock_sendall(sink, chunk)
            except OSError:
                return

    def close(self) -> None:
        async def cancel() -> None:
            others = [task for task in self._tasks if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def cut_frames(pending: bytearray, sender: str, exchange: Exchange) -> None:
    while len(pending) >= 4:
        size = 4 + int.from_bytes(pending[:4], "big")
        if len(pending) < size:
            return
        exchange.passed(sender, bytes(pending[:size]))
        del pending[:size]
