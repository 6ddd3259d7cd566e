"""A topic's first offset reaches a broker alone, last offsets are awaited, and pulls carry offsets only afterwards."""

import asyncio

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import MessageQueue
from pocketmq.client.instance.instance import ClientInstance
from pocketmq.client.offsets.broker_store import RemoteBrokerOffsetStore
from pocketmq.testing import LoggedRequest, Reply
from pocketmq.testing.faults.faults import Faults

from waiting import until

QUEUES = [MessageQueue("T", "b", queue_id) for queue_id in range(4)]
SYSTEM_ERROR = 1


class OffsetBroker:
    """A broker that answers offsets when the test says. `arrived` has topic, queue id, offset, whether one-way."""

    def __init__(self, node: Node, faults: Faults) -> None:
        self.address = node.broker_address
        self.arrived: list[tuple[str, int, int, bool]] = []
        self.waiting: list[asyncio.Future[Reply]] = []
        self.at_once = False
        self._node = node
        faults.control("UPDATE_CONSUMER_OFFSET", self._answer, times=None)

    def cut(self) -> None:
        for connection in self._node.server.connections:
            connection.close()

    def answer(self, code: int = 0) -> None:
        """Answer everything that waits now."""
        waiting, self.waiting = self.waiting, []
        for one in waiting:
            one.set_result(Reply(code))

    async def _answer(self, request: LoggedRequest) -> Reply:
        assert request.topic is not None
        assert request.queue_id is not None
        place = request.topic, request.queue_id, int(request.fields["commitOffset"])
        self.arrived.append((*place, request.oneway))
        if request.oneway or self.at_once:
            return Reply()
        self.waiting.append(asyncio.get_running_loop().create_future())
        return await self.waiting[-1]

    def queue_ids(self) -> list[int]:
        return [place[1] for place in self.arrived]


@pytest.fixture
def broker(node: Node, faults: Faults) -> OffsetBroker:
    return OffsetBroker(node, faults)


@pytest.fixture
async def store(broker: OffsetBroker, instance: ClientInstance) -> RemoteBrokerOffsetStore:
    """An offset store with an offset in each of QUEUES."""
    instance.routes.brokers.keep({"b": {0: broker.address}})
    found = RemoteBrokerOffsetStore(instance, "g")
    for queue in QUEUES:
        found.update(queue, 10 + queue.queue_id)
    return found


async def report_first(store: RemoteBrokerOffsetStore, broker: OffsetBroker) -> None:
    """Report the first offset of the topic to the broker."""
    broker.at_once = True
    await store.persist(QUEUES[0])
    broker.at_once = False
    broker.arrived.clear()


async def settled() -> None:
    """Return when every task waits for an answer: after a round trip over the loop's own sockets."""
    for _ in range(20):
        await asyncio.sleep(0.001)


async def test_the_first_offset_of_a_topic_is_alone_until_it_is_answered(
    store: RemoteBrokerOffsetStore, broker: OffsetBroker
) -> None:
    everything = asyncio.gather(
        store.persist_all(QUEUES), store.persist(QUEUES[3]), store.commit(QUEUES[2], 99)
    )
    await until(lambda: broker.arrived)
    await settled()
    assert len(broker.arrived) == 1
    assert not broker.arrived[0][3], "one-way"
    broker.at_once = True
    broker.answer()
    async with asyncio.timeout(5):
        await everything
    await until(lambda: set(broker.queue_ids()) == {0, 1, 2, 3})


async def test_after_the_first_regular_offsets_are_one_way(
    store: RemoteBrokerOffsetStore, broker: OffsetBroker
) -> None:
    await report_first(store, broker)
    await store.persist_all(QUEUES)
    await until(lambda: len(broker.arrived) == 4)
    assert broker.arrived == [("T", queue_id, 10 + queue_id, True) for queue_id in range(4)]


async def test_a_refused_first_offset_leaves_the_next_one_alone_too(
    store: RemoteBrokerOffsetStore, broker: OffsetBroker
) -> None:
    persisting = asyncio.create_task(store.persist_all(QUEUES))
    for count in (1, 2):
        await until(lambda: len(broker.arrived) == count)  # noqa: B023
        await settled()
        assert len(broker.arrived) == count
        broker.answer(SYSTEM_ERROR)
    await until(lambda: len(broker.arrived) == 3)
    broker.answer()
    await persisting
    await until(lambda: len(broker.arrived) == 4)
    assert [place[3] for place in broker.arrived] == [False, False, False, True]


async def test_each_topic_and_each_connection_has_a_first_offset(
    store: RemoteBrokerOffsetStore, broker: OffsetBroker
) -> None:
    await report_first(store, broker)
    store.update(MessageQueue("U", "b", 0), 1)
    persisting = asyncio.create_task(store.persist_all([*QUEUES, MessageQueue("U", "b", 0)]))
    await until(lambda: ("U", 0, 1, False) in broker.arrived)
    broker.answer()
    await persisting
    broker.cut()  # a broker that was killed may have forgotten
    await until(lambda: not store.may_travel_with_pull(QUEUES[0]))
    await until(lambda: broker.waiting)
    await settled()
    assert len(broker.waiting) == 1
    broker.at_once = True
    broker.answer()


async def test_an_offset_that_waited_is_reported_with_its_newest_value(
    store: RemoteBrokerOffsetStore, broker: OffsetBroker
) -> None:
    persisting = asyncio.create_task(store.persist_all(QUEUES[:3]))
    await until(lambda: broker.arrived)
    moved, gone = {0, 1, 2} - {broker.arrived[0][1]}
    store.update(QUEUES[moved], 50)
    store.remove(QUEUES[gone])
    broker.answer()
    await persisting
    await until(lambda: len(broker.arrived) == 2)
    await settled()
    assert broker.arrived[1:] == [("T", moved, 50, True)]


async def test_a_leaving_consumer_waits_until_the_broker_has_its_last_offsets(
    store: RemoteBrokerOffsetStore, broker: OffsetBroker
) -> None:
    await report_first(store, broker)
    leaving = asyncio.create_task(store.persist_last(QUEUES))
    await until(lambda: len(broker.waiting) == 4)
    await settled()
    assert not leaving.done()
    broker.answer()
    async with asyncio.timeout(5):
        await leaving


async def test_a_broker_that_never_answers_does_not_block_a_leaving_consumer(
    store: RemoteBrokerOffsetStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pocketmq.client.offsets.broker_store.CALL_TIMEOUT_SECONDS", 0.05)
    async with asyncio.timeout(4):
        await store.persist_last(QUEUES)
    assert "not persisted in time" in caplog.text
