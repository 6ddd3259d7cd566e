"""AckMessage, ChangeInvisibleDuration, ForwardMessageToDeadLetterQueue: handles first, changed, expired and forged."""

import logging
from pathlib import Path
from typing import Any

import pytest
from pocketmq.grpc_endpoint.consuming.receipt_handle import LONGEST_HANDLE
from pocketmq.grpc_endpoint.messages import Code
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.message.record import decode_records
from pocketmq.store import VirtualClock

from broker_fakes import FakeLoop, close_broker, make_broker, turns
from grpc_calls import FakeStream
from grpc_consumers import Consumers

PX = "org.apache.rocketmq.proxy.common.ProxyException: "
EXPIRED = (Code.INVALID_RECEIPT_HANDLE, f"{PX}receipt handle is expired")


def dead_letters(consumers: Consumers) -> list[str]:
    found = consumers.broker.store.get_message("%DLQ%g", 0, 0, 32)
    return [bytes(record.body).decode() for view in found.views for record in decode_records(view)]


# -- acknowledge


async def test_an_acknowledged_message_does_not_come_back(consumers: Consumers) -> None:
    asked = consumers.receive(invisible=10)
    acked = consumers.ack(("id-m0", asked.handles[0]), ("id-m2", asked.handles[2]))
    assert acked.status == (Code.OK, "OK")
    assert [entry.receipt_handle for entry in acked.reply.entries] == [asked.handles[0], asked.handles[2]]
    assert {entry.status.code for entry in acked.reply.entries} == {Code.OK}
    assert consumers.ack(("id-m0", asked.handles[0])).status == (Code.OK, "OK")
    consumers.pass_time(16)
    assert consumers.receive().bodies == ["m1", "m3"]


async def test_acks_of_one_pass_are_stored_by_one_append(
    consumers: Consumers, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [consumers.receive(batch_size=2, invisible=10) for _ in range(2)]
    appends: list[int] = []
    append_all = consumers.broker.store.append_all

    def counted(messages: Any) -> Any:
        appends.append(len(messages))
        return append_all(messages)

    monkeypatch.setattr(consumers.broker.store, "append_all", counted)
    consumers.in_pass = True
    handles = [*asked[0].handles, *asked[1].handles, "a b"]
    acked = [consumers.ack((f"id-m{number}", handle)) for number, handle in enumerate(handles)]
    assert not any(each.is_ended for each in acked)
    consumers.consuming.acks.store()
    assert [each.status[0] for each in acked] == [Code.OK] * 4 + [Code.INTERNAL_SERVER_ERROR]
    assert [each.reply.entries[0].message_id for each in acked] == [f"id-m{number}" for number in range(5)]
    assert appends == [2], "acks of one receive are one record"
    consumers.pass_time(16)
    assert consumers.receive().bodies == []


async def test_answers_wait_until_the_disk_has_what_they_stored(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop
) -> None:
    """SYNC_FLUSH."""
    broker = make_broker(tmp_path / "store", clock, loop=loop, store={"flush_disk_type": "SYNC_FLUSH"})
    consumers = Consumers(broker, loop)
    consumers.fill()
    consumers.group("g")
    consumers.announce("c1")
    broker.store.flush_pass()
    await turns()

    async def after_the_flush(stream: FakeStream) -> FakeStream:
        await turns()
        assert not stream.is_ended
        broker.store.flush_pass()
        await turns()
        assert stream.is_ended
        return stream

    asked = await after_the_flush(consumers.receive(invisible=10))
    assert asked.bodies == ["m0", "m1", "m2", "m3"]
    requests = consumers.ack(("id-m0", asked.handles[0])), consumers.change("id-m1", asked.handles[1], 20)
    for stream in (*requests, consumers.give_up("id-m2", asked.handles[2])):
        assert not stream.is_ended
    broker.store.flush_pass()
    await turns()
    assert [stream.status[0] for stream in requests] == [Code.OK] * 2
    consumers.consuming.stop()
    close_broker(broker)


async def test_what_a_request_makes_us_log_does_not_grow_with_its_entries(
    consumers: Consumers, caplog: pytest.LogCaptureFixture
) -> None:
    now_ms = consumers.broker.clock.now_ms()
    forged = [("x", f"0 {now_ms} 60000 0 0 broker-a 0 {offset} 0") for offset in range(1_000, 1_500)]
    with caplog.at_level(logging.INFO, "pocketmq"):
        acked = consumers.ack(*forged)
    assert {entry.status.code for entry in acked.reply.entries} == {Code.INTERNAL_SERVER_ERROR}
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("500 messages are not acknowledged for g, the first: ")
    assert len(line) < 300


async def test_a_handle_longer_than_any_is_refused(consumers: Consumers) -> None:
    handle = f"0 1 60000 0 0 {'b' * LONGEST_HANDLE} 0 0 0"
    status = consumers.ack(("x", handle)).reply.entries[0].status
    assert (status.code, status.message) == (
        Code.INTERNAL_SERVER_ERROR,
        f"a receipt handle of {len(handle)} characters, at most {LONGEST_HANDLE} are allowed",
    )


async def test_acks_that_cannot_be_stored_are_refused(
    consumers: Consumers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = consumers.receive(invisible=10)

    def broken(*_: Any) -> Any:
        raise RuntimeError("our mistake")

    monkeypatch.setattr(consumers.broker.store, "append_all", broken)
    acked = consumers.ack(("id-m0", asked.handles[0]), ("x", "a b"))
    assert acked.status == (Code.INTERNAL_SERVER_ERROR, "INTERNAL_SERVER_ERROR")
    assert acked.reply.entries[0].status.message == "ack failed: status is abnormal"
    assert "1 records of pops cannot be stored" in caplog.text
    monkeypatch.undo()
    assert consumers.ack(("id-m0", asked.handles[0])).status == (Code.OK, "OK")


FAR = 1 << 62
FORGED = [
    ("0 {now} 60000 0 0 broker-a 0 99 0", Code.INTERNAL_SERVER_ERROR),  # no such offset
    ("0 {now} 60000 0 0 broker-a 9 0 0", Code.INTERNAL_SERVER_ERROR),  # no such queue
    ("0 {now} 60000 0 1 broker-a 0 0 0", Code.INTERNAL_SERVER_ERROR),  # no retry topic
    ("0 {now} 60000 0 7 broker-a 0 0 0", Code.INTERNAL_SERVER_ERROR),  # no such type of topic
    ("0 x 60000 0 0 broker-a 0 0 0", Code.INTERNAL_SERVER_ERROR),
    ("0 {now} 60000 0 0 broker-a 0 0 zero", Code.INTERNAL_SERVER_ERROR),
    ("0 {now} 60000 0 0 broker-a 0 99999999999999999999 0", Code.INTERNAL_SERVER_ERROR),
    (f"0 {FAR} {FAR} 0 0 broker-a 0 0 0", Code.OK),  # accepted without effect, as officially
    ("-1 {now} 60000 77 0 broker-a 0 0 0", Code.OK),
    ("0 {now} 60000 0 0 other 0 0", Code.OK),
    (f"0 -{FAR} -{FAR} 0 0 broker-a 0 0 0", Code.INVALID_RECEIPT_HANDLE),
    ("", Code.INTERNAL_SERVER_ERROR),
    (" " * 9, Code.INTERNAL_SERVER_ERROR),
    ("\x00\ufffd" * 4, Code.INTERNAL_SERVER_ERROR),
]


@pytest.mark.parametrize(("text", "code"), FORGED)
async def test_forged_handles_harm_nobody(
    consumers: Consumers, clock: VirtualClock, text: str, code: Code
) -> None:
    consumers.receive(invisible=20)
    handle = text.format(now=clock.now_ms())
    assert consumers.ack(("id-m0", handle)).status[0] == code
    changed = consumers.change("id-m0", handle, 10).status[0]
    assert changed in (Code.INTERNAL_SERVER_ERROR, Code.INVALID_RECEIPT_HANDLE, Code.OK)
    consumers.pass_time(26)
    assert sorted(set(consumers.receive().bodies)) == ["m0", "m1", "m2", "m3"]


# -- change


async def test_a_changed_time_starts_now_and_its_handle_keeps_the_place(
    consumers: Consumers, clock: VirtualClock
) -> None:
    asked = consumers.receive(batch_size=1, invisible=10)
    position = asked.handles[0].split(" ")[8]
    clock.advance(1000)
    changed = consumers.change("id-m0", asked.handles[0], 30)
    assert changed.status == (Code.OK, "OK")
    handle = changed.reply.receipt_handle
    assert handle == f"0 {clock.now_ms()} 30000 0 0 broker-a 0 0 {position}"
    consumers.pass_time(12)
    acked = consumers.ack(("id-m0", asked.handles[0]))
    assert acked.status == (Code.INVALID_RECEIPT_HANDLE, "INVALID_RECEIPT_HANDLE")
    assert acked.reply.entries[0].status.message == EXPIRED[1]
    assert consumers.ack(("id-m0", handle)).status == (Code.OK, "OK")


@pytest.mark.parametrize("is_strict", [False, True])
async def test_an_ack_by_a_changed_handle_counts_for_each_message_of_a_receive(
    make_consumers: Any, is_strict: bool
) -> None:
    """A strict endpoint loses the acks of all but the first, as the official proxy."""
    consumers: Consumers = make_consumers(grpc_strict=is_strict)
    handles = consumers.receive(batch_size=3, invisible=10).handles
    for number, handle in enumerate(handles):
        changed = consumers.change(f"id-m{number}", handle, 20).reply.receipt_handle
        assert consumers.ack((f"id-m{number}", changed)).status == (Code.OK, "OK")
    consumers.pass_time(30)
    assert sorted(consumers.receive().bodies) == (["m1", "m2", "m3"] if is_strict else ["m3"])


async def test_the_handle_of_a_strict_endpoint_loses_its_place(make_consumers: Any) -> None:
    strict: Consumers = make_consumers(grpc_strict=True)
    handle = strict.receive(batch_size=2, invisible=10).handles[1]
    position = handle.split(" ")[8]
    once = strict.change("id-m1", handle, 30).reply.receipt_handle
    assert once.split(" ")[6:] == ["0", "1", "0", position]
    twice = strict.change("id-m1", once, 30).reply.receipt_handle
    assert twice.split(" ")[6:] == ["0", "1", "0", "0"]


async def test_an_expired_or_unknown_message_cannot_be_changed(consumers: Consumers) -> None:
    handle = consumers.receive(batch_size=1, invisible=10).handles[0]
    consumers.pass_time(10)
    assert consumers.change("id-m0", handle, 30).status == EXPIRED
    unknown = handle.replace(" 0 0 broker-a 0 0 ", " 0 0 broker-a 0 77 ").replace("10000", "99000")
    text = "changeInvisibleDuration failed: status is abnormal"
    assert consumers.change("id-m0", unknown, 30).status == (Code.INTERNAL_SERVER_ERROR, text)


async def test_a_message_in_order_that_was_passed_can_be_changed_without_effect(consumers: Consumers) -> None:
    consumers.broker.groups.update(SubscriptionGroupConfig(group_name="g", consume_message_orderly=True))
    consumers.announce("c1")
    handle = consumers.receive(batch_size=1, attempt_id="a", invisible=20).handles[0]
    assert consumers.ack(("id-m0", handle)).status[0] == Code.OK
    changed = consumers.change("id-m0", handle, 30)
    assert changed.status == (Code.OK, "OK")
    assert changed.reply.receipt_handle == handle


# -- dead letters


async def test_a_message_is_given_up_by_its_changed_handle(consumers: Consumers) -> None:
    handle = consumers.receive(invisible=10).handles[1]
    changed = consumers.change("id-m1", handle, 30).reply.receipt_handle
    again = consumers.change("id-m1", changed, 30).reply.receipt_handle
    consumers.pass_time(40)
    assert consumers.give_up("id-m1", again).status == (Code.OK, "0")  # expired, and still accepted
    assert dead_letters(consumers) == ["m1"]


async def test_a_strict_endpoint_copies_the_first_record_for_a_changed_handle(make_consumers: Any) -> None:
    strict: Consumers = make_consumers(grpc_strict=True)
    handle = strict.receive(invisible=10).handles[1]
    changed = strict.change("id-m1", handle, 30).reply.receipt_handle
    assert strict.give_up("id-m1", changed).status == (Code.OK, "0")
    assert dead_letters(strict) == ["m0"]


async def test_a_handle_with_the_position_of_another_message_copies_nothing(consumers: Consumers) -> None:
    consumers.fill(topic="secret", count=1)
    first, second = consumers.receive(invisible=10).handles[:2]
    forged = f"{first.rpartition(' ')[0]} {second.rpartition(' ')[2]}"
    for handle in (forged, f"{first.rpartition(' ')[0]} 1", f"{first.rpartition(' ')[0]} 99999999"):
        assert consumers.give_up("id-m0", handle).status[0] == Code.INVALID_RECEIPT_HANDLE
    assert dead_letters(consumers) == []


async def test_a_retried_message_is_given_up_from_its_retry_topic(consumers: Consumers) -> None:
    consumers.receive(batch_size=1, invisible=10)
    consumers.receive(batch_size=3, invisible=300)
    consumers.pass_time(16)
    asked = consumers.receive()
    assert consumers.give_up("id-m0", asked.handles[0]).status == (Code.OK, "0")
    assert dead_letters(consumers) == ["m0"]
