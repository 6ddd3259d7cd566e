"""SQL92 filters on ours, on official 4.9.7 and on official 5.5.0."""

import json

import pytest
from pocketmq.protocol.message.record import decode_records

from conformance.conftest import server_of_a_file
from conformance.daily import DAILY
from conformance.servers.raw_client import RawClient, heartbeat
from conformance.servers.remoting import Reply
from conformance.servers.server import Names, Server, ServerOf

server = server_of_a_file({"enablePropertyFilter": True})


@pytest.fixture
def topic(client: RawClient, names: Names) -> str:
    """Four messages of one queue, property n from 0 to 3."""
    name = names("sql")
    client.update_topic(name, 1)
    for number in range(4):
        client.send(name, 0, f"m{number}".encode(), {"n": str(number), "WAIT": "true"})
    client.settle(name, 0, 4)
    return name


def subscription(topic: str, expression: str, version: int = 7, kind: str = "SQL92") -> dict[str, object]:
    return {"topic": topic, "subString": expression, "expressionType": kind, "subVersion": version}


def join(client: RawClient, group: str, *subscriptions: dict[str, object]) -> None:
    assert client.call(34, heartbeat(group, group, *subscriptions)).code == 0


def pull(client: RawClient, group: str, topic: str, **changes: object) -> Reply:
    fields: dict[str, object] = {"consumerGroup": group, "topic": topic, "queueId": 0, "queueOffset": 0}
    fields |= {"maxMsgNums": 32, "sysFlag": 0, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 7}
    return client.call(11, b"", **{**fields, **changes})


def bodies(reply: Reply) -> list[str]:
    return [bytes(record.body).decode() for record in decode_records(reply.body)]


def check(client: RawClient, data: dict[str, object]) -> tuple[int, str]:
    body = {"clientId": "c", "group": "g", "subscriptionData": data}
    reply = client.call(46, json.dumps(body).encode())
    return reply.code, reply.remark or ""


def test_pulls_filter_by_the_expression_the_group_registered(
    client: RawClient, names: Names, topic: str
) -> None:
    group = names("group")
    join(client, group, subscription(topic, "n > 1"))
    assert bodies(pull(client, group, topic)) == ["m2", "m3"]
    assert pull(client, group, topic, subVersion=8).code == 25
    join(client, group, subscription(topic, "n < 1", 8))
    assert bodies(pull(client, group, topic, subVersion=8)) == ["m0"]
    join(client, group, subscription(topic, "n <", 9))
    refused = pull(client, group, topic, subVersion=9)
    assert (refused.code, refused.remark) == (
        27,
        "The broker's consumer filter data is not exist!Your expression may be wrong!",
    )


def test_a_pull_filters_by_its_own_expression(client: RawClient, names: Names, topic: str) -> None:
    def pulled(expression: str, kind: str = "SQL92") -> Reply:
        return pull(client, group, topic, sysFlag=4, subscription=expression, expressionType=kind)

    group = names("own")
    client.update_group(group)
    assert bodies(pulled("n BETWEEN 1 AND 2")) == ["m1", "m2"]
    none = pulled("n > 7")
    assert (none.code, none.fields["nextBeginOffset"]) == (20, "4")
    assert len(bodies(pulled("n >"))) == 4  # an expression that does not compile filters nothing
    assert len(bodies(pulled("n > 1", "XPATH"))) == 4
    assert pulled("").code == 23


def test_46_compiles_the_expression(client: RawClient, names: Names, server: Server) -> None:
    topic = names("checked")
    assert check(client, subscription(topic, "n > 1"))[0] == 0
    assert check(client, subscription(topic, "n >"))[0] == 23
    code, remark = check(client, subscription(topic, "n > 1", kind="XPATH"))
    assert (code, "FilterFactory.get(String)" in remark) == (23, True)
    # An ordinary name in 4.9: the expression ends before it and is then not a boolean.
    contains = check(client, subscription(topic, "n = 1 AND 'x' CONTAINS 'x'"))[0]
    assert contains == (0 if server.emulates == "5.5" else 23)


@DAILY
def test_without_the_switch_sql_is_refused(session_server: ServerOf, names: Names) -> None:
    remark = "The broker does not support consumer to filter message by SQL92"
    server = session_server("ours")
    with RawClient(server) as client:
        topic, group = names("off"), names("off_group")
        client.update_topic(topic, 1)
        client.update_group(group)
        assert check(client, subscription(topic, "n > 1")) == (1, remark)
        reply = pull(client, group, topic, sysFlag=4, subscription="n > 1", expressionType="SQL92")
        assert (reply.code, reply.remark) == (1, remark)
