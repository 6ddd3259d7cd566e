"""TLS and plain connections on one port: the first byte decides; refusals, and waits that must not happen.

Java clients, and certificates checked on both sides, are in `tests/conformance/access/test_access.py`.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.loading import load_broker
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.errors import StartError
from pocketmq.broker.network.tls import Tls
from pocketmq.broker.node import Node
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame

SECONDS = 30
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(folder: Path, *sets: str) -> AsyncIterator[Node]:
    config = load_broker(sets=[f"storePathRootDir={folder}", "listenPort=0", *sets])
    node = Node(config, NameServerConfig(listen_port=0))
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


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
    async with serving(tmp_path) as node:
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
    async with serving(tmp_path) as node:
        streams = await connected(node.broker_address, believing())
        sends = [Command(310, at, fields=fields, body=bytes([at]) * 300_000) for at in range(5)]
        assert [reply.code for reply in await asked(streams, *sends)] == [0] * 5
        pull = {
            "consumerGroup": "g",
            "topic": "Orders",
            "queueId": "0",
            "queueOffset": "3",
            "maxMsgNums": "32",
            "sysFlag": "4",
            "commitOffset": "0",
            "suspendTimeoutMillis": "0",
            "subscription": "*",
            "subVersion": "0",
        }
        (reply,) = await asked(streams, Command(11, 9, fields=pull))
        assert reply.code == 0
        assert bytes([3]) * 300_000 in bytes(reply.body or b"")
        streams[1].close()


async def test_enforcing_closes_what_is_plain_and_still_registers_itself(tmp_path: Path) -> None:
    async with serving(tmp_path, "tls.server.mode=enforcing") as node:
        reader, writer = await connected(node.broker_address)
        writer.write(encode_frame(Command(28, 1)))
        assert await ends(reader)
        writer.close()
        streams = await connected(node.namesrv_address, believing())
        (reply,) = await asked(streams, Command(106, 1))
        assert b"broker-a" in bytes(reply.body or b"")
        streams[1].close()


async def test_disabled_closes_what_begins_with_tls(tmp_path: Path) -> None:
    async with serving(tmp_path, "tls.server.mode=disabled") as node:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await connected(node.broker_address, believing())


async def test_nonsense_behind_the_first_byte_ends_that_connection_alone(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
        reader, writer = await connected(node.broker_address)
        writer.write(b"\x16\x03\x01\x00\x05hello and nothing that is TLS" * 10)
        async with asyncio.timeout(SECONDS):
            await reader.read()  # at most an alert, then the end
        writer.close()
        streams = await connected(node.broker_address, believing())
        assert (await asked(streams, Command(28, 1)))[0].code == 0
        streams[1].close()


async def test_connections_without_a_byte_end_with_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path) as node:
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


async def test_changed_certificates_are_used(tmp_path: Path, make_pair: "MakePair") -> None:
    cert, key = await make_pair(tmp_path, "one")
    config = BrokerConfig(
        tls_test_mode_enable=False, tls_server_cert_path=str(cert), tls_server_key_path=str(key)
    )
    tls = Tls(config)
    first = tls.server_context()
    assert tls.server_context() is first
    cert.write_bytes(b"torn")
    assert tls.server_context() is first, "an unreadable certificate replaces none"
    await make_pair(tmp_path, "two")
    assert tls.server_context() is not first


MakePair = Callable[[Path, str], Awaitable[tuple[Path, Path]]]


@pytest.fixture
def make_pair() -> MakePair:
    """make_pair(folder, name): server.pem and server.key, self-signed and new in time."""
    import datetime
    import os

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    times = iter(range(1, 100))

    async def make(folder: Path, name: str) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
        cert_path, key_path = folder / "server.pem", folder / "server.key"
        cert_path.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        at = cert_path.stat().st_mtime + next(times) * 10
        os.utime(cert_path, (at, at))
        return cert_path, key_path

    return make
