"""The two sides of a conversation: our endpoint in this process and in virtual time, and the official proxy.

Ours runs with grpcStrict: where a friendly endpoint answers otherwise, `tests/grpc_endpoint` says so.
"""

import asyncio
import difflib
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pocketmq.grpc_endpoint.messages import Code, QueryRouteRequest, Resource
from pocketmq.testing import EmbeddedServer

from conformance.grpc.talk import GRPC_PORT, Talk, without_texts
from conformance.official.local_proxy import LocalProxy
from conformance.servers.server import BROKER_PORT, NAME_SERVER_PORT, Server
from grpc_client import GrpcClient

RECORDED = Path(__file__).parent / "recorded"
ROUTE_TIMEOUT_S = 40


class OurSide(Server):
    """PocketMQ in this process, on free ports: tests name the official ones."""

    def __init__(self, broker_conf: Mapping[str, object]) -> None:
        self.side = "ours"
        self.emulates = "5.5"
        words = {**broker_conf, "grpcStrict": True, "autoCreateTopicEnable": False}
        self.embedded = EmbeddedServer(words, grpc_port=0, virtual_time=True)  # type: ignore[arg-type]

    def start(self) -> None:
        self.embedded.start()

    def stop(self) -> None:
        self.embedded.stop()

    close = kill = stop

    def connect(self, port: int = BROKER_PORT, timeout: float = 5.0) -> socket.socket:
        of = {
            NAME_SERVER_PORT: self.embedded.namesrv_addr,
            BROKER_PORT: self.embedded.broker_addr,
            GRPC_PORT: self.embedded.grpc_endpoint,
        }
        host, _, number = of[port].rpartition(":")
        return socket.create_connection((host, int(number)), timeout)


@dataclass(frozen=True)
class Conversation:
    """`prepared` makes topics and groups by remoting requests, `held` talks."""

    name: str
    prepared: Callable[[Server], None]
    held: Callable[[Talk], Awaitable[None]]
    topics: tuple[str, ...]
    """Of `prepared`: the official proxy finds a new one late."""
    broker_conf: Mapping[str, object] = field(default_factory=dict)
    proxy_conf: Mapping[str, object] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return RECORDED / f"{self.name}.txt"

    async def with_us(self) -> list[str]:
        with OurSide(self.broker_conf) as ours:
            assert isinstance(ours, OurSide)
            self.prepared(ours)
            async with GrpcClient.connected(ours.connect(GRPC_PORT)) as client:
                talk = Talk(ours, client, ours.embedded.clock)
                await self.held(talk)
        return talk.lines

    async def with_the_official_proxy(self, home: Path) -> list[str]:
        conf = {**self.broker_conf, "autoCreateTopicEnable": False}
        with LocalProxy(home, broker_conf=conf, proxy_settings=self.proxy_conf) as official:
            self.prepared(official)
            async with GrpcClient.connected(official.connect(GRPC_PORT)) as client:
                await self._found(client)
                talk = Talk(official, client)
                await self.held(talk)
        return talk.lines

    async def _found(self, client: GrpcClient) -> None:
        """It remembers for 20 s that a topic is missing."""
        async with asyncio.timeout(ROUTE_TIMEOUT_S):
            for topic in self.topics:
                request = QueryRouteRequest(topic=Resource(name=topic))
                while True:
                    if (await client.ask(request, seconds=20)).status.code != Code.TOPIC_NOT_FOUND:
                        break
                    await asyncio.sleep(1)

    def differences(self, said: list[str]) -> str:
        """What differs from the recording; empty where nothing does."""
        recorded = self.file.read_text(encoding="utf-8").splitlines()
        loose = {line.split(" | ")[0][2:] for line in recorded if line.startswith("~")}
        heard = [
            f"~ {without_texts(line)[2:]}" if line.split(" | ")[0][2:] in loose else line for line in said
        ]
        return "\n".join(difflib.unified_diff(recorded, heard, "recorded", "now", lineterm="", n=0))
