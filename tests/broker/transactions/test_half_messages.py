"""Half messages, their ends, and the records of ends; what is stored is in the recorded conversation `stored`."""

from pathlib import Path

from pocketmq.broker.broker import Broker
from pocketmq.protocol.message.topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.protocol.requests.send import ResumeCheckHalfMessage
from pocketmq.store import VirtualClock

from broker_fakes import FakeLoop, ask, close_broker, make_broker, records, store_message
from broker_fakes import send as run
from transaction_sends import COMMIT, ROLLBACK, UNKNOWN, ending, send_half


async def test_rolled_back_message_is_never_seen(broker: Broker) -> None:
    half = await send_half(broker)
    answer = await ask(broker, ending(half, ROLLBACK))
    assert (answer.code, answer.remark) == (0, "not set any response code")
    assert broker.store.queues_of("T") == []
    broker.transactions.half_messages.stop()
    assert [bytes(op.body) for op in records(broker, OP_HALF_TOPIC)] == [b"0,"]


async def test_unknown_state_is_not_answered_and_changes_nothing(broker: Broker) -> None:
    half = await send_half(broker)
    end = broker.store.log_end
    assert type(await run(broker, ending(half, UNKNOWN))).__name__ == "Held"
    assert broker.store.log_end == end


async def test_a_committed_message_cannot_be_committed_as_a_half_message(broker: Broker) -> None:
    half = await send_half(broker)
    await ask(broker, ending(half, COMMIT))
    (message,) = records(broker, "T", 2)
    change = {"tran_state_table_offset": message.queue_offset, "commit_log_offset": message.position}
    assert (await ask(broker, ending(half, COMMIT, **change))).code == 1
    assert broker.store.max_offset("T", 2) == 1


async def test_with_an_immunity_time_the_end_must_come_within_it(broker: Broker, clock: VirtualClock) -> None:
    half = await send_half(broker, CHECK_IMMUNITY_TIME_IN_SECONDS="10")
    clock.advance(10_001)
    assert (await ask(broker, ending(half, COMMIT))).code == 604
    assert (await ask(broker, ending(half, ROLLBACK))).code == 604
    assert (await ask(broker, ending(half, COMMIT, from_transaction_check=True))).code == 0


async def test_ended_transactions_are_written_together_after_an_interval(
    broker: Broker, loop: FakeLoop
) -> None:
    halves = [await send_half(broker) for _ in range(3)]
    for half in (halves[2], halves[0]):
        await ask(broker, ending(half, COMMIT))
    loop.run_for(2999)
    assert records(broker, OP_HALF_TOPIC) == []
    loop.run_for(1)
    (op,) = records(broker, OP_HALF_TOPIC)
    assert (bytes(op.body), bytes(op.properties)) == (b"2,0,", b"WAIT\x01true\x02TAGS\x01d\x02")
    assert loop.waiting == 0, "nothing runs while nothing is to be noted"


async def test_op_message_is_written_as_soon_as_it_is_long(broker: Broker) -> None:
    broker.config.transaction_op_msg_max_size = 8
    for number in range(5):
        await ask(broker, ending(await send_half(broker), COMMIT))
        assert len(records(broker, OP_HALF_TOPIC)) == (1 if number == 4 else 0)
    assert bytes(records(broker, OP_HALF_TOPIC)[0].body) == b"0,1,2,3,4,"


async def test_messages_ended_twice_are_collected_once(broker: Broker) -> None:
    broker.config.transaction_op_msg_max_size = 8
    half = await send_half(broker)
    for _ in range(20):
        await ask(broker, ending(half, COMMIT))
    assert records(broker, OP_HALF_TOPIC) == []
    broker.transactions.half_messages.stop()
    assert [bytes(op.body) for op in records(broker, OP_HALF_TOPIC)] == [b"0,"]


async def test_4_9_notes_each_end_at_once(broker4: Broker) -> None:
    for how in (COMMIT, ROLLBACK):
        await ask(broker4, ending(await send_half(broker4), how))
    ops = records(broker4, OP_HALF_TOPIC)
    assert [bytes(op.body) for op in ops] == [b"0", b"1"]
    assert bytes(ops[0].properties) == b"WAIT\x01true\x02TAGS\x01d"


async def test_counts_of_open_transactions_follow_and_are_kept(broker: Broker) -> None:
    first, second, _ = [await send_half(broker) for _ in range(3)]
    assert broker.transactions.open_count.count("T") == 3
    await ask(broker, ending(first, COMMIT))
    await ask(broker, ending(second, ROLLBACK))
    assert broker.transactions.open_count.count("T") == 1
    broker.transactions.open_count.persist()
    text = broker.transactions.open_count.file.path.read_text()
    assert text.startswith('{"dataVersion":{"counter":5,"stateVersion":0,"timestamp":')
    assert '"transactionCount":{"T":{"count":1,"timeStamp":' in text


async def test_given_up_message_can_be_resumed(broker: Broker) -> None:
    half = await send_half(broker, TRANSACTION_CHECK_TIMES="15")
    assert (await ask(broker, ResumeCheckHalfMessage(msg_id=half.fields["msgId"]))).code == 0
    resumed = records(broker, HALF_TOPIC)[1]
    assert b"TRANSACTION_CHECK_TIMES\x010\x02" in bytes(resumed.properties)
    for bad in ("zz", "7F00000100002A9F00000000000FFFFF", None):
        answer = await ask(broker, ResumeCheckHalfMessage(msg_id=bad))
        assert answer.code == 1
        assert answer.remark == "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."


async def test_an_ordinary_message_that_looks_like_a_half_message_is_not_made_one(broker: Broker) -> None:
    """A commit of it would store a message in any topic, also in those of the broker's own bookkeeping."""
    broker.topics.create_for_send("T", "TBW102", 1)
    forged = {"PGROUP": "g", "REAL_TOPIC": "rmq_sys_REVIVE_LOG_DefaultCluster", "REAL_QID": "0"}
    for properties, code in ((forged, 1), ({}, 0)):
        message_id = store_message(broker, "T", properties=properties)
        assert (await ask(broker, ResumeCheckHalfMessage(msg_id=message_id))).code == code
    assert len(records(broker, HALF_TOPIC)) == 1


async def test_slave_ends_no_transactions(broker: Broker) -> None:
    half = await send_half(broker)
    broker.config.store.broker_role = "SLAVE"
    assert (await ask(broker, ending(half, COMMIT))).code == 11


async def test_collected_ends_are_written_at_the_stop(tmp_path: Path, clock: VirtualClock) -> None:
    broker = make_broker(tmp_path, clock)
    await ask(broker, ending(await send_half(broker), COMMIT))
    broker.transactions.half_messages.stop()
    close_broker(broker)
    again = make_broker(tmp_path, clock)
    assert [bytes(op.body) for op in records(again, OP_HALF_TOPIC)] == [b"0,"]
    assert again.store.queues_of(CHECK_MAX_TIME_TOPIC) == []
    close_broker(again)
