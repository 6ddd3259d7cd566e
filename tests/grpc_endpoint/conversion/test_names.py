"""Names of groups: the official proxy's refusals are recorded in `conformance/grpc`."""

import pytest
from pocketmq.grpc_endpoint.calls.handler import RpcRefused
from pocketmq.grpc_endpoint.conversion.names import checked_group
from pocketmq.grpc_endpoint.messages import Code, Resource


def test_a_refused_name_is_repeated_in_part() -> None:
    with pytest.raises(RpcRefused) as refused:
        checked_group(Resource(name="g" * 99_999))
    text = f"the specified group[{'g' * 1024}] is longer than group max length: 120."
    assert (refused.value.code, refused.value.text) == (Code.ILLEGAL_CONSUMER_GROUP, text)


def test_namespace_of_a_group_is_not_looked_at() -> None:
    assert checked_group(Resource(resource_namespace="a b", name="g%|-_1")) == "g%|-_1"
