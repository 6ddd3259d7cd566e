"""AdminClient and servers that hang, stop, answer nonsense or contradict each other: an error says so, no task remains.

One fake is the name server and all brokers: a test sets its answer to each request code.
"""

import asyncio

import pytest
from click.testing import CliRunner
from pocketmq.cli.main import main
from pocketmq.client import AdminClient, CallTimeout, NotReachable, RequestRefused
from pocketmq.client.admin.security import acl_of
from pocketmq.protocol.bodies.security import UserInfo
from pocketmq.protocol.requests.name_server import (
    GetAllTopicListFromNameServer,
    GetBrokerClusterInfo,
    GetRouteInfoByTopic,
)
from pocketmq.protocol.requests.pull import QueryMessage
from pocketmq.protocol.requests.security import AuthCreateAcl, AuthCreateUser, AuthGetUser, AuthListAcl
from pocketmq.protocol.wire.command import Command

from client_admin import Answer, Answers, cluster, fake, route

GONE = "127.0.0.1:1"


async def test_a_call_without_an_answer_ends_after_the_timeout() -> None:
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
async def test_a_malformed_answer_is_one_line_on_the_command_line(garbage: bytes) -> None:
    async with fake({GetAllTopicListFromNameServer.code: garbage}) as address:
        result = await asyncio.to_thread(
            CliRunner().invoke, main, ["admin", "topicList", "-n", address], catch_exceptions=False
        )
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("pocketmq: name server 127.0.0.1:")
    assert "cannot be read: " in result.stderr
    assert result.stderr.count("\n") == 1


async def test_a_stopped_broker_does_not_hide_what_another_finds() -> None:
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


async def test_a_cluster_is_listed_with_its_stopped_broker() -> None:
    answers: Answers = {}
    async with fake(answers) as address:
        answers[GetBrokerClusterInfo.code] = cluster(GONE)
        result = await asyncio.to_thread(CliRunner().invoke, main, ["admin", "clusterList", "-n", address])
    assert result.exit_code == 0, result.output
    assert GONE in result.stdout
    assert "cannot connect" in result.stderr


async def test_users_and_acls_are_changed_at_every_broker_of_a_cluster() -> None:
    requests: list[tuple[int, str, bytes]] = []

    def remember(asked: Command) -> Answer:
        requests.append((asked.code, str(asked.fields), bytes(asked.body or b"")))
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
    assert [code for code, _, _ in requests] == [AuthCreateUser.code, AuthCreateUser.code, AuthCreateAcl.code]
    assert requests[0][1:] == ("{'username': 'a'}", b'{"password":"secret","username":"a"}')
    assert requests[2][2] == (
        b'{"policies":[{"entries":['
        b'{"actions":["Pub","Sub"],"decision":"Allow","resource":"Topic:Orders","sourceIps":["10.0.0.1"]},'
        b'{"actions":["Pub","Sub"],"decision":"Allow","resource":"Group:*","sourceIps":["10.0.0.1"]}'
        b']}],"subject":"User:a"}'
    )
