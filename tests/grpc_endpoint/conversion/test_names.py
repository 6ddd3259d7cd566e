"""Names of topics, groups and lite topics that are refused."""

import pytest
from pocketmq.grpc_endpoint.calls.refusals import RpcRefused
from pocketmq.grpc_endpoint.conversion.names import check_lite_topic, checked_group
from pocketmq.grpc_endpoint.messages import Code, Resource


@pytest.mark.parametrize(
    ("group", "text"),
    [
        ("", "the specified group is blank"),
        (" ", "the specified group is blank"),
        ("g" * 121, f"the specified group[{'g' * 121}] is longer than group max length: 120."),
        ("g" * 99_999, f"the specified group[{'g' * 1024}] is longer than group max length: 120."),
        (
            "g.h",
            "the specified group[g.h] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
        ),
        ("CID_RMQ_SYS_x", "cannot use system consumer group"),
    ],
)
def test_refused_groups(group: str, text: str) -> None:
    with pytest.raises(RpcRefused) as refused:
        checked_group(Resource(name=group))
    assert (refused.value.code, refused.value.text) == (Code.ILLEGAL_CONSUMER_GROUP, text)


def test_namespace_of_a_group_is_not_looked_at() -> None:
    assert checked_group(Resource(resource_namespace="a b", name="g%|-_1")) == "g%|-_1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (" ", "lite topic cannot be the char sequence of whitespace"),
        ("ä" * 33, "lite topic exceed the max size 64"),
        ("a%b", "lite topic can only contain alphanumeric characters, hyphens(-), and underscores(_)"),
    ],
)
def test_refused_lite_topics(name: str, text: str) -> None:
    with pytest.raises(RpcRefused) as refused:
        check_lite_topic(name)
    assert (refused.value.code, refused.value.text) == (Code.ILLEGAL_LITE_TOPIC, text)
