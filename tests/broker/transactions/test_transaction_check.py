"""Rounds of the transaction check on a virtual clock. Official 4.9.7 and 5.5.0 brokers gave the expected results."""

from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.consumer_groups import Client
from pocketmq.broker.transactions.transaction_check import CHECK_GROUP
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import decode_record
from pocketmq.protocol.message.topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.protocol.requests.send import CheckTransactionState
from pocketmq.store import AppendResult, PutStatus, VirtualClock

from broker_fakes import FakeConnection, MakeBroker, ask, close_broker, connect, make_broker, records
from transaction_sends import COMMIT, KEY, ROLLBACK, ending, send_half

HOUR_MS = 3_600_000


def join(broker: Broker, group: str = "pg", port: int = 50_000) -> FakeConnection:
    """A producer of that group."""
    connection = connect(broker, port)
    broker.membership.producers.register(
        group, Client(connection, f"producer@{port}", "JAVA", V5_5_0, broker.clock.now_ms())
    )
    return connection


async def check_later(broker: Broker, ms: int) -> None:
    broker.clock.advance(ms)
    await broker.transactions.check.check()


def asked(connection: FakeConnection) -> list[CheckTransactionState]:
    return [request for request in connection.take_notices() if isinstance(request, CheckTransactionState)]


def texts(broker: Broker, topic: str) -> list[dict[str, str]]:
    return [decode_properties(record.properties) for record in records(broker, topic)]


async def test_producer_is_asked_when_its_message_is_older_than_the_timeout(broker: Broker) -> None:
    producer = join(broker)
    half = await send_half(broker)
    await check_later(broker, 6000)
    assert asked(producer) == [], "in 5.5 exactly at the timeout is too young"
    broker.clock.advance(1)
    await broker.transactions.check.check()
    ((question, body),) = producer.notices
    first, copy = records(broker, HALF_TOPIC)
    assert question == CheckTransactionState(
        tran_state_table_offset=1,
        commit_log_offset=copy.position,
        msg_id=KEY,
        transaction_id=KEY,
        offset_msg_id=f"{half.fields['msgId'][:16]}{copy.position:016X}",
        topic=HALF_TOPIC,
        broker_name="broker-a",
    )
    message = decode_record(body)
    assert (message.topic, message.queue_id, bytes(message.body)) == ("T", 2, b"half")
    assert (message.queue_offset, message.store_timestamp) == (1, first.store_timestamp)
    assert decode_properties(message.properties)["WAIT"] == "false"
    assert decode_properties(message.properties)["TRANSACTION_CHECK_TIMES"] == "1"
    assert (copy.flag, copy.reconsume_times) == (0, 0), "officially lost on the way"
    assert decode_properties(copy.properties)["WAIT"] == "true"


async def test_4_9_asks_exactly_at_the_timeout_and_names_no_topic(broker4: Broker) -> None:
    producer = join(broker4)
    await send_half(broker4)
    await check_later(broker4, 5999)
    assert asked(producer) == []
    await check_later(broker4, 1)
    (question,) = asked(producer)
    assert (question.topic, question.broker_name) == (None, None)
    assert broker4.topics.find(HALF_TOPIC) is not None, "4.9 makes the topic with its first check"


@pytest.mark.parametrize("emulate", [4, 5])
async def test_ended_transactions_are_not_asked_about(broker_maker: MakeBroker, emulate: int) -> None:
    broker = broker_maker(emulate=emulate)
    producer = join(broker)
    for how in (COMMIT, ROLLBACK, None, COMMIT):
        half = await send_half(broker)
        if how is not None:
            await ask(broker, ending(half, how))
    await check_later(broker, 10_000)
    assert [question.tran_state_table_offset for question in asked(producer)] == [4]
    broker.transactions.half_messages.stop()
    await check_later(broker, 10_000)
    assert [question.tran_state_table_offset for question in asked(producer)] == [5]
    offsets = broker.offsets.offsets(OP_HALF_TOPIC, CHECK_GROUP)
    assert offsets == {0: broker.store.max_offset(OP_HALF_TOPIC, 0)}


async def test_answer_to_a_check_ends_the_copy(broker: Broker) -> None:
    producer = join(broker)
    half = await send_half(broker)
    await check_later(broker, 10_000)
    (question,) = asked(producer)
    place = {
        "tran_state_table_offset": question.tran_state_table_offset,
        "commit_log_offset": question.commit_log_offset,
    }
    answer = await ask(broker, ending(half, COMMIT, from_transaction_check=True, **place))
    assert answer.code == 0
    for _ in range(3):
        await check_later(broker, 30_000)
    assert asked(producer) == []
    assert broker.store.max_offset("T", 2) == 1


async def test_every_live_producer_of_the_group_gets_its_turn(broker: Broker) -> None:
    producers = [join(broker, port=50_000 + number) for number in range(3)]
    join(broker, group="others", port=50_009)
    for _ in range(6):
        await send_half(broker)
    await check_later(broker, 10_000)
    assert [len(asked(producer)) for producer in producers] == [2, 2, 2]
    producers[0].close()
    await check_later(broker, 10_000)
    assert [len(asked(producer)) for producer in producers] == [0, 3, 3]


async def test_message_is_given_up_after_so_many_checks(broker: Broker) -> None:
    broker.config.transaction_check_max = 3
    producer = join(broker)
    await send_half(broker)
    for _ in range(6):
        await check_later(broker, 30_000)
    assert len(asked(producer)) == 3
    ((given_up),) = texts(broker, CHECK_MAX_TIME_TOPIC)
    assert given_up["TRANSACTION_CHECK_TIMES"] == "3"
    assert given_up["REAL_TOPIC"] == "T"
    assert broker.transactions.open_count.count("T") == 0


async def test_a_round_says_once_how_many_it_gave_up(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await send_half(broker)
    await check_later(broker, 73 * HOUR_MS)
    ((said),) = [record.message for record in caplog.records if "gave up" in record.message]
    assert said.startswith("gave up 3 half messages of queue 0, the first at 0: ")
    assert len(texts(broker, CHECK_MAX_TIME_TOPIC)) == 3


async def test_message_older_than_the_log_is_given_up_without_a_check(broker: Broker) -> None:
    producer = join(broker)
    await send_half(broker)
    await check_later(broker, 72 * HOUR_MS + 1)
    assert asked(producer) == []
    assert len(records(broker, CHECK_MAX_TIME_TOPIC)) == 1


async def test_message_with_an_immunity_time_does_not_hold_up_those_behind_it(broker: Broker) -> None:
    producer = join(broker)
    await send_half(broker, CHECK_IMMUNITY_TIME_IN_SECONDS="60")
    await send_half(broker)
    await check_later(broker, 10_000)
    (question,) = asked(producer)
    assert question.tran_state_table_offset == 3
    put_back = texts(broker, HALF_TOPIC)[2]
    assert put_back["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
    assert (put_back["WAIT"], put_back["TRANSACTION_CHECK_TIMES"]) == ("false", "1")
    await check_later(broker, 60_000)
    assert len(asked(producer)) == 2


async def test_copy_of_an_immune_message_goes_when_the_original_ends(broker: Broker) -> None:
    """The official broker asks about it nevertheless; if the producer answers COMMIT, it is stored twice."""
    producer = join(broker)
    half = await send_half(broker, CHECK_IMMUNITY_TIME_IN_SECONDS="60")
    await check_later(broker, 10_000)
    assert (await ask(broker, ending(half, COMMIT))).code == 0
    broker.transactions.half_messages.stop()
    for _ in range(4):
        await check_later(broker, 30_000)
    assert asked(producer) == []
    assert broker.store.max_offset("T", 2) == 1


async def test_check_continues_at_its_offset_after_a_restart(tmp_path: Path, clock: VirtualClock) -> None:
    broker = make_broker(tmp_path, clock)
    await ask(broker, ending(await send_half(broker), COMMIT))
    await send_half(broker)
    await check_later(broker, 10_000)
    broker.transactions.half_messages.stop()
    broker.offsets.persist()
    close_broker(broker)
    again = make_broker(tmp_path, clock)
    again.offsets.load()
    producer = join(again)
    await check_later(again, 10_000)
    (question,) = asked(producer)
    assert question.tran_state_table_offset == 3
    assert texts(again, HALF_TOPIC)[3]["TRANSACTION_CHECK_TIMES"] == "2"
    close_broker(again)


async def test_check_goes_back_to_the_end_of_a_queue_that_lost_messages(broker: Broker) -> None:
    """ASYNC_FLUSH: a power loss takes half messages, whose check is saved; new ones get their numbers."""
    for topic in (HALF_TOPIC, OP_HALF_TOPIC):
        broker.offsets.commit(topic, CHECK_GROUP, 0, 5)
    broker.transactions.check.open()
    await send_half(broker)
    producer = join(broker)
    await check_later(broker, 10_000)
    (question,) = asked(producer)
    assert question.tran_state_table_offset == 1, "the copy of the one at 0"


async def test_no_producer_is_asked_while_the_store_refuses(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = join(broker)
    await send_half(broker)
    refused = AppendResult(PutStatus.SERVICE_NOT_AVAILABLE)
    with monkeypatch.context() as patch:
        patch.setattr(broker.store, "append", lambda message: refused)
        await check_later(broker, 10_000)
    assert asked(producer) == []
    await check_later(broker, 10_000)
    assert len(asked(producer)) == 1


async def test_half_message_that_names_no_place_disturbs_no_other(broker: Broker) -> None:
    producer = join(broker)
    for _ in range(2):
        await send_half(broker)
    position = records(broker, HALF_TOPIC)[0].position
    data = broker.store.read_record(position)
    assert data is not None
    at = bytes(data).index(b"REAL_QID")
    data[at : at + 8] = b"LOST_QID"
    await check_later(broker, 10_000)
    assert [question.tran_state_table_offset for question in asked(producer)] == [3]


async def test_many_transactions_are_checked_in_turns(broker: Broker) -> None:
    for _ in range(450):
        await ask(broker, ending(await send_half(broker), COMMIT))
    broker.transactions.half_messages.stop()
    await check_later(broker, 10_000)
    assert broker.offsets.offsets(HALF_TOPIC, CHECK_GROUP) == {0: 450}
    assert broker.offsets.offsets(OP_HALF_TOPIC, CHECK_GROUP) == {0: 1}


async def test_a_round_that_fails_says_what_it_gave_up(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        await send_half(broker)
    check = broker.transactions.check
    check_one, seen = check._check_one, list[int]()

    def fail_second(queue: Any, offset: int, *rest: Any) -> bool:
        seen.append(offset)
        if offset == 1:
            raise OSError("the disk is gone")
        return check_one(queue, offset, *rest)

    monkeypatch.setattr(check, "_check_one", fail_second)
    with pytest.raises(OSError, match="the disk is gone"):
        await check_later(broker, 73 * HOUR_MS)
    ((said),) = [record.message for record in caplog.records if "gave up" in record.message]
    assert (seen, said.partition(":")[0]) == ([0, 1], "gave up 1 half messages of queue 0, the first at 0")
