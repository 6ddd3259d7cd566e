"""TLS and plain connections on one port: the first byte decides; refusals, and waits that must not happen.

Java clients, and certificates checked on both sides, are in `tests/conformance/access/test_access.py`.
"""

import asyncio
import os
import ssl
from pathlib import Path

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.loading import load_broker
from pocketmq.broker.errors import StartError
from pocketmq.broker.network.tls import Tls
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame

from broker.nodes import make_node, running

SECONDS = 30
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def believing() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def connected(address: str, context: ssl.SSLContext | None = None) -> Streams:
    host, _, port = address.partition(":")
    async with asyncio.timeout(SECONDS):
        return await asyncio.open_connection(host, int(port), ssl=context)


async def asked(streams: Streams, *commands: Command) -> list[Command]:
    """The answers to several requests sent at once; fewer if the connection ends."""
    reader, writer = streams
    writer.write(b"".join(map(encode_frame, commands)))
    cutter, replies = FrameCutter(), list[Command]()
    async with asyncio.timeout(SECONDS):
        while len(replies) < len(commands) and (data := await reader.read(65536)):
            replies += [
                Command(one.code, one.opaque, body=bytes(one.body or b"")) for one in cutter.feed(data)
            ]
    return replies


async def ends(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(SECONDS):
        try:
            return await reader.read(1) == b""
        except ConnectionError:
            return True


async def test_both_kinds_on_one_port_and_at_the_name_server(tmp_path: Path) -> None:
    async with running(make_node(tmp_path)) as node:
        for address, code in ((node.broker_address, 28), (node.namesrv_address, 106)):
            for context in (believing(), None):
                streams = await connected(address, context)
                (reply,) = await asked(streams, Command(code, 7))
                assert (reply.code, reply.opaque) == (0, 7)
                streams[1].close()


async def test_large_bodies_and_many_requests_pass_through(tmp_path: Path) -> None:
    fields = {
        "a": "p",
        "b": "Orders",
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "g": "1",
        "h": "0",
        "i": "",
    }
    async with running(make_node(tmp_path)) as node:
        streams = await connected(node.broker_address, believing())
        sends = [Command(310, at, fields=fields, body=bytes([at]) * 300_000) for at in range(5)]
        assert [reply.code for reply in await asked(streams, *sends)] == [0] * 5
        pull = {
            "consumerGroup": "g",
            "topic": "Orders",
            "queueId": "0",
            "queueOffset": "3",
            "maxMsgNums": "32",
        }
        pull |= {"sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*"}
        pull |= {"subVersion": "0"}
        (reply,) = await asked(streams, Command(11, 9, fields=pull))
        assert reply.code == 0
        assert bytes([3]) * 300_000 in bytes(reply.body or b"")
        streams[1].close()


async def test_enforcing_closes_what_is_plain_and_still_registers_itself(tmp_path: Path) -> None:
    async with running(make_node(tmp_path, tls_server_mode="enforcing")) as node:
        reader, writer = await connected(node.broker_address)
        writer.write(encode_frame(Command(28, 1)))
        assert await ends(reader)
        writer.close()
        streams = await connected(node.namesrv_address, believing())
        (reply,) = await asked(streams, Command(106, 1))
        assert b"broker-a" in bytes(reply.body or b"")
        streams[1].close()


async def test_disabled_closes_what_begins_with_tls(tmp_path: Path) -> None:
    async with running(make_node(tmp_path, tls_server_mode="disabled")) as node:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await connected(node.broker_address, believing())


async def test_connections_without_a_byte_end_with_the_server(tmp_path: Path) -> None:
    async with running(make_node(tmp_path)) as node:
        silent = await connected(node.broker_address)
        begun = await connected(node.broker_address)
        begun[1].write(b"\x16\x03\x01")
        await asyncio.sleep(0)
    for reader, writer in (silent, begun):
        assert await ends(reader)
        writer.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "tls.server.certPath and tls.server.keyPath must be set"),
        ({"tls_server_cert_path": "/none", "tls_server_key_path": "/none"}, "No such file"),
    ],
)
def test_certificates_that_stop_the_start(settings: dict[str, str], words: str) -> None:
    with pytest.raises(StartError, match=words):
        Tls(BrokerConfig(tls_test_mode_enable=False, **settings)).check()


def test_the_file_of_tls_settings_is_read_and_loses_against_others(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    file.write_text("tls.test.mode.enable=false\ntls.server.mode=enforcing\ntls.unknown=1\nbrokerName=no\n")
    config = load_broker(sets=[f"tls.config.file={file}", "tls.server.mode=disabled"])
    assert (config.tls_test_mode_enable, config.tls_server_mode) == (False, "disabled")
    assert config.broker_name == "broker-a"


def test_changed_certificates_are_used(tmp_path: Path) -> None:
    cert, key = tmp_path / "server.pem", tmp_path / "server.key"
    made_for_tests = Path(__file__).parents[2] / "client" / "certificates"

    def use(name: str, seconds: int) -> None:
        cert.write_bytes((made_for_tests / f"{name}.pem").read_bytes())
        key.write_bytes((made_for_tests / f"{name}.key").read_bytes())
        os.utime(cert, (seconds, seconds))

    use("server", 10)
    tls = Tls(
        BrokerConfig(tls_test_mode_enable=False, tls_server_cert_path=str(cert), tls_server_key_path=str(key))
    )
    first = tls.server_context()
    assert tls.server_context() is first
    cert.write_bytes(b"torn")
    assert tls.server_context() is first, "an unreadable certificate replaces none"
    use("stranger", 20)
    assert tls.server_context() is not first
