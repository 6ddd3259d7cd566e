"""When a pop, an ack or a changed invisible time is answered under SYNC_FLUSH, and when offsets are saved.

A pop moves the offset of its group; only its checkpoint in the log brings the messages again.
"""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.cluster import durable_log
from pocketmq.broker.network.dispatch import HELD
from pocketmq.protocol.bodies.pop import BatchAck
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.pop import BatchAckMessage
from pocketmq.store import StoreError

from broker.pop.pops import a_change, a_pop, an_ack, body_of
from broker_fakes import (
    Asked,
    FakeConnection,
    MakeBroker,
    WallLoop,
    after_the_flush,
    as_asked,
    ask,
    send,
    store_message,
    turns,
)


@pytest.fixture
async def syncing(syncing: Broker) -> Broker:
    syncing.topics.update(TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1))
    for number in range(4):
        store_message(syncing, "orders", 0, f"m{number}".encode())
    syncing.store.flush_pass()
    await turns()
    return syncing


async def test_a_pop_waits_for_its_checkpoint(syncing: Broker) -> None:
    answer = await after_the_flush(syncing, a_pop())
    assert (answer.code, answer.fields["msgOffsetInfo"]) == (0, "0 0 0,1,2,3")


async def test_acks_and_changed_times_wait_for_their_records(syncing: Broker) -> None:
    answer = await after_the_flush(syncing, a_pop())
    assert (await after_the_flush(syncing, an_ack(answer, 0))).code == 0
    times = {"pop_time": int(answer.fields["popTime"]), "invisible_time": 10_000}
    batch = BatchAck(
        consumer_group="g", topic="orders", retry="0", queue_id=0, revive_queue_id=0, bit_set=b"\x06", **times
    )
    assert (await after_the_flush(syncing, BatchAckMessage(), body_of(batch))).code == 0
    assert (await after_the_flush(syncing, a_change(answer))).code == 0


async def test_what_stores_nothing_waits_for_nothing(syncing: Broker) -> None:
    ordered = await ask(syncing, a_pop(order=True))
    assert ordered.code == 0
    assert (await ask(syncing, a_change(ordered))).code == 0


@pytest.mark.parametrize("request_of", [an_ack, lambda answer, _: a_change(answer)], ids=["ack", "change"])
async def test_a_disk_that_takes_too_long_ends_the_wait(
    syncing: Broker, request_of: Callable[[Asked, int], Any]
) -> None:
    """As in the official broker, which says SUCCESS then: the record is in the log."""
    syncing.cluster.durable_log.disk_waiters._loop = loop = WallLoop()  # type: ignore[assignment]
    popped = await after_the_flush(syncing, a_pop())
    connection = FakeConnection()
    assert await send(syncing, request_of(popped, 0), connection=connection) is HELD
    loop.run_for(5)
    (answer,) = connection.late_answers
    assert as_asked(answer).code == 0


async def test_only_so_many_wait_for_the_disk(broker_maker: MakeBroker) -> None:
    broker = broker_maker(store={"flush_disk_type": "SYNC_FLUSH"}, ack_thread_pool_queue_capacity=1)
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1))
    store_message(broker, "orders", 0, b"m0")
    broker.store.flush_pass()
    await turns()
    popped = await after_the_flush(broker, a_pop())
    connection = FakeConnection()
    assert await send(broker, an_ack(popped, 0), connection=connection) is HELD
    await turns()
    end = broker.store.log_end
    body = body_of(BatchAck(consumer_group="g", topic="orders", retry="0", queue_id=0, bit_set=b"\x01"))
    refused = [
        await ask(broker, a_pop()),
        await ask(broker, an_ack(popped, 0)),
        await ask(broker, a_change(popped)),
        await ask(broker, BatchAckMessage(), body),
    ]
    busy = (2, "[OVERLOAD]system busy, start flow control for a while")
    assert [(answer.code, answer.remark) for answer in refused] == [busy] * 4
    assert broker.store.log_end == end
    broker.store.flush_pass()
    await turns()
    assert len(connection.late_answers) == 1
    assert (await after_the_flush(broker, an_ack(popped, 0))).code == 0


async def test_only_so_many_popped_bytes_wait_for_the_disk(
    syncing: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_log, "MAX_WAITING_BYTES", 1)
    assert await send(syncing, a_pop(max_msg_nums=1), connection=FakeConnection()) is HELD
    assert (await ask(syncing, a_pop(max_msg_nums=1))).code == 2
    syncing.store.flush_pass()
    await turns()
    assert (await after_the_flush(syncing, a_pop(max_msg_nums=1))).code == 0


@pytest.mark.parametrize("saves", ["now and then", "at the end"])
async def test_no_offset_is_saved_before_the_log_is_forced(
    broker_maker: MakeBroker, monkeypatch: pytest.MonkeyPatch, saves: str
) -> None:
    """ASYNC_FLUSH: else a power loss would keep the offset and lose the checkpoint."""
    broker = broker_maker()
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1))
    store_message(broker, "orders", 0, b"m0")
    assert (await ask(broker, a_pop())).code == 0
    store, path = broker.store, broker.offsets.file.path
    force, seen = broker.offsets.file.before_replace, list[tuple[bytes, int]]()
    assert force is not None

    def forced() -> None:
        store_message(broker, "orders", 0, b"stored while the text was made")
        force()
        seen.append((path.with_name(path.name + ".tmp").read_bytes(), store.flushed_position))

    monkeypatch.setattr(broker.offsets.file, "before_replace", forced)
    assert store.flushed_position < store.log_end
    if saves == "at the end":
        broker.close()
    else:
        next(one for one in broker.state.periodic() if one.name == "offsets").action()
    ((text, position),) = seen
    assert position == store.log_end
    assert orjson.loads(text)["offsetTable"] == {"orders@g": {"0": 1}}
    assert path.read_bytes() == text


async def test_offsets_are_not_saved_if_the_log_cannot_be_forced(
    broker_maker: MakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = broker_maker()
    broker.offsets.commit("orders", "g", 0, 1)

    def fail() -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(broker.offsets.file, "before_replace", fail)
        with pytest.raises(StoreError, match="Input/output error"):
            broker.offsets.persist()
    assert not broker.offsets.file.path.exists()
    assert broker.offsets.persist()


async def test_held_pops_are_refused_together_if_there_is_no_room(syncing: Broker) -> None:
    await after_the_flush(syncing, a_pop())
    connection = FakeConnection()
    for _ in range(2):
        assert (
            await send(
                syncing, a_pop(poll_time=60_000, born_time=syncing.clock.now_ms()), connection=connection
            )
            is HELD
        )
    syncing.cluster.durable_log.waiting = 100_000
    store_message(syncing, "orders", 0, b"new")
    syncing.store.flush_pass()
    await turns()
    assert [as_asked(answer).code for answer in connection.late_answers] == [2, 2]
