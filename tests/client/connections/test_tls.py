"""TLS: any certificate in test mode, else valid ones on both sides; against a server in this process."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import ClientError, ClientSettings, NotReachable, Producer
from pocketmq.client.connections.pool import ConnectionPool
from pocketmq.client.connections.tls import tls_context, warn_unchecked
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic

from client_certificates import FILES, SHOWS, TRUSTS
from client_waits import open_sockets
from stream_server import linked, stream_server


def context_of(**settings: Any) -> ssl.SSLContext | None:
    return tls_context(ClientSettings(use_tls=True, **settings))


@asynccontextmanager
async def tls_before(
    address: str, *, certificate: str = "server", asks_client: bool = False
) -> AsyncIterator[str]:
    """A TLS port in front of a plain one; its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FILES / f"{certificate}.pem", FILES / f"{certificate}.key")
    if asks_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(FILES / "ca.pem")
    async with stream_server(partial(linked, address), ssl=context) as tls_port:
        yield f"127.0.0.1:{tls_port}"


async def ask(address: str, tls: ssl.SSLContext | None) -> bytes:
    connections = ConnectionPool(tls=tls)
    try:
        return await connections.call_for_body(address, GetRouteInfoByTopic(topic="TBW102"))
    finally:
        connections.close()


async def test_in_test_mode_any_certificate_is_accepted(node: Node) -> None:
    for certificate in ("server", "stranger"):
        async with tls_before(node.namesrv_address, certificate=certificate) as address:
            assert b"broker-a" in await ask(address, context_of())


@pytest.mark.parametrize(
    ("settings", "warnings"),
    [
        ({}, 1),
        ({"tls_test_mode_enable": False}, 1),
        ({"tls_test_mode_enable": False, **TRUSTS}, 0),
        ({"use_tls": ssl.create_default_context()}, 0),
        ({"use_tls": False}, 0),
    ],
)
def test_unchecked_certificates_are_warned_of_once(
    settings: dict[str, Any], warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    warn_unchecked.cache_clear()
    for _ in range(3):
        tls_context(ClientSettings(**{"use_tls": True} | settings))
    found = [record for record in caplog.records if "CERTIFICATES ARE NOT CHECKED" in record.getMessage()]
    assert len(found) == warnings


async def test_a_context_of_the_user_is_used_unchanged(node: Node) -> None:
    mine = ssl.create_default_context(cafile=str(FILES / "ca.pem"))
    mine.verify_flags |= ssl.VERIFY_X509_STRICT  # as from Python 3.13 on
    mine.check_hostname = False
    context = tls_context(ClientSettings(use_tls=mine))
    assert context is mine
    async with tls_before(node.namesrv_address) as address:
        assert b"broker-a" in await ask(address, context)
    async with tls_before(node.namesrv_address, certificate="stranger") as address:
        with pytest.raises(NotReachable, match="certificate verify failed"):
            await ask(address, context)


async def test_a_server_is_checked_against_the_authority(node: Node) -> None:
    checking = context_of(tls_test_mode_enable=False, **TRUSTS)
    async with tls_before(node.namesrv_address) as address:
        assert b"broker-a" in await ask(address, checking)
        unchecked = context_of(tls_test_mode_enable=False)
        assert b"broker-a" in await ask(address, unchecked), "without auth_server nothing is checked"
    async with tls_before(node.namesrv_address, certificate="stranger") as address:
        with pytest.raises(NotReachable, match="certificate verify failed"):
            await ask(address, checking)


@pytest.mark.parametrize("locked", [False, True])
async def test_a_server_may_ask_for_the_clients_certificate(node: Node, locked: bool) -> None:
    shown = {
        **SHOWS,
        "tls_client_key_path": str(FILES / "client-locked.key"),
        "tls_client_key_password": "hush",
    }
    showing = context_of(tls_test_mode_enable=False, **TRUSTS, **(shown if locked else SHOWS))
    async with tls_before(node.namesrv_address, asks_client=True) as address:
        assert b"broker-a" in await ask(address, showing)
        with pytest.raises(NotReachable):
            await ask(address, context_of(tls_test_mode_enable=False, **TRUSTS))


async def test_a_plain_port_and_a_silent_one_are_not_reachable_by_tls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pocketmq.client.connections.pool.CONNECT_TIMEOUT_SECONDS", 0.3)

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def say_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await reader.read()

    async with stream_server(say_hello) as plain, stream_server(say_nothing) as silent:
        for port in (plain, silent):
            with pytest.raises(NotReachable, match="cannot connect"):
                await ask(f"127.0.0.1:{port}", context_of())


@pytest.mark.parametrize(
    "wrong",
    [
        {"tls_client_auth_server": True, "tls_client_trust_cert_path": str(FILES / "absent.pem")},
        {"tls_client_cert_path": str(FILES / "client.pem"), "tls_client_key_path": str(FILES / "server.key")},
        {"tls_client_cert_path": str(FILES / "make.sh")},
        {**SHOWS, "tls_client_key_path": str(FILES / "client-locked.key")},
        {
            **SHOWS,
            "tls_client_key_path": str(FILES / "client-locked.key"),
            "tls_client_key_password": "hushhush",
        },
    ],
)
async def test_files_that_do_not_fit_are_named_at_the_start(wrong: dict[str, Any]) -> None:
    sockets = open_sockets()
    producer = Producer("p", namesrv_addr="127.0.0.1:1", use_tls=True, tls_test_mode_enable=False, **wrong)
    with pytest.raises(ClientError, match=r"TLS: .*certificates") as caught:
        await producer.start()
    assert "hush" not in str(caught.value)
    assert open_sockets() <= sockets


def test_without_tls_there_is_no_context() -> None:
    assert tls_context(ClientSettings()) is None


async def test_a_peer_that_does_not_end_its_side_keeps_no_socket_open() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FILES / "server.pem", FILES / "server.key")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> ssl.SSLSocket:
            return context.wrap_socket(
                listener.accept()[0], server_side=True
            )  # never reads what we say at the end

        serving = asyncio.create_task(asyncio.to_thread(serve))
        before = open_sockets()
        connections = ConnectionPool(tls=context_of())
        await connections.get(f"127.0.0.1:{listener.getsockname()[1]}")
        with await serving:
            assert len(open_sockets() - before) == 2
            connections.close()
            await connections.until_lost()
            assert len(open_sockets() - before) == 1
