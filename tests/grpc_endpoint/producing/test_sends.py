"""SendMessage: what is stored, which queue it gets, what is refused."""

from typing import Any

import pytest
from pocketmq.broker.storing.messages import record_at_offset
from pocketmq.grpc_endpoint.messages import (
    Code,
    Encoding,
    MessageType,
    RecallMessageRequest,
    Resource,
    timestamp_of,
)
from pocketmq.grpc_endpoint.producing.sent_message import queue_of_group
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.requests.admin import UpdateBrokerConfig

from broker_fakes import ask, turns
from grpc_calls import FakeStream, GrpcBroker, new_message, send

PX = "org.apache.rocketmq.proxy.common.ProxyException: "


def records(grpc: GrpcBroker, topic: str) -> list[Record]:
    """Every record of a topic, queue by queue."""
    state = grpc.broker.state
    return [
        record
        for queue in state.store.queues_of(topic)
        for offset in range(queue.min_offset, queue.max_offset)
        if (record := record_at_offset(state.store, queue, offset)) is not None
    ]


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
    assert (record.born_timestamp, record.sys_flag, record.flag) == (1_790_000_000_005, 1, 0)
    assert record.born_host.hex() == "7f0000010000c822"


async def test_message_without_settings_is_accepted(grpc: GrpcBroker) -> None:
    assert grpc.refused(send(new_message()))[0] == Code.OK
    assert len(grpc.clients) == 0


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


async def test_unknown_topic(grpc: GrpcBroker, strict: GrpcBroker, grpc_maker: Any) -> None:
    assert grpc.refused(send(new_message("new")))[0] == Code.OK
    text = PX + (
        "TopicMessageType validate failed, the expected type is UNSPECIFIED, but actual type is NORMAL"
    )
    conflict = (Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, text)
    assert strict.refused(send(new_message("new"))) == conflict
    closed = grpc_maker(auto_create_topic_enable=False)
    assert closed.refused(send(new_message("new")))[0] == Code.TOPIC_NOT_FOUND


async def test_mixed_topic_takes_any_type(grpc: GrpcBroker) -> None:
    grpc.topic("m", "MIXED")
    for system in ({}, {"message_group": "g"}, {"message_type": MessageType.TRANSACTION}):
        assert grpc.refused(send(new_message("m", **system)))[0] == Code.OK  # type: ignore[arg-type]


async def test_claimed_type_without_its_mark_does_not_count(grpc: GrpcBroker) -> None:
    grpc.topic("t")
    assert grpc.refused(send(new_message(message_type=MessageType.FIFO)))[0] == Code.OK


async def test_odd_dates_are_no_reason_to_refuse(grpc: GrpcBroker) -> None:
    """Clocks in 1970, in 2262 and before the epoch, and a date of the request that is none."""
    for born_ms in (1, 9_223_372_036_000, -1):
        message = new_message(born_timestamp=timestamp_of(born_ms))
        assert grpc.refused(send(message), metadata={"x-mq-date-time": "yesterday"})[0] == Code.OK


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
    stream = grpc.begin(send(new_message(), new_message()))
    assert stream.replies == []
    await flush(grpc, stream)
    reply = stream.reply
    assert reply.status.code == Code.OK
    assert [entry.offset for entry in reply.entries] == [0, 1]


async def test_messages_that_reach_the_disk_at_once_are_answered(
    grpc_maker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flusher is a thread of its own: it may be quicker than the handler, which then has nothing to wait for."""
    grpc = grpc_maker(store={"flush_disk_type": "SYNC_FLUSH"})
    grpc.topic("t", queues=1)
    store = grpc.broker.store
    append_all = store.append_all

    def append_and_flush(messages: Any) -> Any:
        placed = append_all(messages)
        store.flush_pass()
        return placed

    monkeypatch.setattr(store, "append_all", append_and_flush)
    reply = grpc.call(send(new_message(), new_message()))
    assert reply.status.code == Code.OK
    assert [entry.offset for entry in reply.entries] == [0, 1]


async def test_recall_that_waits_for_the_disk_is_answered_later(grpc_maker: Any, clock: Any) -> None:
    grpc = grpc_maker(store={"flush_disk_type": "SYNC_FLUSH"}, recall_message_enable=True)
    grpc.topic("d", "DELAY", queues=1)
    due = timestamp_of(clock.wall_ms() + 5000)
    sent = grpc.begin(send(new_message("d", delivery_timestamp=due)))
    await flush(grpc, sent)
    handle = sent.reply.entries[0].recall_handle
    recalled = grpc.begin(RecallMessageRequest(topic=Resource(name="d"), recall_handle=handle))
    assert not recalled.is_ended
    await flush(grpc, recalled)
    assert recalled.reply.status.code == Code.OK


async def flush(grpc: GrpcBroker, stream: FakeStream) -> None:
    """What waits for the disk is answered."""
    grpc.broker.store.flush_pass()
    await turns()
    assert stream.is_ended


@pytest.mark.parametrize(("wait_ms", "level"), [(0, 1), (1000, 2), (59_000, 5), (90_000_000, 18)])
async def test_delay_level_in_place_of_a_timer(grpc_maker: Any, clock: Any, wait_ms: int, level: int) -> None:
    grpc = grpc_maker(endpoint={"use_delay_level": True, "max_delay_time_mills": 0})
    grpc.topic("d", "DELAY", queues=1)
    due = timestamp_of(clock.wall_ms() + wait_ms)
    assert grpc.refused(send(new_message("d", delivery_timestamp=due)))[0] == Code.OK
    (record,) = records(grpc, "SCHEDULE_TOPIC_XXXX")
    assert record.queue_id == level - 1
