"""An AdminClient beside other clients of its instance, and answers that it cannot read."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from pocketmq.client import AdminClient, ClientError, InvalidSetting, UnreadableReply
from pocketmq.protocol.requests.admin import GetBrokerRuntimeInfo
from pocketmq.protocol.requests.group import GetAllSubscriptionGroupConfig
from pocketmq.protocol.requests.name_server import (
    GetAllTopicListFromNameServer,
    GetBrokerClusterInfo,
    GetRouteInfoByTopic,
)
from pocketmq.protocol.requests.pull import QueryMessage
from pocketmq.protocol.requests.security import AuthListUser
from pocketmq.protocol.requests.topic import GetAllTopicConfig

from client_admin import Answers, fake, route

Ask = Callable[[AdminClient, str], Coroutine[Any, Any, object]]
READS: dict[str, tuple[int, Ask]] = {
    "topics": (GetAllTopicListFromNameServer.code, lambda admin, _: admin.topics()),
    "cluster": (GetBrokerClusterInfo.code, lambda admin, _: admin.cluster_info()),
    "route": (GetRouteInfoByTopic.code, lambda admin, _: admin.topic_route("T")),
    "runtime": (GetBrokerRuntimeInfo.code, lambda admin, at: admin.broker_runtime(at)),
    "topic table": (GetAllTopicConfig.code, lambda admin, at: admin.topic_configs(at)),
    "group table": (GetAllSubscriptionGroupConfig.code, lambda admin, at: admin.group_configs(at)),
    "users": (AuthListUser.code, lambda admin, at: admin.users(at)),
    "messages": (QueryMessage.code, lambda admin, _: admin.messages_by_key("T", "k")),
}


@pytest.mark.parametrize("read", READS)
async def test_an_answer_that_cannot_be_read_is_an_error_of_the_client(read: str) -> None:
    """It was BodyError of the protocol, which `except ClientError` does not catch."""
    code, ask = READS[read]
    answers: Answers = {code: b'{"noise'}
    async with fake(answers) as address:
        answers.setdefault(GetRouteInfoByTopic.code, route(address))
        async with AdminClient(namesrv_addr=address) as admin:
            with pytest.raises(UnreadableReply) as failed:
                await ask(admin, address)
    assert isinstance(failed.value, ClientError)


@pytest.mark.parametrize(
    ("java_name", "python_name"),
    [
        ("examineTopicStats", "topic_status"),
        ("maxOffset", "max_offset"),
        ("createAndUpdateTopicConfig", "update_topic"),
    ],
)
def test_the_error_for_a_java_name_names_the_python_one(java_name: str, python_name: str) -> None:
    with pytest.raises(AttributeError, match=f"no {java_name}: its Python name is {python_name}$"):
        getattr(AdminClient(namesrv_addr="127.0.0.1:1"), java_name)
    with pytest.raises(AttributeError, match=r"AdminClient has no colour$"):
        AdminClient(namesrv_addr="127.0.0.1:1").colour  # noqa: B018


def test_a_namespace_that_would_change_no_name_is_refused() -> None:
    with pytest.raises(
        InvalidSetting, match=r"write them as brokers have them, 'blue%Orders', or set namespace_v2"
    ):
        AdminClient(namesrv_addr="127.0.0.1:1", namespace="blue")
    AdminClient(namesrv_addr="127.0.0.1:1", namespace_v2="blue")
