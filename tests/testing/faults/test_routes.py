"""Wrong routes: hidden brokers, stale routes, name servers that disagree. Connections stay as they are."""

import json
from typing import Any

from pocketmq.testing import RocketMQ

from frames_client import raw


def route(one: RocketMQ, topic: str) -> tuple[int, dict[str, Any] | None]:
    with raw(one.namesrv_addr) as client:
        reply = client.ask(105, topic=topic, acceptStandardJsonOnly="true")
    return reply.code, json.loads(bytes(reply.body)) if reply.body else None


def test_a_topic_whose_only_broker_is_hidden_does_not_exist(one: RocketMQ, orders: str) -> None:
    name = one.server.broker.config.broker_name
    with raw(one.server.broker_addr) as kept:
        rule = one.faults.hide_broker(name)
        assert route(one, orders) == (17, None)
        assert kept.ask(30, topic=orders, queueId=0).code == 0
    [request] = one.requests.find(code="GET_ROUTEINFO_BY_TOPIC")
    assert (request.response, rule.hits) == (17, [request])
    assert "No topic route info" in (request.remark or "")
    rule.remove()
    assert route(one, orders)[0] == 0


def test_a_stale_route_has_other_queues(one: RocketMQ) -> None:
    orders, others = one.topic("orders", queues=4), one.topic("others", queues=4)
    one.faults.route(orders, queues=2)
    _, body = route(one, orders)
    assert body is not None
    assert [(data["readQueueNums"], data["writeQueueNums"]) for data in body["queueDatas"]] == [(2, 2)]
    _, body = route(one, others)
    assert body is not None
    assert body["queueDatas"][0]["readQueueNums"] == 4


def test_a_wrong_route_may_name_a_topic_that_the_name_server_does_not_know(one: RocketMQ) -> None:
    name = one.server.broker.config.broker_name
    one.faults.route("missing", brokers=[name], queues=1)
    code, body = route(one, "missing")
    assert code == 0
    assert body is not None
    assert body["brokerDatas"][0]["brokerAddrs"] == {"0": one.server.broker_addr}


def test_a_name_server_may_know_no_broker_for_a_topic(one: RocketMQ, orders: str) -> None:
    one.faults.name_servers_disagree(orders, {"n0": []})
    assert route(one, orders)[0] == 17


def test_a_rule_sees_the_changed_route(one: RocketMQ, orders: str) -> None:
    one.faults.hide_broker(one.server.broker.config.broker_name)
    one.faults.alter(lambda reply: reply, code=105, fields={"seen": "yes"})
    with raw(one.namesrv_addr) as client:
        reply = client.ask(105, topic=orders)
    assert (reply.code, reply.fields) == (17, {"seen": "yes"})


def test_old_clients_get_the_old_dialect(one: RocketMQ, orders: str) -> None:
    one.faults.route(orders, queues=2)
    with raw(one.namesrv_addr) as client:
        body = bytes(client.ask(105, topic=orders).body or b"")
    assert b'"brokerAddrs":{0:"' in body
