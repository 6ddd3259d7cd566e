"""Transactions, timed messages and replies, request by request: the same on ours and on both official brokers."""

import base64
import threading
import time

import pytest

from conformance.conftest import server_of_a_file
from conformance.examples.stored import stored
from conformance.servers.raw_client import RawClient, send_fields, wait_until
from conformance.servers.remoting import Reply
from conformance.servers.server import Names, Server
from conformance.waiting.producer_peer import CHECK_TRANSACTION_STATE, PUSH_REPLY, ProducerPeer
from conformance.waiting.waiting_messages import (
    COMMIT,
    CONF,
    GROUP,
    HALF_TOPIC,
    OP_TOPIC,
    ROLLBACK,
    end,
    messages,
    send_half,
    send_timed,
    wait_for,
)

SEND_REPLY, RECALL = 324, 370
server = server_of_a_file(CONF)


@pytest.fixture
def topic(client: RawClient, names: Names) -> str:
    topic = names("Waiting")
    client.update_topic(topic, 4)
    return topic


def offsets_of_ended(client: RawClient) -> list[int]:
    texts = [message.body.decode() for message in messages(client, OP_TOPIC, 0)]
    return [int(text) for line in texts for text in line.split(",") if text]


def test_ended_transactions_are_recorded_in_the_op_topic(client: RawClient, topic: str) -> None:
    if client.server.emulates == "4.9":
        pytest.skip("4.9 never makes the op topic a topic one could read")
    halves = [send_half(client, topic, str(number).encode()) for number in range(3)]
    wanted = {int(half.fields["queueOffset"]) for half in halves}
    for half in halves:
        end(client, half, COMMIT)
    wait_until(lambda: wanted <= set(offsets_of_ended(client)), "the ends were never noted")
    (*_, op) = messages(client, OP_TOPIC, 0)
    assert op.properties == {"WAIT": "true", "TAGS": "d"}
    assert op.body.endswith(b",")


def test_ends_without_a_matching_half_message_are_refused(client: RawClient, topic: str) -> None:
    half, other = send_half(client, topic, b"a"), send_half(client, topic, b"b")
    place = int(other.fields["msgId"][16:], 16)
    for changes, remark in (
        ({"producerGroup": "other"}, "The producer group wrong"),
        ({"tranStateTableOffset": 10**6}, "The transaction state table offset wrong"),
        ({"commitLogOffset": 10**12}, "Find prepared transaction message failed"),
        ({"commitLogOffset": -1}, "Find prepared transaction message failed"),
        ({"commitLogOffset": place}, "The transaction state table offset wrong"),
    ):
        reply = end(client, half, COMMIT, **changes)
        assert (reply.code, reply.remark) == (1, remark)
    assert end(client, half, 5).code == 1
    assert client.max_offset(topic, 1) == 0
    for one in (half, other):
        end(client, one, ROLLBACK)


@pytest.mark.slow
def test_producer_gets_checks_for_its_open_transactions(
    server: Server, client: RawClient, topic: str
) -> None:
    with ProducerPeer(server, GROUP, "asked@1") as producer:
        send_half(client, topic, b"open", KEYS="k1")
        while True:
            question = producer.next(CHECK_TRANSACTION_STATE)
            (message,) = stored(question.body)
            if message.topic == topic:
                break
        assert (message.queue, message.body) == (1, b"open")
        assert message.properties["TRANSACTION_CHECK_TIMES"] == "1"
        assert message.properties["WAIT"] == "false"
        fields = question.fields
        assert fields["msgId"] == fields["transactionId"] == "key-open"
        assert int(fields["offsetMsgId"][16:], 16) == int(fields["commitLogOffset"]) == message.position
        assert int(fields["tranStateTableOffset"]) == message.offset
        is_5 = server.emulates == "5.5"
        assert fields.get("topic") == (HALF_TOPIC if is_5 else None)
        assert fields.get("bname") == ("broker-a" if is_5 else None)
        copy = Reply(0, "", {"queueOffset": str(message.offset), "msgId": fields["offsetMsgId"]})
        assert end(client, copy, COMMIT, fromTransactionCheck=True).code == 0
    (seen,) = wait_for(client, topic, 1)
    assert (seen.body, seen.properties["KEYS"]) == (b"open", "k1")


def test_half_message_is_discarded_after_the_last_check(client: RawClient, topic: str) -> None:
    send_half(client, topic, b"given up", TRANSACTION_CHECK_TIMES="15")
    given_up = "TRANS_CHECK_MAX_TIME_TOPIC"

    def found() -> bool:
        return client.max_offset(given_up, 0) > 0 and any(
            message.properties["REAL_TOPIC"] == topic for message in messages(client, given_up, 0)
        )

    wait_until(found, "it was never discarded", 60)


@pytest.mark.slow
def test_timed_messages_arrive_at_the_first_second_not_before_their_time(
    client: RawClient, topic: str
) -> None:
    now_ms = int(time.time() * 1000)
    exact_ms = (now_ms // 1000 + 4) * 1000
    wanted = {
        b"seconds": ({"TIMER_DELAY_SEC": "2"}, now_ms + 2000),
        b"milliseconds": ({"TIMER_DELAY_MS": "3700"}, now_ms + 3700),
        b"exact": ({"TIMER_DELIVER_MS": str(exact_ms)}, exact_ms),
    }
    for body, (properties, _) in wanted.items():
        reply = send_timed(client, topic, body, **properties)
        assert reply.code == 0
        assert ("recallHandle" in reply.fields) == (client.server.emulates == "5.5")
    if client.server.emulates == "4.9":
        assert len(messages(client, topic)) == 3, "4.9 does not know these properties"
        return
    seen = {message.body: message for message in wait_for(client, topic, 3)}
    for body, (_, due_ms) in wanted.items():
        out_ms = int(seen[body].properties["TIMER_OUT_MS"])
        came_ms = int(seen[body].properties["TIMER_DEQUEUE_MS"])
        assert due_ms <= out_ms + 1000 < due_ms + 10_000, "reckoned from when the broker got it"
        assert came_ms >= out_ms + 1000
        assert (seen[body].properties["REAL_TOPIC"], seen[body].properties["REAL_QID"]) == (topic, "1")


@pytest.mark.slow
def test_recalled_message_never_arrives(client: RawClient, topic: str) -> None:
    if client.server.emulates == "4.9":
        assert client.call(RECALL, topic=topic, recallHandle="x").code == 3
        return
    taken = send_timed(client, topic, b"taken", TIMER_DELAY_SEC="4")
    send_timed(client, topic, b"kept", TIMER_DELAY_SEC="4")
    send_timed(client, topic, b"later", TIMER_DELAY_SEC="6")
    handle = taken.fields["recallHandle"]
    words = base64.urlsafe_b64decode(handle).decode().split(" ")
    assert (words[:3], words[4]) == (["v1", topic, "broker-a"], "key-taken")
    reply = client.call(RECALL, producerGroup=GROUP, topic=topic, recallHandle=handle)
    assert (reply.code, reply.fields["msgId"]) == (0, "key-taken")
    for bad, remark in (
        ("garbage", "recall handle is invalid"),
        (_handle(f"v1 {topic} other 1 k"), "recall failed, broker service not available"),
        (_handle(f"v1 {topic} broker-a 1 k"), "recall failed, timestamp invalid"),
        (_handle("v1 TBW102 broker-a 1 k"), "recall failed, topic not match"),
    ):
        reply = client.call(RECALL, producerGroup=GROUP, topic=topic, recallHandle=bad)
        assert (reply.code, reply.remark) == (604, remark)
    assert [message.body for message in wait_for(client, topic, 2)] == [b"kept", b"later"]


def _handle(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


def test_reply_reaches_its_asker_and_is_stored(server: Server, client: RawClient) -> None:
    reply_topic = "DefaultCluster_REPLY_TOPIC"
    properties = {"CORRELATION_ID": "c1", "REPLY_TO_CLIENT": "asker@1", "TTL": "3000", "MSG_TYPE": "reply"}

    def reply(body: bytes) -> Reply:
        return client.call(SEND_REPLY, body, **send_fields("repliers", reply_topic, 0, properties))

    first = client.max_offset(reply_topic, 0)
    unknown = reply(b"to nobody")
    assert (unknown.code, unknown.remark) == (1, "push reply message fail, channel of <asker@1> not found.")
    assert int(unknown.fields["queueOffset"]) == first, "stored although the asker is unknown"
    with ProducerPeer(server, "askers", "asker@1") as asker:
        taken: list[bytes] = []

        def take() -> None:
            for code in (0, 1):
                pushed = asker.next(PUSH_REPLY)
                taken.append(pushed.body)
                asker.answer(pushed.opaque, code)

        thread = threading.Thread(target=take)
        thread.start()
        good, refused = reply(b"42"), reply(b"43")
        thread.join()
        assert taken == [b"42", b"43"]
        assert (good.code, int(good.fields["queueOffset"])) == (0, first + 1)
        assert (refused.code, refused.remark) == (1, "push reply message to asker@1fail.")
    client.settle(reply_topic, 0, first + 3)
    bodies = [message.body for message in messages(client, reply_topic, 0)]
    assert bodies[first:] == [b"to nobody", b"42", b"43"]
