"""Signatures and rights of gRPC requests: the same refusals at our endpoint and at the official proxy."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pocketmq.grpc_endpoint.messages import (
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    ClientType,
    Code,
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
    Settings,
    TelemetryCommand,
)

from conformance.access.access_rows import AUTH_SETTINGS, ROOT
from conformance.grpc.announcing import consumer, producer
from conformance.grpc.rows import message, send, topic
from conformance.grpc.side import SIDES
from conformance.official.local_proxy import LocalProxy
from conformance.requests.transcripts import Row
from conformance.servers.our_server import OurServer
from conformance.servers.server import Server, started_at_first_use
from grpc_client import GrpcClient

DATE = "20261122T000000Z"
SHOP = ("shop", "shoppassword")
PROXY = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "authenticationProvider": AUTH_SETTINGS["authenticationProvider"],
    "authorizationProvider": AUTH_SETTINGS["authorizationProvider"],
    "authenticationMetadataProvider": "org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider",
    "authorizationMetadataProvider": "org.apache.rocketmq.proxy.auth.ProxyAuthorizationMetadataProvider",
}


def signed(user: str, password: str, date: str = DATE) -> dict[str, str]:
    signature = hmac.new(password.encode(), date.encode(), hashlib.sha1).hexdigest()
    header = f"MQv2-HMAC-SHA1 Credential={user}, SignedHeaders=x-mq-date-time, Signature={signature}"
    return {"authorization": header, "x_mq_date_time": date}


def prepare(server: Server) -> None:
    """Two topics, a group, and a user with rights on one of each."""

    def ask(code: int, fields: dict[str, object], body: object = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        signed_fields: dict[str, Any] = {**Row(ROOT, code, fields, data).signed_fields()}
        reply = server.call(code, body=data, **signed_fields)
        assert reply.code == 0, (code, reply)

    for name in ("Orders", "Other"):
        queues = {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "topicFilterType": "SINGLE_TAG"}
        ask(17, {"topic": name, "defaultTopic": "TBW102", "topicSysFlag": 0, "order": False, **queues})
    for group in ("billing", "others"):
        ask(200, {"x": "y"}, {"groupName": group})
    for name in ("shop", "off"):
        user = {"username": name, "password": f"{name}password", "userType": "Normal"}
        ask(3001, {"username": name}, user)
    ask(3002, {"username": "off"}, {"username": "off", "userStatus": "disable"})
    entries = [
        {"resource": resource, "actions": ["Pub", "Sub"], "decision": "Allow"}
        for resource in ("Topic:Orders", "Group:billing")
    ]
    ask(3006, {"subject": "User:shop"}, {"policies": [{"entries": entries}]})


@pytest.fixture(scope="module")
def guarded(peers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    def make(side: str) -> Server:
        home = tmp_path_factory.mktemp(f"guarded-{side}")
        if side == "ours":
            conf = {**AUTH_SETTINGS, "grpcStrict": True, "autoCreateTopicEnable": False}
            return OurServer(home, broker_conf=conf, options=("--grpc-port", "8081"))
        return LocalProxy(home, broker_conf=AUTH_SETTINGS, proxy_settings=PROXY)

    with started_at_first_use(make, prepare) as get:
        yield get


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest, guarded: Callable[[str], Server]) -> Server:
    return guarded(request.param)


async def status(client: GrpcClient, request: Any, metadata: dict[str, Any]) -> tuple[Code, str]:
    """Of the first reply; `metadata` in place of the client's own."""
    name = type(request).__name__.removesuffix("Request")
    headers = {"x-mq-client-id": "shop@1@0@a", "x-mq-language": "JAVA", "x-mq-client-version": "5.2.0"}
    call = client.open(name, request, headers=headers, timeout="10S", **metadata)
    reply = await call.next(20)
    return reply.status.code, reply.status.message


ROUTE = QueryRouteRequest(topic=topic("Orders"))
SIGNATURES: list[tuple[str, dict[str, str], str]] = [
    ("nothing", {}, "username cannot be null."),
    ("no date", {"authorization": "MQv2 Credential=shop, Signature=00"}, "datetime is null."),
    (
        "no blank",
        {"authorization": "Credential=shop", "x_mq_date_time": DATE},
        "authentication header is incorrect.",
    ),
    (
        "no pair",
        {"authorization": "MQv2 Credential", "x_mq_date_time": DATE},
        "authentication keyValues length is incorrect, actual length=1.",
    ),
    (
        "no hex",
        {"authorization": "MQv2 Credential=shop, Signature=xyz", "x_mq_date_time": DATE},
        "create authentication context error.",
    ),
    (
        "no user",
        {"authorization": "MQv2 Credential=, Signature=00", "x_mq_date_time": DATE},
        "username cannot be null.",
    ),
    ("unknown user", signed("nobody", "x"), "User:nobody is not found."),
    ("disabled user", signed("off", "offpassword"), "User:off is disabled."),
    ("wrong password", signed("shop", "x"), "check signature failed."),
    (
        "no signature",
        {"authorization": "MQv2 Credential=shop", "x_mq_date_time": DATE},
        "check signature failed.",
    ),
]


@pytest.mark.parametrize(
    ("metadata", "text"), [row[1:] for row in SIGNATURES], ids=[row[0] for row in SIGNATURES]
)
async def test_bad_signature(side: Server, metadata: dict[str, str], text: str) -> None:
    async with GrpcClient.connected(side.connect(8081)) as client:
        assert await status(client, ROUTE, metadata) == (Code.UNAUTHORIZED, text)


async def test_right_signatures(side: Server) -> None:
    async with GrpcClient.connected(side.connect(8081)) as client:
        for metadata in (
            signed(*SHOP),
            {
                **signed(*SHOP),
                "authorization": signed(*SHOP)["authorization"].replace("shop", "shop//Rocketmq"),
            },
            {**signed(*SHOP), "authorization": signed(*SHOP)["authorization"].replace("MQv2-HMAC-SHA1", "X")},
            signed(*ROOT),
        ):
            assert await status(client, ROUTE, metadata) == (Code.OK, "OK")


def no_right(resource: str) -> str:
    return f"User:shop has no permission to access {resource} from 127.0.0.1, no matched policies."


ORDERS, OTHER = topic("Orders"), topic("Other")
BILLING, OTHERS = Resource(name="billing"), Resource(name="others")
PUSH = ClientType.PUSH_CONSUMER
RIGHTS: list[tuple[str, Any, str]] = [
    ("route", QueryRouteRequest(topic=OTHER), no_right("Topic:Other")),
    ("send", send(message("Other")), no_right("Topic:Other")),
    ("end", EndTransactionRequest(topic=OTHER), no_right("Topic:Other")),
    ("recall", RecallMessageRequest(topic=OTHER), no_right("Topic:Other")),
    ("heartbeat", HeartbeatRequest(group=OTHERS, client_type=PUSH), no_right("Group:others")),
    (
        "receive in a group",
        ReceiveMessageRequest(group=OTHERS, message_queue=MessageQueue(topic=ORDERS)),
        no_right("Group:others"),
    ),
    (
        "receive of a topic",
        ReceiveMessageRequest(group=BILLING, message_queue=MessageQueue(topic=OTHER)),
        no_right("Topic:Other"),
    ),
    ("ack", AckMessageRequest(group=BILLING, topic=OTHER), no_right("Topic:Other")),
    (
        "dead letter",
        ForwardMessageToDeadLetterQueueRequest(group=OTHERS, topic=OTHER),
        no_right("Group:others"),
    ),
    ("assignment", QueryAssignmentRequest(group=BILLING, topic=OTHER), no_right("Topic:Other")),
    ("change", ChangeInvisibleDurationRequest(group=OTHERS, topic=ORDERS), no_right("Group:others")),
    ("termination", NotifyClientTerminationRequest(group=OTHERS), no_right("Group:others")),
    ("route of nothing", QueryRouteRequest(), "topic is null."),
    ("send of nothing", send(), "message is null."),
    ("heartbeat of nothing", HeartbeatRequest(client_type=PUSH), "group is null."),
    ("ack of nothing", AckMessageRequest(), "group is null."),
]


@pytest.mark.parametrize(("request_", "text"), [row[1:] for row in RIGHTS], ids=[row[0] for row in RIGHTS])
async def test_missing_right(side: Server, request_: Any, text: str) -> None:
    async with GrpcClient.connected(side.connect(8081)) as client:
        assert await status(client, request_, signed(*SHOP)) == (Code.UNAUTHORIZED, text)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (producer("Orders", "Other"), no_right("Topic:Other")),
        (consumer("others", "Orders"), no_right("Group:others")),
        (consumer("billing", "Orders", "Other"), no_right("Topic:Other")),
    ],
)
async def test_settings_without_a_right(side: Server, settings: Settings, text: str) -> None:
    async with GrpcClient.connected(side.connect(8081)) as client:
        headers = {"x-mq-client-id": "shop@1@0@a", "x-mq-language": "JAVA"}
        metadata: dict[str, Any] = {**signed(*SHOP)}
        stream = client.open("Telemetry", headers=headers, **metadata)
        stream.send(TelemetryCommand(settings=settings))
        reply = await stream.next(20)
        assert (reply.status.code, reply.status.message) == (Code.UNAUTHORIZED, text)
        assert await stream.next(20) is None


async def test_user_with_rights(side: Server) -> None:
    async with GrpcClient.connected(side.connect(8081)) as client:
        assert await status(client, ROUTE, signed(*SHOP)) == (Code.OK, "OK")
        assert await status(client, send(message("Orders")), signed(*SHOP)) == (Code.OK, "OK")
        assigned = QueryAssignmentRequest(group=BILLING, topic=ORDERS)
        assert await status(client, assigned, signed(*SHOP)) == (Code.OK, "OK")
