"""14, 15 and 29 to 32, and our own 30001. Expectations are answers of official brokers, see conformance."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.offset import (
    ExplainFirstPosition,
    GetEarliestMsgStoreTime,
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    SearchOffsetByTimestamp,
    UpdateConsumerOffset,
    Verdict,
)
from pocketmq.protocol.text import fastjson
from pocketmq.store import VirtualClock

from broker_fakes import Asked, MakeBroker, ask, store_message

NOT_FOUND = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
NO_DEFAULT = "Not found, do not set to zero, maybe this group boot first"


@pytest.fixture(params=[4, 5])
async def either(request: pytest.FixtureRequest, broker_maker: MakeBroker) -> Broker:
    """A broker of each line that knows the topic T and the group G."""
    return known(broker_maker(emulate=request.param))


def known(broker: Broker) -> Broker:
    broker.topics.update(TopicConfig(topic_name="T", read_queue_nums=3, write_queue_nums=3))
    broker.groups.find_or_create("G")
    return broker


async def query(broker: Broker, queue_id: int = 0, topic: str = "T", default: bool | None = None) -> Asked:
    request = QueryConsumerOffset(
        consumer_group="G", topic=topic, queue_id=queue_id, set_zero_if_not_found=default
    )
    return await ask(broker, request)


async def commit(broker: Broker, offset: int, topic: str = "T", group: str = "G", queue_id: int = 0) -> Asked:
    request = UpdateConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset)
    return await ask(broker, request)


class TestQuery:
    async def test_a_stored_offset_is_answered_whatever_it_is(self, either: Broker) -> None:
        store_message(either, "T")
        for offset in (0, 5, 2, 1000):
            await commit(either, offset)
            assert (await query(either)).fields == {"offset": str(offset)}

    async def test_minus_one_is_stored_and_means_nothing(self, either: Broker) -> None:
        store_message(either, "T")
        await commit(either, 1)
        assert (await commit(either, -1)).code == 0
        assert (await query(either)).fields == {"offset": "0"}

    async def test_an_empty_queue_is_zero_in_line_4_and_unknown_in_line_5(
        self, broker: Broker, broker4: Broker
    ) -> None:
        for topic, queue_id in (("T", 0), ("T", 7), ("T", -1), ("Unknown", 0), ("%RETRY%G", 0)):
            assert (await query(known(broker4), queue_id, topic)).fields == {"offset": "0"}
            answer = await query(known(broker), queue_id, topic)
            assert (answer.code, answer.remark) == (22, NOT_FOUND)

    async def test_asking_stores_nothing(self, either: Broker) -> None:
        store_message(either, "T")
        await query(either)
        assert either.offsets.query("T", "G", 0) == -1

    async def test_line_5_lets_the_request_forbid_the_default(self, broker: Broker, broker4: Broker) -> None:
        for one in (known(broker), known(broker4)):
            store_message(one, "T")
        assert (await query(broker4, default=False)).fields == {"offset": "0"}
        answer = await query(broker, default=False)
        assert (answer.code, answer.remark) == (22, NO_DEFAULT)
        await commit(broker, 0)
        assert (await query(broker, default=False)).fields == {"offset": "0"}

    async def test_a_cold_first_message_is_not_found(self, broker_maker: MakeBroker) -> None:
        for emulate in (4, 5):
            one = known(broker_maker(emulate=emulate, store={"memory_size_bytes": 10_000}))
            store_message(one, "T")
            assert (await query(one)).fields == {"offset": "0"}
            store_message(one, "Other", body=bytes(4000))  # 30 per cent of memory is 3000
            assert (await query(one)).code == 22

    async def test_always_hot_never_is(self, broker_maker: MakeBroker) -> None:
        one = known(broker_maker(store={"memory_size_bytes": 0, "residency": "always-hot"}))
        store_message(one, "T")
        assert (await query(one)).fields == {"offset": "0"}


class TestCommit:
    async def test_line_4_accepts_any_offset(self, broker4: Broker) -> None:
        assert (await commit(broker4, 5, "Unknown", "Nobody", 77)).code == 0
        assert broker4.offsets.query("Unknown", "Nobody", 77) == 5

    async def test_line_5_wants_to_know_group_and_topic(self, broker: Broker) -> None:
        known(broker)
        answer = await commit(broker, 5, group="Nobody")
        assert (answer.code, answer.remark) == (26, "Group Nobody not exist!")
        answer = await commit(broker, 5, topic="Unknown")
        assert (answer.code, answer.remark) == (17, "Topic Unknown not exist!")
        assert (await commit(broker, 5, queue_id=77)).code == 0

    async def test_line_5_ignores_commits_while_a_reset_waits(self, broker: Broker) -> None:
        known(broker)
        broker.offsets.assign_reset("T", "G", 0, 2)
        answer = await commit(broker, 4)
        assert (answer.code, answer.remark) == (0, "Offset has been previously reset")
        assert (await query(broker)).fields == {"offset": "2"}
        broker.offsets.take_reset("T", "G", 0)
        assert (await commit(broker, 4)).remark is None
        assert (await query(broker)).fields == {"offset": "4"}


class TestQueueLimits:
    async def test_both_ends_of_a_queue(self, either: Broker, clock: VirtualClock) -> None:
        first_ms = clock.now_ms()
        store_message(either, "T", 1)
        clock.advance(1000)
        store_message(either, "T", 1)
        assert (await ask(either, GetMaxOffset(topic="T", queue_id=1))).fields == {"offset": "2"}
        assert (await ask(either, GetMinOffset(topic="T", queue_id=1))).fields == {"offset": "0"}
        answer = await ask(either, GetEarliestMsgStoreTime(topic="T", queue_id=1))
        assert answer.fields == {"timestamp": str(first_ms)}

    async def test_an_unknown_queue_is_empty(self, either: Broker) -> None:
        assert (await ask(either, GetMaxOffset(topic="T", queue_id=9))).fields == {"offset": "0"}
        assert (await ask(either, GetMinOffset(topic="T", queue_id=9))).fields == {"offset": "0"}
        answer = await ask(either, GetEarliestMsgStoreTime(topic="T", queue_id=9))
        assert answer.fields == {"timestamp": "-1"}

    async def test_a_time_after_the_last_message(
        self, broker: Broker, broker4: Broker, clock: VirtualClock
    ) -> None:
        """4.9: the message nearest in time, the last one; 5.x: behind it."""
        for one, offset in ((known(broker4), "1"), (known(broker), "2")):
            store_message(one, "T")
            store_message(one, "T")
            request = SearchOffsetByTimestamp(topic="T", queue_id=0, timestamp=clock.now_ms() + 3_600_000)
            assert (await ask(one, request)).fields == {"offset": offset}

    async def test_upper_boundary_in_any_case(self, broker: Broker, clock: VirtualClock) -> None:
        known(broker)
        for _ in range(3):
            store_message(broker, "T")
        request = SearchOffsetByTimestamp(
            topic="T", queue_id=0, timestamp=clock.now_ms(), boundary_type="upper"
        )
        assert (await ask(broker, request)).fields == {"offset": "2"}
        request = SearchOffsetByTimestamp(topic="T", queue_id=0, timestamp=clock.now_ms())
        assert (await ask(broker, request)).fields == {"offset": "0"}


class TestExplain:
    async def test_there_is_a_verdict_for_each_read_queue(self, either: Broker) -> None:
        store_message(either, "T", 1)
        await commit(either, 1, queue_id=1)
        answer = await ask(either, ExplainFirstPosition(consumer_group="G", topic="T"))
        verdicts = fastjson.decode(answer.body, list[Verdict])
        assert [verdict.queue_id for verdict in verdicts] == [0, 1, 2]
        assert [verdict.rule for verdict in verdicts] == ["B6", "B1", "B6"]

    async def test_an_unknown_topic_is_said_so(self, either: Broker) -> None:
        answer = await ask(either, ExplainFirstPosition(consumer_group="G", topic="Unknown"))
        assert (answer.code, answer.remark) == (17, "topic[Unknown] not exist")
