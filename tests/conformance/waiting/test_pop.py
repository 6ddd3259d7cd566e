"""POP on ours and on official 5.5.0, answer by answer, and the official programs that pop.

4.9 has no POP: it answers 3, and so do we where we emulate it.
"""

import json

import pytest

from conformance import JAVA
from conformance.daily import DAILY, JAVA_PROGRAMS
from conformance.official.programs import compile_java
from conformance.on_demand import ON_DEMAND
from conformance.requests.assignments import joined
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.remoting import Reply
from conformance.servers.server import Names, Server, ServerOf, StartServer
from conformance.waiting.pop_client import (
    ACK,
    BATCH_ACK,
    CHANGE_INVISIBLE,
    GET_MODES,
    NOTIFICATION,
    PEEK,
    POLLING_INFO,
    POP,
    QUERY_ASSIGNMENT,
    SET_MODE,
    ack,
    change_invisible,
    now_ms,
    pop,
    pop_until,
    popped,
)

UNKNOWN_REMARK = "not set any response code"


@pytest.fixture(params=(pytest.param("ours", marks=DAILY), pytest.param("official-5.5", marks=ON_DEMAND)))
def server(request: pytest.FixtureRequest, session_server: ServerOf) -> Server:
    return session_server(request.param)


@pytest.fixture
def topic(client: RawClient, names: Names) -> str:
    """A topic of two queues with three messages in each, m0 to m5."""
    name = names("popped")
    client.update_topic(name, 2)
    for number in range(6):
        client.send(name, number % 2, f"m{number}".encode(), {"TAGS": "AB"[number % 2], "n": str(number)})
    for queue_id in (0, 1):
        client.settle(name, queue_id, 3)
    return name


@pytest.fixture
def group(client: RawClient, names: Names) -> str:
    name = names("pop_group")
    client.update_group(name)
    return name


# -- popping


def test_every_message_is_handed_out_once(client: RawClient, group: str, topic: str) -> None:
    first = pop(client, group, topic, maxMsgNums=1)
    assert (first.code, first.remark, first.fields["restNum"]) == (0, "FOUND", "5")
    second = pop(client, group, topic)
    bodies = [message.body for reply in (first, second) for message in popped(reply, group, topic)]
    assert sorted(bodies) == [f"m{number}" for number in range(6)]
    assert second.fields["restNum"] == "0"
    nothing = pop(client, group, topic)
    assert (nothing.code, nothing.remark) == (210, "NO_MESSAGE_IN_QUEUE")
    assert (nothing.fields["startOffsetInfo"], nothing.fields["msgOffsetInfo"]) == ("", "")


def test_tags_and_sql_filter_what_is_popped(client: RawClient, names: Names, topic: str) -> None:
    by_tag = popped(pop(client, names("t"), topic, exp="A"), names("t"), topic)
    assert [message.body for message in by_tag] == ["m0", "m2", "m4"]
    by_sql = popped(pop(client, names("s"), topic, exp="n > 2", expType="SQL92"), names("s"), topic)
    assert sorted(message.body for message in by_sql) == ["m3", "m4", "m5"]
    only = pop(client, names("one"), topic, exp="n = 3", expType="SQL92")
    assert only.fields["msgOffsetInfo"] == "0 1 1"
    assert only.fields["startOffsetInfo"] == "0 1 0"


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"maxMsgNums": 33}, 29, "the broker[127.0.0.1] pop message's num is greater than 32"),
        ({"queueId": 9}, 29, "queueId[9] is illegal, topic:["),
        ({"topic": "no_such_topic"}, 17, "topic[no_such_topic] not exist, apply first please! "),
        ({"bornTime": 1, "pollTime": 1}, 210, "the broker[127.0.0.1] pop message is timeout too much"),
        ({"exp": "||"}, 23, "parse the consumer's subscription failed"),
        ({"exp": "n >", "expType": "SQL92"}, 23, "parse the consumer's subscription failed"),
        ({"exp": "n > 1", "expType": "XPATH"}, 23, "parse the consumer's subscription failed"),
    ],
)
def test_a_pop_is_refused(
    client: RawClient, group: str, topic: str, changes: dict[str, object], code: int, remark: str
) -> None:
    reply = pop(client, group, topic, **changes)
    assert reply.code == code
    assert (reply.remark or "").startswith(remark)


def test_a_pop_waits_for_a_message(client: RawClient, group: str, topic: str, server: Server) -> None:
    pop(client, group, topic)
    with RawClient(server) as waiting:
        import threading

        replies = []
        waiter = threading.Thread(
            target=lambda: replies.append(pop(waiting, group, topic, pollTime=20_000, bornTime=now_ms()))
        )
        waiter.start()
        fields = {"consumerGroup": group, "topic": topic, "queueId": -1}
        wait_until(
            lambda: client.call(POLLING_INFO, b"", **fields).fields["pollingNum"] == "1",
            "the pop was never held",
        )
        client.send(topic, 1, b"late")
        waiter.join(30)
        assert [message.body for message in popped(replies[0], group, topic)] == ["late"]
        assert client.call(POLLING_INFO, b"", **fields).fields["pollingNum"] == "0"


def test_a_new_group_of_mode_1_begins_as_in_the_official_broker(
    client: RawClient, names: Names, topic: str
) -> None:
    group = names("newest")
    assert len(popped(pop(client, group, topic, initMode=1), group, topic)) == 6


# -- acknowledging


@pytest.mark.slow
def test_messages_without_an_ack_are_delivered_again(client: RawClient, group: str, topic: str) -> None:
    messages = popped(pop(client, group, topic, invisibleTime=4000), group, topic)
    done, batched, later, lost = messages[0], messages[1], messages[2], messages[3:]
    assert ack(client, group, done).code == 0
    start, pop_time, invisible, revive_queue, flag, _, queue_id, offset = batched.receipt.split(" ")
    bits = "AQ==" if offset == start else "Ag=="  # bit 0 or 1
    element = {"c": group, "t": topic, "r": flag, "so": int(start), "q": int(queue_id), "b": bits}
    element |= {"rq": int(revive_queue), "pt": int(pop_time), "it": int(invisible)}
    body = json.dumps({"brokerName": "broker-a", "acks": [element]}).encode()
    assert client.call(BATCH_ACK, body).code == 0
    changed = change_invisible(client, group, later, 1000)
    assert (changed.code, changed.fields["invisibleTime"]) == (0, "1000")
    again = pop_until(client, group, topic, 4)
    assert sorted(message.body for message in again) == sorted(message.body for message in (later, *lost))
    for message in again:
        assert message.topic == f"%RETRY%{group}_{topic}"
        assert message.reconsume_times == 1
        assert message.properties["ORIGIN_GROUP"] == group
        assert message.properties["POP_CK"].split(" ")[4] == "1"
        assert "1ST_POP_TIME" in message.properties
        assert ack(client, group, message).code == 0
    assert pop(client, group, topic, pollTime=8000).code == 210


@pytest.mark.slow
def test_suspending_does_not_count_as_a_try(client: RawClient, group: str, topic: str) -> None:
    message, *_ = popped(pop(client, group, topic, maxMsgNums=1), group, topic)
    assert change_invisible(client, group, message, 1000, suspend="true").code == 0
    again = pop_until(client, group, topic, 6)
    [returned] = [one for one in again if one.topic != topic]
    assert (returned.body, returned.reconsume_times) == (message.body, 0)


@pytest.mark.parametrize("code", [ACK, CHANGE_INVISIBLE])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"topic": "no_such_topic"}, 17),
        ({"queueId": 9}, 13),
        ({"queueId": -1}, 13),
        ({"offset": 99}, 208),
        ({"offset": -1}, 208),
        ({"extraInfo": ""}, 1),
        ({"extraInfo": "1 2"}, 1),
        ({"extraInfo": "a b c d e f g h"}, 1),
        ({"extraInfo": "0 1 99999999999999999999 0 0 broker-a 0 0"}, 1),
        ({"extraInfo": "0 1 2 3 0 broker-a 0 0"}, 0),
        ({"extraInfo": "0 1 2 77 0 another-broker 0 0"}, 0),
    ],
)
def test_broken_and_foreign_receipts(
    client: RawClient, group: str, topic: str, code: int, changes: dict[str, object], expected: int
) -> None:
    fields: dict[str, object] = {"consumerGroup": group, "topic": topic, "queueId": 0, "offset": 0}
    fields |= {"extraInfo": f"0 {now_ms()} 60000 0 0 broker-a 0 0", "invisibleTime": 1000}
    assert client.call(code, b"", **{**fields, **changes}).code == expected


def test_empty_batches_are_refused(client: RawClient) -> None:
    assert client.call(BATCH_ACK, b'{"acks":[]}').code == 208
    assert client.call(BATCH_ACK).code == 208


# -- in order


def test_a_queue_popped_in_order_waits_for_its_acks(client: RawClient, group: str, topic: str) -> None:
    def ordered(attempt: str, **changes: object) -> list[str]:
        reply = pop(client, group, topic, order=True, queueId=0, attemptId=attempt, **changes)
        replies.append(reply)
        return [message.body for message in popped(reply, group, topic)]

    replies: list[Reply] = []
    assert ordered("one", maxMsgNums=2) == ["m0", "m2"]
    assert replies[-1].fields["reviveQid"] == "999"
    assert replies[-1].fields["orderCountInfo"] == "0 0 0"
    assert ordered("two") == []
    assert ordered("one", maxMsgNums=2) == ["m0", "m2"]  # the same attempt gets the same messages again
    first, second = popped(replies[-1], group, topic)
    assert ack(client, group, first).code == 0
    assert ordered("two") == []
    changed = change_invisible(client, group, second, 500)
    assert changed.code == 0
    assert changed.fields["popTime"] == replies[-2].fields["popTime"]
    again = pop(client, group, topic, order=True, queueId=0, attemptId="two", pollTime=10_000)
    assert [message.body for message in popped(again, group, topic)] == ["m2", "m4"]
    assert again.fields["orderCountInfo"] == "0 qo0%1 1;0 0 0"
    assert ack(client, group, first).code == 0  # long done
    for message in popped(again, group, topic):
        assert ack(client, group, message).code == 0
    assert ordered("three") == []
    assert client.call(30, topic=topic, queueId=0).fields["offset"] == "3"
    offset = client.call(14, consumerGroup=group, topic=topic, queueId=0)
    assert offset.fields["offset"] == "3"


# -- peeks and notifications


def test_peeks_and_notifications_pop_nothing(client: RawClient, group: str, topic: str) -> None:
    fields = {"consumerGroup": group, "topic": topic, "queueId": -1}
    peeked = client.call(PEEK, b"", maxMsgNums=4, **fields)
    assert (peeked.code, peeked.remark, peeked.fields["restNum"]) == (0, "FOUND", "6")
    notified = client.call(NOTIFICATION, b"", pollTime=0, bornTime=0, **fields)
    assert (notified.code, notified.fields) == (0, {"hasMsg": "true", "pollingFull": "false"})
    assert notified.remark == UNKNOWN_REMARK
    assert len(popped(pop(client, group, topic), group, topic)) == 6
    peeked = client.call(PEEK, b"", maxMsgNums=4, **fields)
    assert (peeked.code, peeked.remark, peeked.fields["restNum"]) == (19, "NO_MESSAGE_IN_QUEUE", "0")
    notified = client.call(NOTIFICATION, b"", pollTime=300, bornTime=now_ms(), **fields)
    assert (notified.code, notified.fields["hasMsg"]) == (0, "false")


# -- assignment


def test_queues_are_assigned(client: RawClient, group: str, topic: str) -> None:
    def assigned(**changes: object) -> list[tuple[str, int, str]] | None:
        body = {"topic": topic, "consumerGroup": group, "clientId": "c1", "messageModel": "CLUSTERING"}
        reply = client.call(QUERY_ASSIGNMENT, json.dumps({**body, "strategyName": "AVG", **changes}).encode())
        assert reply.code == 0
        assignments = json.loads(reply.body).get("messageQueueAssignments")
        if assignments is None:
            return None
        return sorted(
            (one["messageQueue"]["topic"], one["messageQueue"]["queueId"], one["mode"]) for one in assignments
        )

    assert assigned() is None  # no member
    assert client.call(34, joined(topic, group, "c1")).code == 0
    both_pulled = [(topic, 0, "PULL"), (topic, 1, "PULL")]
    wait_until(lambda: assigned() == both_pulled, "the broker never got a route")
    assert assigned(strategyName="AVG_BY_CIRCLE") == both_pulled
    assert assigned(strategyName="no such") is None
    assert assigned(clientId="c2") == []
    assert assigned(topic="no_such_topic") is None
    mode = {"topic": topic, "consumerGroup": group, "mode": "POP", "popShareQueueNum": 0}
    assert client.call(SET_MODE, json.dumps(mode).encode()).code == 0
    assert assigned() == [(topic, -1, "POP")]
    assert assigned(messageModel="BROADCASTING") == [(topic, 0, "POP"), (topic, 1, "POP")]
    assert json.loads(client.call(GET_MODES).body)["messageRequestModeMap"][topic] == {group: mode}
    for change, code, remark in (
        ({"topic": f"%RETRY%{group}"}, 16, "retry topic is not allowed to set mode"),
        ({"topic": "no_such_topic"}, 17, "topic[no_such_topic] not exist"),
    ):
        refused = client.call(SET_MODE, json.dumps({**mode, **change}).encode())
        assert (refused.code, refused.remark) == (code, remark)


# -- the 4.9 line


@pytest.mark.parametrize(
    "side", [pytest.param("ours-4.9", marks=DAILY), pytest.param("official-4.9", marks=ON_DEMAND)]
)
def test_4_9_refuses_pop(fresh_server: StartServer, side: str) -> None:
    server = fresh_server(side)
    for code in (POP, ACK, BATCH_ACK, CHANGE_INVISIBLE, NOTIFICATION, POLLING_INFO, PEEK, 400, 401, 402):
        reply = server.call(code)
        assert (reply.code, reply.remark) == (3, f" request type {code} not supported")


# -- official programs


@JAVA_PROGRAMS
def test_a_java_consumer_pops(server: Server, client: RawClient, names: Names) -> None:
    topic, group = names("java_popped"), names("java_pop_group")
    client.update_topic(topic, 2)
    client.update_group(group)
    mode = {"topic": topic, "consumerGroup": group, "mode": "POP", "popShareQueueNum": 0}
    assert client.call(SET_MODE, json.dumps(mode).encode()).code == 0
    for number in range(20):
        client.send(topic, number % 2, f"m{number}".encode(), {"TAGS": "A"})
    program = compile_java("5.5", JAVA / "PopMember.java")
    member = server.programs.start_java(program, topic, group, "A || B")
    member.wait_for(r"SEEN \S+ m\d+ 0", timeout=60, count=20)
    client.send(topic, 0, b"again", {"TAGS": "B"})
    client.send(topic, 1, b"unwanted", {"TAGS": "C"})
    member.wait_for(r"SEEN \S+ again 1", timeout=60)
    lines = [line.split(" ")[1:] for line in member.output.splitlines() if line.startswith("SEEN")]
    assert sorted(lines) == sorted(
        [[topic, f"m{number}", "0"] for number in range(20)] + [[topic, "again", "0"], [topic, "again", "1"]]
    )
    member.say("")
    member.wait_for("LEFT")
