"""314, 43, 45, 308, 343: requests of administrators and slaves about offsets."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.requests.offset import CloneGroupOffset, QueryCorrectionOffset
from pocketmq.protocol.requests.replication import GetAllConsumerOffset, GetAllDelayOffset

from broker.admin.online_members import online
from broker_fakes import MakeBroker, ask


def commit(broker: Broker, group: str, *offsets: int, topic: str = "T2") -> None:
    broker.topics.create_for_send(topic, "TBW102", 4)
    for queue_id, offset in enumerate(offsets):
        broker.offsets.commit(topic, group, queue_id, offset)


async def test_without_a_topic_all_are_cloned(broker: Broker) -> None:
    commit(broker, "GA", 5)
    commit(broker, "GA", 7, topic="T3")
    await ask(broker, CloneGroupOffset(src_group="GA", dest_group="GC"))
    assert broker.offsets.topics_of("GC") == {"T2", "T3"}


async def test_an_online_source_gives_only_what_it_subscribes_to(broker: Broker) -> None:
    commit(broker, "GA", 5)
    commit(broker, "GA", 7, topic="T3")
    online(broker, group="GA", topic="T3")
    await ask(broker, CloneGroupOffset(src_group="GA", dest_group="GC"))
    assert broker.offsets.topics_of("GC") == {"T3"}
    await ask(broker, CloneGroupOffset(src_group="GA", dest_group="GD", offline=True))
    assert broker.offsets.topics_of("GD") == {"T2", "T3"}


async def test_a_slave_gets_all_offsets(broker: Broker) -> None:
    commit(broker, "GA", 5, 6)
    answer = await ask(broker, GetAllConsumerOffset())
    assert b'"offsetTable":{"T2@GA":{0:5,1:6}}' in answer.body


async def test_a_slave_gets_the_delay_offsets(broker: Broker) -> None:
    broker.delays.update(1, 3)
    broker.delays.update(18, 0)
    assert b'"offsetTable":{1:3,18:0}' in (await ask(broker, GetAllDelayOffset())).body


@pytest.mark.parametrize(
    ("emulate", "offsets", "compared", "filtered", "answer"),
    [
        (5, {"GA": (5, 6), "GB": (4, 9)}, "GX", "", "{0:4,1:6}"),
        (5, {"GA": (5, 6), "GB": (4, 9)}, "GX", "GB,GC", "{0:5,1:6}"),
        (5, {}, "GX", "", "{}"),
        (5, {"GA": (5, 6), "GX": (2, 8)}, "GX", "GX", "{0:9223372036854775807,1:6}"),
        (4, {"GA": (5, 6), "GX": (2, 8)}, "GX", "GX", "{0:5,1:6}"),
    ],
    ids=["lowest of all", "without some", "no topic", "behind all others", "4.9 compares nothing"],
)
async def test_the_lowest_offset_of_all_groups_is_answered(
    broker_maker: MakeBroker,
    emulate: int,
    offsets: dict[str, tuple[int, ...]],
    compared: str,
    filtered: str,
    answer: str,
) -> None:
    broker = broker_maker(emulate=emulate)
    for group, of_group in offsets.items():
        commit(broker, group, *of_group)
    request = QueryCorrectionOffset(compare_group=compared, topic="T2", filter_groups=filtered or None)
    assert (await ask(broker, request)).body.decode() == f'{{"correctionOffsets":{answer}}}'
