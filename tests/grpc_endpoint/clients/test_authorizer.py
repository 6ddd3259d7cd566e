"""Signatures and rights: the users of the store guard the gRPC port."""

import hashlib
import hmac
from typing import Any

import pytest
from pocketmq.broker.errors import StartError
from pocketmq.grpc_endpoint.messages import ClientType, Code, HeartbeatRequest, QueryRouteRequest, Resource
from pocketmq.protocol.bodies.security import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo

from grpc_calls import GrpcBroker, consumer, new_message, send

ROUTE = QueryRouteRequest(topic=Resource(name="t"))
DATE = "20261122T000000Z"


def signed(user: str = "admin", password: str = "12345678", date: str = DATE) -> dict[str, str]:
    signature = hmac.new(password.encode(), date.encode(), hashlib.sha1).hexdigest()
    header = f"MQv2-HMAC-SHA1 Credential={user}, SignedHeaders=x-mq-date-time, Signature={signature}"
    return {"authorization": header, "x-mq-date-time": date}


@pytest.fixture
async def guarded(grpc_maker: Any) -> GrpcBroker:
    grpc: GrpcBroker = grpc_maker(
        authentication_enabled=True,
        authorization_enabled=True,
        init_authentication_user='{"username":"admin","password":"12345678"}',
    )
    users = grpc.broker.access.users
    users.create(UserInfo(username="bob", password="secret"))
    users.create(UserInfo(username="off", password="secret", user_status="disable"))
    return grpc


def grant(grpc: GrpcBroker, resource: str, *actions: str, decision: str = "Allow") -> None:
    entry = PolicyEntryInfo(resource=resource, actions=list(actions), decision=decision)
    policy = PolicyInfo(policy_type="Custom", entries=[entry])
    grpc.broker.access.acls.put(AclInfo(subject="User:bob", policies=[policy]))


async def test_user_needs_a_right(guarded: GrpcBroker) -> None:
    guarded.topic("t")
    bob = signed("bob", "secret")
    text = "User:bob has no permission to access Topic:t from 127.0.0.1, no matched policies."
    assert guarded.refused(ROUTE, metadata=bob) == (Code.UNAUTHORIZED, text)
    grant(guarded, "Topic:t", "Sub")
    assert guarded.refused(ROUTE, metadata=bob) == (Code.OK, "OK")
    assert guarded.refused(send(new_message()), metadata=bob) == (Code.UNAUTHORIZED, text)
    grant(guarded, "Topic:t", "Pub", decision="Deny")
    denied = "User:bob has no permission to access Topic:t from 127.0.0.1, the decision is deny."
    assert guarded.refused(send(new_message()), metadata=bob) == (Code.UNAUTHORIZED, denied)


@pytest.mark.parametrize("kind", list(ClientType))
async def test_a_consumer_joins_no_group_that_it_has_no_right_to(
    guarded: GrpcBroker, kind: ClientType
) -> None:
    """Its settings say that it is a consumer, whatever its heartbeat says."""
    bob = signed("bob", "secret")
    grant(guarded, "Topic:t", "Sub")
    grant(guarded, "Group:g", "Sub")
    guarded.telemetry(consumer("g"), metadata=bob)
    joining = HeartbeatRequest(group=Resource(name="other"), client_type=kind)
    assert guarded.refused(joining, metadata=bob)[0] == Code.UNAUTHORIZED
    assert guarded.broker.membership.consumers.get("other") is None
    own = HeartbeatRequest(group=Resource(name="g"), client_type=kind)
    assert guarded.refused(own, metadata=bob)[0] == Code.OK


async def test_white_lists_name_requests(grpc_maker: Any) -> None:
    grpc = grpc_maker(
        authentication_enabled=True, authentication_whitelist="apache.rocketmq.v2.QueryRouteRequest"
    )
    grpc.topic("t")
    assert grpc.refused(ROUTE)[0] == Code.OK
    assert grpc.refused(send(new_message()))[0] == Code.UNAUTHORIZED


async def test_access_keys_of_the_4_9_line_cannot_guard_the_port(grpc_maker: Any, tmp_path: Any) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text("accounts: []\n")
    with pytest.raises(StartError, match="authenticationEnabled"):
        grpc_maker(acl_enable=True, rocketmq_home=str(tmp_path))
