"""12, 33 and 321: answers of official 4.9.7 and 5.5.0 brokers to the same requests after the same messages."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.client import Client
from pocketmq.protocol.bodies.client import tag_subscription
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.message.record import decode_records
from pocketmq.protocol.requests.pull import QueryConsumeQueue, QueryMessage, ViewMessageById
from pocketmq.store import VirtualClock

from broker_fakes import Asked, ask, connect, store_message

UNIQUE = "7F000001000000000000000000000001"
NOT_FOUND = "can not find message, maybe time range not correct"


def fill(broker: Broker) -> list[int]:
    """Three messages in T1 queue 0; their log positions."""
    kinds = [{"KEYS": "k1 k2", "TAGS": "A"}, {"KEYS": "k1", "UNIQ_KEY": UNIQUE}, {}]
    ids = [store_message(broker, "T1", body=b"x", properties=kind) for kind in kinds]
    return [decode_message_id(text).position for text in ids]


async def query(broker: Broker, key: str, **fields: object) -> Asked:
    defaults = {"topic": "T1", "max_num": 32, "begin_timestamp": 0, "end_timestamp": 1 << 62}
    return await ask(broker, QueryMessage(key=key, **{**defaults, **fields}))  # type: ignore[arg-type]


def offsets(answer: Asked) -> list[int]:
    return [record.position for record in decode_records(answer.body)]


class TestByKey:
    async def test_records_come_back_to_back_in_log_order(self, broker: Broker, clock: VirtualClock) -> None:
        positions = fill(broker)
        answer = await query(broker, "k1")
        assert (answer.code, answer.remark) == (0, None)
        assert offsets(answer) == positions[:2]
        assert answer.fields == {
            "indexLastUpdateTimestamp": str(clock.now_ms()),
            "indexLastUpdatePhyoffset": str(positions[1]),
        }

    async def test_a_unique_id_is_found_with_and_without_its_flag(self, broker: Broker) -> None:
        positions = fill(broker)
        for fields in ({"unique_key_query": True, "max_num": 0}, {}, {"index_type": "U"}):
            assert offsets(await query(broker, UNIQUE, **fields)) == [positions[1]]

    async def test_a_tag_is_found_by_its_type_alone(self, broker: Broker) -> None:
        positions = fill(broker)
        assert offsets(await query(broker, "A", index_type="T")) == [positions[0]]
        assert (await query(broker, "A")).code == 22
        assert (await query(broker, "k1", index_type="T")).code == 22
        assert offsets(await query(broker, "k1", index_type="Z", last_key="zz")) == positions[:2]

    async def test_the_4_line_knows_no_types(self, broker4: Broker) -> None:
        positions = fill(broker4)
        assert (await query(broker4, "A", index_type="T")).code == 22
        assert offsets(await query(broker4, "k1", index_type="T")) == positions[:2]

    async def test_nothing_found_still_fills_the_header(self, broker: Broker) -> None:
        fill(broker)
        for fields in ({}, {"topic": "Other"}, {"max_num": 0}, {"end_timestamp": 5}):
            answer = await query(broker, "k1" if fields else "nope", **fields)
            assert (answer.code, answer.remark, answer.body) == (22, NOT_FOUND, b"")
            assert answer.fields == {"indexLastUpdateTimestamp": "0", "indexLastUpdatePhyoffset": "0"}

    async def test_the_newest_win_where_fewer_are_wanted(self, broker: Broker) -> None:
        positions = fill(broker)
        assert offsets(await query(broker, "k1", max_num=1)) == [positions[1]]
        assert offsets(await query(broker, "k1", max_num=1, unique_key_query=True)) == positions[:2]

    async def test_no_more_than_a_batch_is_answered(self, broker: Broker) -> None:
        for _ in range(70):
            store_message(broker, "T1", properties={"KEYS": "k"})
        assert len(offsets(await query(broker, "k", max_num=100))) == 64
        assert len(offsets(await query(broker, "k", unique_key_query=True))) == 32

    async def test_a_negative_number_is_refused(self, broker: Broker) -> None:
        assert (await query(broker, "k1", max_num=-1)).code == 1


class TestByPosition:
    async def test_the_record_is_the_body(self, broker: Broker) -> None:
        positions = fill(broker)
        answer = await ask(broker, ViewMessageById(offset=positions[1], topic="whatever"))
        assert answer.code == 0
        assert offsets(answer) == [positions[1]]

    @pytest.mark.parametrize("offset", [-1, 5, 10**5, 10**9])
    async def test_where_no_record_starts_none_is_answered(self, broker: Broker, offset: int) -> None:
        fill(broker)
        answer = await ask(broker, ViewMessageById(offset=offset))
        assert (answer.code, answer.body) == (1, b"")
        assert answer.remark == f"can not find message by the offset, {offset}"


class TestConsumeQueue:
    async def test_entries_are_answered_as_json(self, broker: Broker) -> None:
        positions = fill(broker)
        answer = await ask(broker, QueryConsumeQueue(topic="T1", queue_id=0, index=0, count=2))
        assert (answer.code, answer.remark) == (0, "not set any response code")
        sizes = [positions[1] - positions[0], positions[2] - positions[1]]
        assert answer.body.decode() == (
            '{"maxQueueIndex":3,"minQueueIndex":0,"queueData":['
            f'{{"eval":false,"physicOffset":0,"physicSize":{sizes[0]},"tagsCode":65}},'
            f'{{"eval":false,"physicOffset":{positions[1]},"physicSize":{sizes[1]},"tagsCode":0}}]}}'
        )

    async def test_the_end_of_the_queue_ends_the_answer(self, broker: Broker) -> None:
        positions = fill(broker)
        answer = await ask(broker, QueryConsumeQueue(topic="T1", queue_id=0, index=2, count=9))
        assert [entry["physicOffset"] for entry in answer.json["queueData"]] == [positions[2]]
        for count in (0, -1):
            answer = await ask(broker, QueryConsumeQueue(topic="T1", queue_id=0, index=0, count=count))
            assert answer.json["queueData"] == []

    @pytest.mark.parametrize("index", [3, 99, -5])
    async def test_an_index_outside_is_success_without_a_body(self, broker: Broker, index: int) -> None:
        fill(broker)
        answer = await ask(broker, QueryConsumeQueue(topic="T1", queue_id=0, index=index, count=2))
        assert (answer.code, answer.remark) == (0, f"Index {index} of 0@T1 is not exist!")
        assert answer.body == b""

    @pytest.mark.parametrize(("topic", "queue_id"), [("T1", 3), ("Nope", 0)])
    async def test_an_unknown_queue_is_refused(self, broker: Broker, topic: str, queue_id: int) -> None:
        fill(broker)
        answer = await ask(broker, QueryConsumeQueue(topic=topic, queue_id=queue_id, index=0, count=2))
        assert (answer.code, answer.remark) == (1, f"{queue_id}@{topic} is not exist!")

    async def test_a_group_shows_its_subscription(self, broker: Broker, clock: VirtualClock) -> None:
        fill(broker)
        question = QueryConsumeQueue(topic="T1", queue_id=0, index=0, count=1, consumer_group="gx")
        assert (await ask(broker, question)).json["filterData"] == "gx@T1 is not online!"
        subscribe(broker, "gx", "T1", clock)
        answer = (await ask(broker, question)).json
        assert answer["filterData"] == "null"
        assert answer["subscriptionData"]["topic"] == "T1"


def subscribe(broker: Broker, group: str, topic: str, clock: VirtualClock) -> None:
    client = Client(connect(broker), "c1", "JAVA", 0, clock.now_ms())
    broker.membership.consumers.register(
        group,
        client,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=[tag_subscription(topic, "*", sub_version=1)],
    )
