"""AdminClient and servers that hang, leave, answer nonsense or contradict each other: an error says so, nothing stays.

One fake plays the name server and all brokers: it answers by request code what a test tells it to.
"""

import asyncio
import base64
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from pocketmq.cli.main import main
from pocketmq.client.admin.client import AdminClient
from pocketmq.client.admin.security import acl_of
from pocketmq.client.errors import CallTimeout, NotReachable, RequestRefused
from pocketmq.protocol.bodies.routes import BrokerData, ClusterInfo, QueueData, TopicRouteData
from pocketmq.protocol.bodies.security import UserInfo
from pocketmq.protocol.requests.name_server import (
    GetAllTopicListFromNameServer,
    GetBrokerClusterInfo,
    GetRouteInfoByTopic,
)
from pocketmq.protocol.requests.pull import QueryMessage
from pocketmq.protocol.requests.security import AuthCreateAcl, AuthCreateUser, AuthGetUser, AuthListAcl
from pocketmq.protocol.wire.command import RESPONSE_FLAG, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame

GONE = "127.0.0.1:1"

Answer = bytes | tuple[int, str] | None
"""A body, a code with a remark, or silence."""
Answers = dict[int, Answer | Callable[[Command], Answer]]


@asynccontextmanager
async def fake(answers: Answers) -> AsyncIterator[str]:
    """The address of a server that answers so; anything else with code 3."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cutter = FrameCutter()
        while data := await reader.read(65536):
            for asked in cutter.feed(data):
                answer = answers.get(asked.code, (3, "not supported"))
                if callable(answer):
                    answer = answer(asked)
                if answer is None:
                    continue
                code, remark, body = (0, None, answer) if isinstance(answer, bytes) else (*answer, None)
                writer.write(
                    encode_frame(Command(code, asked.opaque, RESPONSE_FLAG, remark, {}, body or None))
                )
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()


def route(*addresses: str) -> bytes:
    """The route of a topic with a broker at each address."""
    names = [f"broker-{number}" for number in range(len(addresses))]
    return TopicRouteData(
        queue_datas=[QueueData(name, 1, 1, 6) for name in names],
        broker_datas=[BrokerData("c", name, {0: one}) for name, one in zip(names, addresses, strict=True)],
    ).encode()


def cluster(*addresses: str) -> bytes:
    names = [f"broker-{number}" for number in range(len(addresses))]
    table = {name: BrokerData("c", name, {0: one}) for name, one in zip(names, addresses, strict=True)}
    return ClusterInfo(table, {"c": names}).encode()


async def test_silence_ends_after_the_timeout() -> None:
    async with (
        fake({GetBrokerClusterInfo.code: None}) as address,
        AdminClient(namesrv_addr=address, mq_client_api_timeout=50) as admin,
    ):
        with pytest.raises(CallTimeout):
            await admin.cluster_info()


async def test_a_cancelled_call_leaves_a_client_that_works() -> None:
    asked = asyncio.Event()
    answers: Answers = {
        GetBrokerClusterInfo.code: lambda _: asked.set(),
        GetAllTopicListFromNameServer.code: b"{}",
    }
    async with fake(answers) as address, AdminClient(namesrv_addr=address) as admin:
        before = asyncio.all_tasks()
        call = asyncio.create_task(admin.cluster_info())
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)} == set()
        assert await admin.topics() == []


@pytest.mark.parametrize("garbage", [b"no json", b'{"topicList":7}', b"[]", b"\xff\xfe", b'{"topicList":'])
async def test_an_answer_that_is_none_is_one_line_on_the_command_line(garbage: bytes) -> None:
    async with fake({GetAllTopicListFromNameServer.code: garbage}) as address:
        result = await asyncio.to_thread(
            CliRunner().invoke, main, ["admin", "topicList", "-n", address], catch_exceptions=False
        )
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("pocketmq: an answer cannot be read: ")
    assert result.stderr.count("\n") == 1


async def test_a_broker_that_is_gone_does_not_hide_what_another_finds() -> None:
    async def ask(answer: Answer) -> list[object]:
        answers: Answers = {QueryMessage.code: answer}
        async with fake(answers) as address:
            answers[GetRouteInfoByTopic.code] = route(GONE, address)
            async with AdminClient(namesrv_addr=address) as admin:
                return list(await admin.messages_by_key("Orders", "k"))

    with pytest.raises(NotReachable):
        await ask((22, "nothing"))
    with pytest.raises(RequestRefused):
        await ask((1, "broken"))


async def test_a_cluster_is_listed_with_the_broker_that_is_gone() -> None:
    answers: Answers = {}
    async with fake(answers) as address:
        answers[GetBrokerClusterInfo.code] = cluster(GONE)
        result = await asyncio.to_thread(CliRunner().invoke, main, ["admin", "clusterList", "-n", address])
    assert result.exit_code == 0, result.output
    assert GONE in result.stdout
    assert "cannot connect" in result.stderr


async def test_requests_of_the_command_line_are_signed_with_the_keys_of_mqadmin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "tools.yml").write_text("accessKey: admin\nsecretKey: secret\n")
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    fields: list[dict[str, str]] = []

    def remember(asked: Command) -> Answer:
        fields.append(asked.fields or {})
        return b"{}"

    async with fake({GetAllTopicListFromNameServer.code: remember}) as address:
        await asyncio.to_thread(CliRunner().invoke, main, ["admin", "topicList", "-n", address])
    expected = base64.b64encode(hmac.digest(b"secret", b"admin", "sha1")).decode()
    assert fields == [{"AccessKey": "admin", "Signature": expected}]


async def test_users_and_rights_are_changed_at_every_broker_of_a_cluster() -> None:
    told: list[tuple[int, str, bytes]] = []

    def remember(asked: Command) -> Answer:
        told.append((asked.code, str(asked.fields), bytes(asked.body or b"")))
        return b""

    answers: Answers = {AuthCreateUser.code: remember, AuthCreateAcl.code: remember, AuthGetUser.code: b""}
    answers[AuthListAcl.code] = b'[{"subject":"User:a","policies":null}]'
    async with fake(answers) as first, fake(answers) as second:
        answers[GetBrokerClusterInfo.code] = cluster(first, second)
        async with AdminClient(namesrv_addr=first) as admin:
            assert await admin.create_user(UserInfo("a", "secret"), cluster="c") == [first, second]
            acl = acl_of("User:a", ["Topic:Orders", "Group:*"], ["Pub", "Sub"], "Allow", ["10.0.0.1"])
            assert await admin.create_acl(acl, address=second) == [second]
            assert await admin.user(first, "absent") is None
            assert [one.subject for one in await admin.acls(first)] == ["User:a"]
    assert [code for code, _, _ in told] == [AuthCreateUser.code, AuthCreateUser.code, AuthCreateAcl.code]
    assert told[0][1:] == ("{'username': 'a'}", b'{"password":"secret","username":"a"}')
    assert told[2][2] == (
        b'{"policies":[{"entries":['
        b'{"actions":["Pub","Sub"],"decision":"Allow","resource":"Topic:Orders","sourceIps":["10.0.0.1"]},'
        b'{"actions":["Pub","Sub"],"decision":"Allow","resource":"Group:*","sourceIps":["10.0.0.1"]}'
        b']}],"subject":"User:a"}'
    )
