"""Signatures and rights: the users of the store guard the gRPC port."""

import hashlib
import hmac
from typing import Any

import pytest
from pocketmq.broker.errors import StartError
from pocketmq.grpc_endpoint.messages import (
    ClientType,
    Code,
    HeartbeatRequest,
    QueryRouteRequest,
    ReceiveMessageRequest,
    Resource,
)
from pocketmq.protocol.bodies.security import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo

from grpc_calls import GrpcBroker, consumer, new_message, producer, send

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


def test_signature_of_the_official_client() -> None:
    header = signed()["authorization"]
    assert header.endswith("Signature=a41438a52d5f91db071f04f09e9af7354d205c5d")


@pytest.mark.parametrize(
    "metadata",
    [
        signed(),
        signed("admin//Rocketmq"),
        {**signed(), "authorization": signed()["authorization"].replace("MQv2-HMAC-SHA1", "Other")},
        {
            **signed(),
            "authorization": signed()["authorization"].replace("a41438a52d5f", "A41438A52D5F"),
        },
    ],
)
async def test_right_signature_passes(guarded: GrpcBroker, metadata: dict[str, str]) -> None:
    assert guarded.refused(ROUTE, metadata=metadata) == (Code.OK, "OK")


def changed(**parts: str) -> dict[str, str]:
    return {**signed(), **parts}


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({}, "username cannot be null."),
        ({"authorization": "MQv2-HMAC-SHA1 Credential=admin"}, "datetime is null."),
        (changed(authorization="nothing"), "authentication header is incorrect."),
        (
            changed(authorization="MQv2 Credential"),
            "authentication keyValues length is incorrect, actual length=1.",
        ),
        (
            changed(authorization="MQv2 Credential=admin, Signature=xyz"),
            "create authentication context error.",
        ),
        (changed(authorization="MQv2 Credential=, Signature=00"), "username cannot be null."),
        (signed("nobody"), "User:nobody is not found."),
        (signed("off", "secret"), "User:off is disabled."),
        (signed(password="wrong"), "check signature failed."),
        (changed(authorization="MQv2 Credential=admin"), "check signature failed."),
    ],
)
async def test_bad_signature_is_refused(guarded: GrpcBroker, metadata: dict[str, str], text: str) -> None:
    assert guarded.refused(ROUTE, metadata=metadata) == (Code.UNAUTHORIZED, text)


async def test_authentication_precedes_the_client_id(guarded: GrpcBroker) -> None:
    assert guarded.refused(ROUTE, client_id="") == (Code.UNAUTHORIZED, "username cannot be null.")


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


async def test_settings_need_the_rights_of_their_topics_and_group(guarded: GrpcBroker) -> None:
    bob = signed("bob", "secret")

    def status_of(settings: Any) -> Code:
        (reply,) = guarded.telemetry(settings, metadata=bob).replies
        code: Code = reply.status.code
        return code

    assert status_of(producer("t")) == Code.UNAUTHORIZED
    grant(guarded, "Topic:t", "Pub", "Sub")
    assert status_of(producer("t")) == Code.OK
    assert status_of(consumer("g")) == Code.UNAUTHORIZED
    grant(guarded, "Group:g", "Sub")
    assert status_of(consumer("g")) == Code.OK


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


async def test_requests_that_name_nothing(guarded: GrpcBroker) -> None:
    bob = signed("bob", "secret")
    assert guarded.refused(send(), metadata=bob) == (Code.UNAUTHORIZED, "message is null.")
    nameless = HeartbeatRequest(client_type=ClientType.PUSH_CONSUMER)
    assert guarded.refused(nameless, metadata=bob) == (Code.UNAUTHORIZED, "group is null.")
    settings_first = HeartbeatRequest(client_type=ClientType.PRODUCER)
    assert guarded.refused(settings_first, metadata=bob)[0] == Code.UNRECOGNIZED_CLIENT_TYPE
    assert ReceiveMessageRequest().message_queue.topic.name == ""


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
