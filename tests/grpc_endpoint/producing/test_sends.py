"""SendMessage: what is stored, which queue it gets, what is refused."""

from typing import Any

import pytest
from pocketmq.broker.transactions.op_queue import record_at_offset
from pocketmq.grpc_endpoint.messages import (
    Code,
    Duration,
    Encoding,
    Message,
    MessageType,
    SendMessageResponse,
    Timestamp,
    timestamp_of,
)
from pocketmq.grpc_endpoint.producing.queue_choice import queue_of_group
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.requests.admin import UpdateBrokerConfig

from broker_fakes import ask
from grpc_calls import GrpcBroker, new_message, send

PX = "org.apache.rocketmq.proxy.common.ProxyException: "


def records(grpc: GrpcBroker, topic: str) -> list[Record]:
    """Every record of a topic, queue by queue."""
    state = grpc.broker.state
    return [
        record
        for queue in state.store.queues_of(topic)
        for offset in range(queue.min_offset, queue.max_offset)
        if (record := record_at_offset(state, queue, offset)) is not None
    ]


async def test_stored_record_is_that_of_the_official_proxy(grpc: GrpcBroker) -> None:
    grpc.topic("NormalT", queues=1)
    reply: SendMessageResponse = grpc.call(send(new_message("NormalT")), port=51_234)
    assert (reply.status.code, reply.status.message) == (Code.OK, "OK")
    (entry,) = reply.entries
    assert (entry.status.code, entry.message_id, entry.offset) == (
        Code.OK,
        "01AABBCCDDEEFF00112233445566000001",
        0,
    )
    assert entry.transaction_id == entry.message_id
    assert entry.recall_handle == ""
    (record,) = records(grpc, "NormalT")
    shown = bytes(record.properties).decode().replace("\x01", "=").replace("\x02", ";")
    assert shown == (
        "MSG_REGION=DefaultRegion;UNIQ_KEY=01AABBCCDDEEFF00112233445566000001;CLUSTER=DefaultCluster;"
        "PGROUP=NormalT;RECONSUME_TIME=0;__BORNHOST=myhost;BORN_TIMESTAMP=1790000000005;TRACE_ON=true;"
    )
    assert bytes(record.body) == b"hi"
    assert (record.born_timestamp, record.sys_flag, record.flag) == (1_790_000_000_005, 0, 0)
    assert record.born_host.hex() == "7f0000010000c822"


async def test_properties_of_a_message(grpc: GrpcBroker) -> None:
    grpc.topic("t", queues=1)
    message = new_message(
        user={"k": "v", "ü": "ö"},
        tag="A",
        keys=["k1", "k2"],
        trace_context="tc",
        body_encoding=Encoding.GZIP,
        delivery_attempt=2,
        born_host="",
    )
    grpc.call(send(message), port=51_234)
    (record,) = records(grpc, "t")
    properties = decode_properties(record.properties)
    assert properties["k"] == "v"
    assert properties["ü"] == "ö"
    assert (properties["TAGS"], properties["KEYS"], properties["TRACE_CONTEXT"]) == ("A", "k1 k2", "tc")
    assert (properties["__BORNHOST"], properties["RECONSUME_TIME"]) == ("127.0.0.1:51234", "2")
    assert record.sys_flag == 1


async def test_message_without_settings_is_accepted(grpc: GrpcBroker) -> None:
    assert grpc.refused(send(new_message()))[0] == Code.OK
    assert len(grpc.clients) == 0


@pytest.mark.parametrize("group", ["mg", "order-1", "组", "group-42"])
async def test_message_group_decides_the_queue(grpc: GrpcBroker, group: str) -> None:
    grpc.topic("f", "FIFO", queues=8)
    for number in range(3):
        grpc.call(send(new_message("f", b"%d" % number, message_group=group)))
    found = records(grpc, "f")
    assert {record.queue_id for record in found} == {queue_of_group(group, 8)}
    assert [bytes(record.body) for record in found] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("group", "queues"),
    [
        ("mg", [0, 0, 2, 2, 2, 14]),
        ("b", [0, 0, 0, 0, 5, 5]),
        ("order-1", [0, 0, 0, 3, 3, 3]),
        ("组", [0, 1, 2, 2, 2, 2]),
        ("x0123456789", [0, 0, 2, 2, 2, 8]),
    ],
)
def test_hash_of_a_group_is_guavas(group: str, queues: list[int]) -> None:
    assert [queue_of_group(group, count) for count in (1, 2, 3, 4, 8, 16)] == queues


async def test_other_messages_spread_over_the_queues(grpc: GrpcBroker) -> None:
    grpc.topic("t", queues=4)
    for _ in range(60):
        grpc.call(send(new_message(queue_id=2)))
    assert {record.queue_id for record in records(grpc, "t")} == {0, 1, 2, 3}


async def test_priority_is_the_queue(grpc: GrpcBroker) -> None:
    grpc.topic("p", "PRIORITY", queues=4)
    for priority in (0, 2, 9):
        assert grpc.refused(send(new_message("p", priority=priority)))[0] == Code.OK
    assert [record.queue_id for record in records(grpc, "p")] == [0, 2, 3]


async def test_timed_message_has_a_recall_handle(grpc: GrpcBroker, clock: Any) -> None:
    grpc.topic("d", "DELAY", queues=1)
    due = timestamp_of(clock.wall_ms() + 60_000)
    reply = grpc.call(send(new_message("d", delivery_timestamp=due)))
    assert reply.entries[0].recall_handle
    assert records(grpc, "d") == []
    past = timestamp_of(clock.wall_ms() - 1)
    reply = grpc.call(send(new_message("d", delivery_timestamp=past)))
    assert reply.entries[0].recall_handle == ""
    assert len(records(grpc, "d")) == 1


async def test_several_messages_get_a_receipt_each(grpc: GrpcBroker) -> None:
    grpc.topic("t", queues=1)
    sent = [new_message(body=b"%d" % number, message_id=f"ID{number}") for number in range(3)]
    reply = grpc.call(send(*sent))
    assert (reply.status.code, reply.status.message) == (Code.OK, "OK")
    assert [(entry.message_id, entry.offset) for entry in reply.entries] == [
        ("ID0", 0),
        ("ID1", 1),
        ("ID2", 2),
    ]


async def test_strict_batch_has_one_receipt(strict: GrpcBroker) -> None:
    strict.topic("t", queues=1)
    sent = [new_message(body=b"%d" % number, message_id=f"ID{number}") for number in range(3)]
    reply = strict.call(send(*sent))
    (entry,) = reply.entries
    assert (entry.offset, entry.transaction_id, len(entry.message_id)) == (0, "ID0", 32)
    found = records(strict, "t")
    assert [bytes(record.body) for record in found] == [b"0", b"1", b"2"]
    properties = bytes(found[1].properties).decode()
    assert "UNIQ_KEY\x01ID1\x02" in properties
    assert "TAGS\x01\x02" in properties
    assert "MSG_REGION" not in properties


async def test_unknown_topic(grpc: GrpcBroker, strict: GrpcBroker, grpc_maker: Any) -> None:
    assert grpc.refused(send(new_message("new")))[0] == Code.OK
    text = PX + (
        "TopicMessageType validate failed, the expected type is UNSPECIFIED, but actual type is NORMAL"
    )
    conflict = (Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, text)
    assert strict.refused(send(new_message("new"))) == conflict
    closed = grpc_maker(auto_create_topic_enable=False)
    assert closed.refused(send(new_message("new")))[0] == Code.TOPIC_NOT_FOUND


@pytest.mark.parametrize(
    ("topic", "system", "kind"),
    [
        ("t", {"message_group": "g"}, "FIFO"),
        ("t", {"delivery_timestamp": Timestamp(seconds=5)}, "DELAY"),
        ("t", {"message_type": MessageType.TRANSACTION}, "TRANSACTION"),
        ("t", {"priority": 1}, "PRIORITY"),
        ("t", {"lite_topic": "l"}, "LITE"),
        ("f", {}, "NORMAL"),
    ],
)
async def test_type_must_be_that_of_the_topic(
    grpc: GrpcBroker, topic: str, system: dict[str, Any], kind: str
) -> None:
    grpc.topic("t")
    grpc.topic("f", "FIFO")
    expected = "FIFO" if topic == "f" else "NORMAL"
    code, text = grpc.refused(send(new_message(topic, **system)))
    assert code == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
    assert text == (
        f"{PX}TopicMessageType validate failed, the expected type is {expected}, but actual type is {kind}"
    )


async def test_mixed_topic_takes_any_type(grpc: GrpcBroker) -> None:
    grpc.topic("m", "MIXED")
    for system in ({}, {"message_group": "g"}, {"message_type": MessageType.TRANSACTION}):
        assert grpc.refused(send(new_message("m", **system)))[0] == Code.OK  # type: ignore[arg-type]


async def test_claimed_type_without_its_mark_does_not_count(grpc: GrpcBroker) -> None:
    grpc.topic("t")
    assert grpc.refused(send(new_message(message_type=MessageType.FIFO)))[0] == Code.OK


async def test_topic_that_cannot_be_written(grpc: GrpcBroker) -> None:
    grpc.topic("t", perm=4)
    assert grpc.refused(send(new_message())) == (Code.FORBIDDEN, PX + "no writable queue")


BIG = "x" * 9000


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        (new_message("a b"), Code.ILLEGAL_TOPIC, None),
        (new_message(body=b""), Code.MESSAGE_BODY_EMPTY, "message body cannot be empty"),
        (
            new_message(body=bytes(4_194_305)),
            Code.MESSAGE_BODY_TOO_LARGE,
            "message body cannot exceed the max 4194304",
        ),
        (
            new_message(user={f"k{number}": "v" for number in range(129)}),
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            "too many user properties, max is 128",
        ),
        (
            new_message(user={"KEYS": "k"}),
            Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
            "property is used by system: KEYS",
        ),
        (
            new_message(user={"a\x01": "k"}),
            Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
            "the key of property cannot contain control character",
        ),
        (
            new_message(user={"a": "\x7f"}),
            Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
            "the value of property cannot contain control character",
        ),
        (
            new_message(tag="  "),
            Code.ILLEGAL_MESSAGE_TAG,
            "tag cannot be the char sequence of whitespace",
        ),
        (new_message(tag="a|b"), Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'"),
        (new_message(tag="a\x9f"), Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain control character"),
        (
            new_message(keys=["k", " "]),
            Code.ILLEGAL_MESSAGE_KEY,
            "key cannot be the char sequence of whitespace",
        ),
        (new_message(keys=["\n k"]), Code.ILLEGAL_MESSAGE_KEY, "key cannot contain control character"),
        (
            new_message(user={"a": BIG, "b": BIG}),
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            "the total size of user property is too large, max is 16384",
        ),
        (new_message(message_id=" "), Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty"),
        (
            new_message(
                message_type=MessageType.TRANSACTION,
                orphaned_transaction_recovery_duration=Duration(seconds=3601),
            ),
            Code.BAD_REQUEST,
            "the max transaction recovery time of message is too large, max is 3600",
        ),
        (
            new_message(delivery_timestamp=Timestamp(seconds=1 << 33)),
            Code.ILLEGAL_DELIVERY_TIME,
            "the max delay time of message is too large, max is 86400000",
        ),
        (
            new_message(message_group=" "),
            Code.ILLEGAL_MESSAGE_GROUP,
            "message group cannot be the char sequence of whitespace",
        ),
        (
            new_message(message_group="g" * 64),
            Code.ILLEGAL_MESSAGE_GROUP,
            "message group exceed the max size 64",
        ),
        (
            new_message(message_group="a\x00"),
            Code.ILLEGAL_MESSAGE_GROUP,
            "message group cannot contain control character",
        ),
        (new_message(lite_topic="l" * 65), Code.ILLEGAL_LITE_TOPIC, "lite topic exceed the max size 64"),
    ],
)
async def test_refused_messages(grpc: GrpcBroker, message: Message, code: Code, text: str | None) -> None:
    got_code, got_text = grpc.refused(send(message))
    assert (got_code, got_text) == (code, got_text if text is None else text)


async def test_requests_without_messages_or_with_two_topics(grpc: GrpcBroker) -> None:
    assert grpc.refused(send()) == (Code.MESSAGE_CORRUPTED, "no message to send")
    two = send(new_message("t"), new_message("u"))
    assert grpc.refused(two) == (Code.MESSAGE_CORRUPTED, "topic in message is not same")


async def test_refusal_of_the_broker(grpc: GrpcBroker) -> None:
    grpc.topic("t", queues=1)
    message = new_message(user={f"k{number}": "ä" * 60 for number in range(128)})
    reply = grpc.call(send(message))
    assert reply.status.code == Code.OK
    await ask(grpc.broker, UpdateBrokerConfig(), b"startAcceptSendRequestTimeStamp=4000000000000")
    reply = grpc.call(send(new_message(), new_message()))
    assert reply.status.code == Code.INTERNAL_SERVER_ERROR
    assert [entry.status.message[: len(PX)] for entry in reply.entries] == [PX, PX]


async def test_message_that_waits_for_the_disk_is_answered_later(grpc_maker: Any) -> None:
    grpc = grpc_maker(store={"flush_disk_type": "SYNC_FLUSH"})
    grpc.topic("t", queues=1)
    stream, _ = grpc.begin(send(new_message(), new_message()))
    assert stream.replies == []
    grpc.broker.store.flush_pass()
    import asyncio

    for _ in range(20):
        await asyncio.sleep(0.001)
        if stream.replies:
            break
    (reply,) = stream.replies
    assert reply.status.code == Code.OK
    assert [entry.offset for entry in reply.entries] == [0, 1]


@pytest.mark.parametrize(("wait_ms", "level"), [(0, 1), (1000, 2), (59_000, 5), (90_000_000, 18)])
async def test_delay_level_in_place_of_a_timer(grpc_maker: Any, clock: Any, wait_ms: int, level: int) -> None:
    grpc = grpc_maker(endpoint={"use_delay_level": True, "max_delay_time_mills": 0})
    grpc.topic("d", "DELAY", queues=1)
    due = timestamp_of(clock.wall_ms() + wait_ms)
    assert grpc.refused(send(new_message("d", delivery_timestamp=due)))[0] == Code.OK
    (record,) = records(grpc, "SCHEDULE_TOPIC_XXXX")
    assert record.queue_id == level - 1
