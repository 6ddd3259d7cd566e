"""303: progress of groups; 306 and 316: queues without use.

What mqadmin makes of the answers is compared with official brokers in `conformance/admin`.
"""

from pocketmq.broker.broker import Broker
from pocketmq.protocol.requests.topic import CleanExpiredConsumeQueue, CleanUnusedTopic, QueryConsumeTimeSpan
from pocketmq.store import VirtualClock

from broker_fakes import MakeBroker, ask, store_message


def fill(broker: Broker, topic: str = "Orders", count: int = 3) -> None:
    broker.topics.create_for_send(topic, "TBW102", 2)
    for _ in range(count):
        store_message(broker, topic)


async def test_delay_is_the_age_of_the_next_message(broker: Broker, clock: VirtualClock) -> None:
    fill(broker)
    broker.offsets.commit("Orders", "G", 0, 2)
    clock.advance(5000)
    answer = await ask(broker, QueryConsumeTimeSpan(topic="Orders", group="G"))
    behind, empty = answer.json["consumeTimeSpanSet"]
    assert behind["delayTime"] == 5000
    assert empty["delayTime"] == 0 or empty["minTimeStamp"] == -1
    broker.offsets.commit("Orders", "G", 0, 3)
    answer = await ask(broker, QueryConsumeTimeSpan(topic="Orders", group="G"))
    assert answer.json["consumeTimeSpanSet"][0]["delayTime"] == 0


async def test_queues_of_topics_that_are_gone_are_cleaned(broker: Broker) -> None:
    fill(broker)
    fill(broker, "Gone")
    broker.topics.delete("Gone")
    await ask(broker, CleanUnusedTopic())
    assert broker.store.topics_with_queues() == ["Orders"]


async def test_queues_whose_messages_left_the_log_are_cleaned(broker_maker: MakeBroker) -> None:
    broker = broker_maker(store={"mapped_file_size_commit_log": 4096})
    fill(broker, "Old", 1)
    fill(broker, "Orders", 60)
    await ask(broker, CleanExpiredConsumeQueue())
    assert set(broker.store.topics_with_queues()) == {"Old", "Orders"}, "nothing has left the log yet"
    assert broker.store.delete_oldest_log_file()
    await ask(broker, CleanExpiredConsumeQueue())
    assert broker.store.topics_with_queues() == ["Orders"]
    store_message(broker, "Old")
    assert broker.store.max_offset("Old", 0) == 1, "the queue begins anew"
