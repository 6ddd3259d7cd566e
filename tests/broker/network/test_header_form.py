"""In which form a reply's header is written when the request had a binary header.

Official 4.9.7 replies in the form of the request, but in JSON if the handler failed or a pull was suspended. Official
5.5.0 replies in JSON always. `tests/conformance/requests/test_header_forms.py` plays such requests on both.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pocketmq.protocol.wire.command import JSON, ROCKETMQ, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.testing import EmbeddedServer

SEND = {
    "producerGroup": "forms",
    "topic": "forms",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "1",
    "queueId": "0",
    "sysFlag": "0",
    "bornTimestamp": "1",
    "flag": "0",
    "properties": "",
}
PULL = {
    "consumerGroup": "forms",
    "topic": "forms",
    "queueId": "0",
    "queueOffset": "0",
    "maxMsgNums": "32",
    "sysFlag": "4",
    "commitOffset": "0",
    "suspendTimeoutMillis": "0",
    "subscription": "*",
    "subVersion": "0",
}
ROWS = [
    ("send", 10, SEND, b"x", (0, ROCKETMQ)),
    ("pull", 11, PULL, b"", (0, ROCKETMQ)),
    ("pull of no topic", 11, {**PULL, "topic": "none"}, b"", (17, ROCKETMQ)),
    ("consumers of no group", 38, {"consumerGroup": "none"}, b"", (1, ROCKETMQ)),
    ("code without a handler", 9999, {}, b"", (3, ROCKETMQ)),
    ("field of the wrong type", 11, {**PULL, "queueOffset": "x"}, b"", (1, JSON)),
    ("field that is missing", 30, {}, b"", (1, JSON)),
    ("body that cannot be read", 34, {}, b"{", (1, JSON)),
]
"""Name, code, fields, body; code and form of the reply in the 4.9 line."""


class Wire:
    """One connection that sends binary headers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._cutter = FrameCutter()
        self._received: list[Command] = []

    def send(self, code: int, fields: dict[str, str], body: bytes = b"", form: int = ROCKETMQ) -> None:
        self.writer.write(encode_frame(Command(code, 7, fields=fields, body=body or None, header_type=form)))

    async def receive(self) -> Command:
        async with asyncio.timeout(10):
            while not self._received:
                self._received += self._cutter.feed(await self._reader.read(65_536))
        return self._received.pop(0)

    async def call(
        self, code: int, fields: dict[str, str], body: bytes = b"", form: int = ROCKETMQ
    ) -> Command:
        self.send(code, fields, body, form)
        return await self.receive()


@pytest.fixture(params=["4.9", "5"])
def line(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def server(line: str) -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(emulate=line, aclEnable=False) as server:
        yield server


async def connect(address: str) -> Wire:
    host, _, port = address.rpartition(":")
    return Wire(*await asyncio.open_connection(host, int(port)))


async def test_request_is_answered_in_the_form_of_the_line(server: EmbeddedServer, line: str) -> None:
    wire = await connect(server.broker_addr)
    for asked in (ROCKETMQ, JSON):
        for name, code, fields, body, (answer, form) in ROWS:
            reply = await wire.call(code, fields, body, asked)
            expected = form if line == "4.9" and asked == ROCKETMQ else JSON
            assert (name, reply.code, reply.header_type) == (name, answer, expected)
    wire.writer.close()


async def test_name_server_answers_in_the_form_of_the_line(server: EmbeddedServer, line: str) -> None:
    wire = await connect(server.namesrv_addr)
    forms = {(await wire.call(code, {"topic": "forms"})).header_type for code in (105, 106, 206, 9999)}
    assert forms == {ROCKETMQ if line == "4.9" else JSON}
    wire.writer.close()


async def test_suspended_pull_is_answered_in_json(server: EmbeddedServer) -> None:
    wire, sender = await connect(server.broker_addr), await connect(server.broker_addr)
    await sender.call(10, SEND, b"x")
    wire.send(11, {**PULL, "queueOffset": "1", "sysFlag": "6", "suspendTimeoutMillis": "10000"})
    await sender.call(30, {"topic": "forms", "queueId": "0"})  # the pull arrived first
    await sender.call(10, SEND, b"x")
    reply = await wire.receive()
    assert (reply.code, reply.header_type) == (0, JSON)
    wire.writer.close()
    sender.writer.close()


async def test_refusal_by_access_control_is_answered_in_json(tmp_path: Path) -> None:
    """In the 4.9 line the check is an RPC hook, whose exception is a failed handler."""
    async with EmbeddedServer(emulate="4.9", aclEnable=True, store=tmp_path) as server:
        wire = await connect(server.broker_addr)
        reply = await wire.call(10, SEND, b"x")
        assert (reply.code, reply.header_type) == (1, JSON)
        wire.writer.close()
