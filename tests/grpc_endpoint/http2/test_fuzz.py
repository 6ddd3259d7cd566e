"""Recorded sessions of a client, damaged at random: the server lives, answers good calls, keeps nothing, never fails.

A session is what a client wrote: telemetry, sends, a receive, acknowledgements, routes, half and cancelled calls. Bytes
are damaged (flipped, cut, inserted), frames (another length, kind, flag or stream; doubled, dropped, swapped) and whole
sessions (one continues as the other). Each is written in pieces of any size.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.endpoint import Endpoint, open_endpoint
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig

from broker.nodes import make_node, running
from grpc_client import GrpcClient, framed
from grpc_companion import T, acked, announce, handle_of, hidden, receive, received, sent

ROUNDS = 25
MANY_ROUNDS = 30_000
GROWTH_BYTES = 24 << 20
"""Of the process, from the first hundredth of the rounds to the last one."""
GRACE_SECONDS = 10.0


class Recorder:
    """Between a client and its socket: keeps what the client writes."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self.written = bytearray()

    def write(self, data: bytes) -> None:
        self.written += data
        self._writer.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Endpoint]:
    async with running(make_node(folder)) as node:
        node.broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1))
        node.broker.groups.update(SubscriptionGroupConfig(group_name="billing"))
        async with open_endpoint(node) as endpoint:
            yield endpoint


async def recorded(address: str) -> list[bytes]:
    """Some sessions, the preface included."""
    sessions = []
    for number in range(4):
        async with GrpcClient.connected(address) as client:
            client._writer = recorder = Recorder(client._writer)  # type: ignore[assignment]
            await announce(client)
            for body in (b"small", bytes(20_000)):
                await client.ask(sent(body))
            await client.ask(m.QueryRouteRequest(topic=T))
            found = await received(client)
            await client.ask(hidden(found[0], 20_000 + number))
            await client.ask(acked([handle_of(one) for one in found[1:]]))
            client.open("ReceiveMessage", receive()).cancel()
            half = client.open("SendMessage")
            half.send_bytes(framed(bytes(3_000))[:2_000])
            await client.ask(m.HeartbeatRequest(group=m.Resource(name="billing")))
            await client.ping()
            begin = frames.PREFACE + frames.settings({frames.SETTINGS_INITIAL_WINDOW_SIZE: 1 << 20})
            sessions.append(begin + bytes(recorder.written))
    return sessions


def frames_of(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at + frames.HEAD_BYTES <= len(data):
        stop = at + frames.HEAD_BYTES + int.from_bytes(data[at : at + 3])
        found.append(data[at:stop])
        at = stop
    return found


def damaged(choice: random.Random, sessions: list[bytes]) -> bytes:
    first, second = choice.choice(sessions), choice.choice(sessions)
    parts = frames_of(first[len(frames.PREFACE) :])
    for _ in range(choice.choice((0, 1, 1, 2, 5, 20))):
        place = choice.randrange(len(parts))
        one = bytearray(parts[place])
        act = choice.randrange(9)
        if act == 0:
            one[choice.randrange(len(one))] ^= 1 << choice.randrange(8)
        elif act == 1:
            del one[choice.randrange(len(one)) :]
        elif act == 2:
            at = choice.randrange(len(one))
            one[at:at] = choice.randbytes(choice.choice((1, 4, 100)))
        elif act == 3 and len(one) > 8:
            one[3] = choice.choice((*range(11), 255))
        elif act == 4 and len(one) > 8:
            one[4] = choice.randrange(256)
        elif act == 5 and len(one) > 8:
            one[5:9] = choice.choice((0, 1, 2, 3, 9, 101, 1 << 31)).to_bytes(4)
        elif act == 6:
            one *= choice.choice((2, 2, 50))
        elif act == 7:
            one = bytearray()
        else:
            other = choice.randrange(len(parts))
            parts[other], one = bytes(one), bytearray(parts[other])
        parts[place] = bytes(one) or b""
        parts = [part for part in parts if part] or [frames.SETTINGS_ACK]
    whole = frames.PREFACE + b"".join(parts)
    if choice.random() < 0.2:
        whole = whole[: choice.randrange(len(whole))] + second[choice.randrange(len(second)) :]
    if choice.random() < 0.05:
        whole = whole[len(frames.PREFACE) - 3 :]
    return whole


async def write(choice: random.Random, port: int, data: bytes) -> None:
    """As a client that may read or not, and leaves in any way."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        size = max(choice.choice((7, 100, 5_000, len(data))), len(data) // 200)
        for at in range(0, len(data), size):
            if writer.transport.is_closing():
                break
            writer.write(data[at : at + size])
            if choice.random() < 0.3:
                await asyncio.sleep(0)
        if choice.random() < 0.5:
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(0.005):
                    await reader.read()
    finally:
        writer.transport.abort() if choice.random() < 0.7 else writer.close()


def own_bytes() -> int:
    """Memory of this process without mapped files: the store grows."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


@pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(MANY_ROUNDS, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])]
)
async def test_damaged_sessions_harm_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rounds: int
) -> None:
    seed = 26 if rounds == ROUNDS else random.SystemRandom().randrange(1 << 32)
    choice = random.Random(seed)
    before_bytes = 0
    async with served(tmp_path) as endpoint:
        port = int(endpoint.address.rpartition(":")[2])
        async with GrpcClient.connected(port) as other:
            sessions = await recorded(endpoint.address)
            for number in range(rounds):
                if number == rounds // 100:
                    before_bytes = own_bytes()
                await write(choice, port, damaged(choice, sessions))
                if number % 10 == 0:
                    assert (await other.ask(m.QueryRouteRequest(topic=T))).status == m.OK, seed
                if number % 1_000 == 999:
                    broken = [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]
                    assert not broken, (seed, caplog.text[-5_000:])
                    caplog.clear()
            async with asyncio.timeout(GRACE_SECONDS):
                while len(endpoint.port.connections) > 1:  # noqa: ASYNC110 - the system delivers it
                    await asyncio.sleep(0.01)
            (own,) = endpoint.port.connections
            assert (endpoint.port.memory.bytes, len(own.streams)) == (0, 0)
            assert (await other.ask(sent())).status == m.OK
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR], seed
    if rounds == MANY_ROUNDS:
        assert own_bytes() < before_bytes + GROWTH_BYTES, seed
