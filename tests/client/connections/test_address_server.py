"""Name server addresses from an HTTP page."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from pocketmq.client import ClientError, ClientSettings, NotReachable, Producer
from pocketmq.client.connections import address_server
from pocketmq.client.connections.address_server import address_server_url, fetch_name_servers

from stream_server import stream_server
from waiting import until


@asynccontextmanager
async def page(answer: Callable[[str], bytes]) -> AsyncIterator[str]:
    """A server that answers each path with bytes; its `host:port`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(answer(request.split(" ")[1]))
        await writer.drain()

    async with stream_server(serve) as port:
        yield f"127.0.0.1:{port}"


def ok(body: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body.encode()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ClientSettings(), None),
        (ClientSettings(namesrv_domain="ns.example"), "http://ns.example:8080/rocketmq/nsaddr"),
        (ClientSettings(namesrv_domain="ns.example:80"), "http://ns.example:80/rocketmq/nsaddr"),
        (
            ClientSettings(namesrv_domain="d", namesrv_domain_subgroup="s", unit_name="u"),
            "http://d:8080/rocketmq/s-u?nofix=1",
        ),
    ],
)
def test_the_page_has_the_official_address(settings: ClientSettings, expected: str | None) -> None:
    assert address_server_url(settings) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ok("a:1;b:2\n"), ["a:1", "b:2"]),
        (ok(" a:1 \r\nsecond line"), ["a:1"]),
        (ok(""), None),
        (ok("no address"), None),
        (b"HTTP/1.1 500 Oh\r\n\r\na:1", None),
        (b"\x00\xff", None),
        (ok("a:1")[:20], None),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe", None),
    ],
)
async def test_the_first_line_is_used_and_a_bad_page_is_not_reachable(
    answer: bytes, expected: list[str] | None
) -> None:
    async with page(lambda path: answer) as host:
        if expected is not None:
            assert await fetch_name_servers(f"http://{host}/") == expected
            return
        with pytest.raises(NotReachable, match="address server"):
            await fetch_name_servers(f"http://{host}/")
    with pytest.raises(NotReachable, match="address server"):
        await fetch_name_servers(f"http://{host}/")


async def test_a_client_finds_its_name_servers_and_follows_a_changed_page(
    namesrv_addr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.setattr("pocketmq.client.instance.instance.FIRST_REFRESH_SECONDS", 0.01)
    monkeypatch.setattr("pocketmq.client.instance.instance.REFRESH_MS", 10)
    addresses = [namesrv_addr]
    asked: list[str] = []

    def answer(path: str) -> bytes:
        asked.append(path)
        return ok(";".join(addresses))

    async with page(answer) as host, Producer("p", namesrv_domain=host) as producer:
        assert (await producer.send("T", b"x")).message_id
        addresses.append("127.0.0.1:1")
        await until(lambda: len(producer._running.routes.name_servers.servers) == 2)
        assert producer._running.routes.name_servers.servers[0] == namesrv_addr, "the one in use stays first"
    assert set(asked) == {"/rocketmq/nsaddr"}


async def test_a_configured_address_is_used_instead_of_the_page(namesrv_addr: str) -> None:
    async with Producer("p", namesrv_addr=namesrv_addr, namesrv_domain="127.0.0.1:1") as producer:
        assert (await producer.send("T", b"x")).message_id


async def test_a_missing_page_is_requested_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    async with Producer("p", namesrv_domain="127.0.0.1:1") as producer:
        with pytest.raises(ClientError, match="no name server"):
            await producer.send("T", b"x")
    with pytest.raises(ClientError, match="no name server"):
        await Producer("p").start()
    assert address_server.REFRESH_MS == 120_000
