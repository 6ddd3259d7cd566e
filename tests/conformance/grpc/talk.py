"""One conversation of gRPC clients with a server, as lines of text: what was asked, and what came back.

A line is `= name | reply | reply ...`, or `= name | gRPC 3: text` for a call that failed. Requests that are the same in
each run have a digest behind the name: one that is changed has to be recorded again. Masked are times, ports, places in
the log and ids that the server makes. Where the official proxy answers with the text of a Java exception, the line
begins with `~` and has no texts: only the codes count.

On our side time is virtual: a reply that does not arrive moves the clock.
"""

import asyncio
import contextlib
import itertools
import re
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import h2.exceptions
from google.protobuf.text_format import MessageToString
from pocketmq.grpc_endpoint.messages import (
    Code,
    NotifyClientTerminationRequest,
    ReceiveMessageResponse,
    Settings,
    TelemetryCommand,
)
from pocketmq.grpc_endpoint.messages.service import BY_REQUEST, Kind
from pocketmq.testing.time.clock import ServerClock

from conformance.requests.query_answers import NOW_MS, body_text
from conformance.requests.transcripts import PEER
from conformance.servers.raw_client import RawClient
from conformance.servers.remoting import Reply
from conformance.servers.server import Server
from grpc_client import ClientCall, GrpcClient, RpcError, encode

GRPC_PORT = 8081
LONGEST_WAIT_S = 60
MASKS = (
    (re.compile(r"(\w+_timestamp) \{ seconds: (?!1790000000 )\d+(?: nanos: \d+)? \}"), r"\1 { NOW }"),
    (
        re.compile(r'receipt_handle: "(\d+) \d{13} (\d+) (?:(999)|\d) (\d \S+ \d+ \d+) \d+( \d+)?"'),
        lambda found: (
            f'receipt_handle: "{found[1]} NOW {found[2]} {found[3] or "REVIVE"} {found[4]} AT'
            f'{" AT" if found[5] else ""}"'
        ),
    ),
    (re.compile(r'recall_handle: "[^"]+"'), 'recall_handle: "GIVEN"'),
    (re.compile(r'message_id: "[0-9A-F]{32}"'), 'message_id: "NEW"'),
    (re.compile(r'nonce: "[^"]*"'), 'nonce: "NEW"'),
    (re.compile(r"\bport: \d+"), "port: PORT"),
    (PEER, "PEER"),
    (NOW_MS, "NOW"),
)
STUMBLED = re.compile(r"\w+\.java:\d+|(?:java|apache\.commons)\.\S+\(\S*\)")
TEXTS = re.compile(r'message: "(?:[^"\\]|\\.)*"')


class Talk:
    """What a conversation is held with. With a `clock` the server's time is virtual."""

    def __init__(self, server: Server, client: GrpcClient, clock: ServerClock | None = None) -> None:
        self.client = client
        self.server = server
        self.lines: list[str] = []
        self._clock = clock
        self._numbers = itertools.count(1)

    def new_id(self) -> str:
        """The id of one more message."""
        return f"01AABBCCDDEEFF{next(self._numbers):020d}"

    def say(self, name: str, *shown: str) -> None:
        text = " | ".join((name, *shown))
        for pattern, mask in MASKS:
            text = pattern.sub(mask, text)
        text = text.replace("\n", "\\n")
        self.lines.append(f"~ {without_texts(text)}" if STUMBLED.search(text) else f"= {text}")

    # -- time

    def now_ms(self) -> int:
        """The server's time."""
        return int(time.time() * 1000) if self._clock is None else self._clock.now_ms()

    async def pass_time(self, seconds: float) -> None:
        if self._clock is None:
            await asyncio.sleep(seconds)
        else:
            await asyncio.to_thread(self._clock.advance, seconds)

    async def next(self, call: ClientCall, *, waits: bool = True) -> Any:
        """The next reply of a call, `None` at its end. `waits` if the server may answer when time has passed."""
        if self._clock is not None and waits:
            passed = 0
            while passed < LONGEST_WAIT_S:
                moved = self.client.data_moved
                await self.client.ping()
                if call.is_readable:
                    break
                if self.client.data_moved == moved:  # else a part of a large message came or went
                    await self.pass_time(1)
                    passed += 1
        return await call.next(LONGEST_WAIT_S)

    # -- calls

    async def replies(self, request: Any, **about: Any) -> list[Any]:
        """All replies to one request; `about` as for `GrpcClient.open`."""
        about.setdefault("timeout", "30S")
        rpc = BY_REQUEST[type(request)]
        return await self._rest(
            self.client.open(rpc.name, request, **about), waits=rpc.kind is not Kind.UNARY
        )

    async def ask(self, name: str, request: Any, **about: Any) -> Any:
        """Show all replies to a request, and a digest of it; the first one is returned."""
        replies = await self.replies(request, **about)
        self.say(f"{name} {zlib.crc32(encode(request)):08x}", *map(shown, replies))
        return replies[0]

    async def settle(self, name: str, settings: Settings | None, **about: Any) -> None:
        """Show the replies to settings, or to a command without content, on a stream that ends then."""
        stream = self.client.open("Telemetry", **about)
        stream.send(TelemetryCommand(settings=settings))
        try:
            first = [] if settings is None else [await self.next(stream)]
            with contextlib.suppress(h2.exceptions.StreamClosedError):
                stream.half_close()
            self.say(name, *map(shown, first + await self._rest(stream)))
        except RpcError as error:
            self.say(name, f"gRPC {error.status}: {error.text}")

    async def _rest(self, call: ClientCall, *, waits: bool = True) -> list[Any]:
        found = []
        while (reply := await self.next(call, waits=waits)) is not None:
            found.append(reply)
        return found

    @asynccontextmanager
    async def announced(self, settings: Settings, client_id: str) -> AsyncIterator[ClientCall]:
        """The open stream of a client; the client ends afterwards. The first reply is read."""
        stream = self.client.open("Telemetry", client_id=client_id)
        stream.send(TelemetryCommand(settings=settings))
        assert (await self.next(stream)).status.code == Code.OK
        try:
            yield stream
        finally:
            ending = NotifyClientTerminationRequest(group=settings.subscription.group)
            await self.replies(ending, client_id=client_id)
            stream.half_close()

    # -- the other protocol

    def remoting(self, code: int, **fields: object) -> Reply:
        with RawClient(self.server) as raw:
            return raw.call(code, b"", **fields)

    def say_reply(self, name: str, code: int, reply: Reply) -> None:
        self.say(name, f"{reply.code} {reply.remark} {body_text(code, reply.body) if reply.body else ''}")


def shown(reply: Any) -> str:
    """One line; properties by name, because the official proxy sends them as a map."""
    reply = type(reply).FromString(encode(reply))
    message = _message_in(reply)
    if message is not None:
        entries = sorted((entry.key, entry.value) for entry in message.user_properties)
        del message.user_properties[:]
        for key, value in entries:
            message.user_properties.add(key=key, value=value)
        if len(message.body) > 1000:
            message.body = b"%d bytes" % len(message.body)
    return str(MessageToString(reply, as_one_line=True, as_utf8=True))


def _message_in(reply: Any) -> Any:
    if isinstance(reply, TelemetryCommand):
        if reply.HasField("verify_message_command"):
            return reply.verify_message_command.message
        if reply.HasField("recover_orphaned_transaction_command"):
            return reply.recover_orphaned_transaction_command.message
    return reply.message if isinstance(reply, ReceiveMessageResponse) and reply.HasField("message") else None


def without_texts(line: str) -> str:
    return TEXTS.sub("message", line)
