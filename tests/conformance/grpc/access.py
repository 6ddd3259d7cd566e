"""Signatures and rights: a user with rights on one topic and one group, one that is disabled, and root."""

import hashlib
import hmac
import json
from typing import Any

from pocketmq.grpc_endpoint.messages import (
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    ClientType,
    EndTransactionRequest,
    ForwardMessageToDeadLetterQueueRequest,
    HeartbeatRequest,
    MessageQueue,
    NotifyClientTerminationRequest,
    QueryAssignmentRequest,
    QueryRouteRequest,
    RecallMessageRequest,
    ReceiveMessageRequest,
    Resource,
)

from conformance.access.access_rows import AUTH_SETTINGS, ROOT, SigningClient
from conformance.grpc.rows import message, send, topic
from conformance.grpc.talk import Talk
from conformance.servers.server import Server
from grpc_calls import consumer, producer

DATE = "20261122T000000Z"
SHOP = ("shop", "shoppassword")
PROXY: dict[str, object] = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "authenticationProvider": AUTH_SETTINGS["authenticationProvider"],
    "authorizationProvider": AUTH_SETTINGS["authorizationProvider"],
    "authenticationMetadataProvider": "org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider",
    "authorizationMetadataProvider": "org.apache.rocketmq.proxy.auth.ProxyAuthorizationMetadataProvider",
}


def signed(user: str, password: str) -> dict[str, str]:
    signature = hmac.new(password.encode(), DATE.encode(), hashlib.sha1).hexdigest()
    header = f"MQv2-HMAC-SHA1 Credential={user}, SignedHeaders=x-mq-date-time, Signature={signature}"
    return {"authorization": header, "x_mq_date_time": DATE}


def prepare(server: Server) -> None:
    with SigningClient(server) as client:
        for name in ("Orders", "Other"):
            client.update_topic(name, 1)
        for group in ("billing", "others"):
            client.update_group(group)
        for name in ("shop", "off"):
            client.make_user(name, f"{name}password")
        disabled = json.dumps({"username": "off", "userStatus": "disable"}).encode()
        assert client.call(3002, disabled, username="off").code == 0
        client.allow("shop", "Topic:Orders", "Group:billing")


ORDERS, OTHER = topic("Orders"), topic("Other")
BILLING, OTHERS = Resource(name="billing"), Resource(name="others")
PUSH = ClientType.PUSH_CONSUMER
ROUTE = QueryRouteRequest(topic=ORDERS)


def with_header(text: str) -> dict[str, str]:
    return {"authorization": text, "x_mq_date_time": DATE}


_OURS = signed(*SHOP)["authorization"]
SIGNATURES: dict[str, dict[str, str]] = {
    "nothing": {},
    "no date": {"authorization": "MQv2 Credential=shop, Signature=00"},
    "no blank": with_header("Credential=shop"),
    "no pair": with_header("MQv2 Credential"),
    "no hex": with_header("MQv2 Credential=shop, Signature=xyz"),
    "no user": with_header("MQv2 Credential=, Signature=00"),
    "unknown user": signed("nobody", "x"),
    "disabled user": signed("off", "offpassword"),
    "wrong password": signed("shop", "x"),
    "no signature": with_header("MQv2 Credential=shop"),
    "right": signed(*SHOP),
    "right, with a place": with_header(_OURS.replace("shop", "shop//Rocketmq")),
    "right, of another scheme": with_header(_OURS.replace("MQv2-HMAC-SHA1", "X")),
    "right, in capitals": with_header(_OURS.rpartition("=")[0] + "=" + _OURS.rpartition("=")[2].upper()),
    "root": signed(*ROOT),
}
RIGHTS: list[tuple[str, Any]] = [
    ("route", QueryRouteRequest(topic=OTHER)),
    ("send", send(message("Other"))),
    ("end", EndTransactionRequest(topic=OTHER)),
    ("recall", RecallMessageRequest(topic=OTHER)),
    ("heartbeat", HeartbeatRequest(group=OTHERS, client_type=PUSH)),
    ("receive in a group", ReceiveMessageRequest(group=OTHERS, message_queue=MessageQueue(topic=ORDERS))),
    ("receive of a topic", ReceiveMessageRequest(group=BILLING, message_queue=MessageQueue(topic=OTHER))),
    ("ack", AckMessageRequest(group=BILLING, topic=OTHER)),
    ("dead letter", ForwardMessageToDeadLetterQueueRequest(group=OTHERS, topic=OTHER)),
    ("assignment", QueryAssignmentRequest(group=BILLING, topic=OTHER)),
    ("change", ChangeInvisibleDurationRequest(group=OTHERS, topic=ORDERS)),
    ("termination", NotifyClientTerminationRequest(group=OTHERS)),
    ("route of nothing", QueryRouteRequest()),
    ("send of nothing", send()),
    ("heartbeat of nothing", HeartbeatRequest(client_type=PUSH)),
    ("heartbeat of a producer", HeartbeatRequest(client_type=ClientType.PRODUCER)),
    ("ack of nothing", AckMessageRequest()),
    ("route with a right", ROUTE),
    ("send with a right", send(message("Orders"))),
    ("assignment with a right", QueryAssignmentRequest(group=BILLING, topic=ORDERS)),
]
SETTINGS = {
    "topics of a producer": producer("Orders", "Other"),
    "group of a consumer": consumer("others", ["Orders"]),
    "topics of a consumer": consumer("billing", ["Orders", "Other"]),
    "all of a consumer": consumer("billing", ["Orders"]),
    "all of a producer": producer("Orders"),
}


async def guard(talk: Talk) -> None:
    headers = {"x-mq-client-id": "shop@1@0@a", "x-mq-language": "JAVA", "x-mq-client-version": "5.2.0"}
    for name, metadata in SIGNATURES.items():
        await talk.ask(name, ROUTE, headers=headers, **metadata)
    await talk.ask("nothing, not even a client id", ROUTE, headers={})
    for name, request in RIGHTS:
        await talk.ask(name, request, headers=headers, **signed(*SHOP))
    for name, settings in SETTINGS.items():
        await talk.settle(name, settings, headers=headers, **signed(*SHOP))
