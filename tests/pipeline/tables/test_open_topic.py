"""A topic as an Arrow reader: what is fixed by the call, what is pushed to the broker, and which errors there are."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pocketmq.pipeline.errors import OptionError, SourceUnreachable
from pocketmq.pipeline.tables import open_topic, topic_dataset
from pocketmq.pipeline.tables.arrow.topic_table import PIECE, narrow
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.ranges import Range
from pocketmq.pipeline.tables.records.columns import MESSAGE_COLUMNS, arrow_schema
from pocketmq.testing import EmbeddedServer, RocketMQ

from threads import begun_since, running_threads

COUNT = 40


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[RocketMQ]:
    with EmbeddedServer(virtual_time=True) as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("T", queues=4)
        for number in range(COUNT):
            rocketmq.send("T", f"m{number}", tags="AB"[number % 2], queue_id=number % 4)
            server.clock.advance(1.0)
        yield rocketmq


def bodies(reader: Any) -> list[str]:
    found = reader.read_all().column("body").to_pylist()
    return sorted((body.decode() for body in found), key=lambda text: int(text[1:]))


def expected(numbers: Any) -> list[str]:
    return [f"m{number}" for number in numbers]


def test_a_topic_is_read_queue_by_queue(rocketmq: RocketMQ) -> None:
    reader = open_topic(rocketmq.namesrv_addr, "T", columns="queueId,queueOffset,body")
    assert isinstance(reader, pa.RecordBatchReader)
    rows = reader.read_all().to_pylist()
    assert [(row["queueId"], row["queueOffset"]) for row in rows] == [
        (queue, offset) for queue in range(4) for offset in range(COUNT // 4)
    ]
    assert rows[11]["body"] == b"m5"


def test_messages_after_the_call_are_not_read(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("growing", queues=1)
    rocketmq.send(topic, "m1")
    reader = open_topic(rocketmq.namesrv_addr, topic)
    rocketmq.send(topic, "m2")
    assert bodies(reader) == ["m1"]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ({"filters": [("queueId", "=", 1)]}, range(1, COUNT, 4)),
        ({"filters": [("queueOffset", ">=", 8), ("queueId", "<", 2)]}, [32, 33, 36, 37]),
        ({"tags": "A"}, range(0, COUNT, 2)),
        ({"tags": "A || B", "filters": [("tags", "=", "B")]}, range(1, COUNT, 2)),
        ({"pull_batch_size": 3, "decode_rows": 5, "fail_on_data_loss": False}, range(COUNT)),
    ],
)
def test_rows_are_those_that_meet_the_condition(
    rocketmq: RocketMQ, wanted: dict[str, Any], numbers: Any
) -> None:
    assert bodies(open_topic(rocketmq.namesrv_addr, "T", **wanted)) == expected(numbers)


def test_store_times_limit_what_is_read(rocketmq: RocketMQ) -> None:
    rows = open_topic(rocketmq.namesrv_addr, "T", columns="storeTimestamp,body").read_all().to_pylist()
    times = {row["body"].decode(): row["storeTimestamp"] for row in rows}
    reader = open_topic(rocketmq.namesrv_addr, "T", since=times["m10"], until=times["m20"])
    assert bodies(reader) == expected(range(10, 20))


def test_a_dataset_sees_what_was_sent_between_two_questions(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("asked", queues=1)
    rocketmq.send(topic, "m1")
    dataset = topic_dataset(rocketmq.namesrv_addr, topic)
    assert dataset.count_rows() == 1
    rocketmq.send(topic, "m2")
    assert dataset.to_table(columns=["body"], filter=pc.field("queueOffset") == 1).to_pydict() == {
        "body": [b"m2"]
    }


async def test_a_topic_can_be_read_where_an_event_loop_runs(rocketmq: RocketMQ) -> None:
    assert asyncio.get_running_loop().is_running()
    assert len(bodies(open_topic(rocketmq.namesrv_addr, "T"))) == COUNT


@pytest.mark.parametrize("is_read", [False, True])
def test_a_reader_that_is_left_unread_ends_its_thread(rocketmq: RocketMQ, is_read: bool) -> None:
    before = running_threads()
    reader = open_topic(rocketmq.namesrv_addr, "T", decode_rows=1, pull_batch_size=1)
    assert len(begun_since(before, prefix="pocketmq-topic-table")) == 1
    if is_read:
        reader.read_next_batch()
    del reader
    assert begun_since(before, prefix="pocketmq-topic-table") == []


@pytest.mark.parametrize(
    ("topic", "options", "problem"),
    [
        ("Nobody", {}, "topic Nobody does not exist on any broker"),
        ("T", {"colour": "red"}, "unknown option colour"),
        ("T", {"store_path": "/no/store"}, "unknown option store_path"),
        ("T", {"tags": "A", "sql92": "a > 1"}, "tags and sql92: set one of them"),
        ("T", {"pull_batchsize": 32}, "unknown option pull_batchsize; similar: pull_batch_size; the options"),
        ("T", {"pull_batch_size": "many"}, "pull_batch_size must be a whole number, from 1 to 65536, got 'many'"),
        ("T", {"namesrv_addr": "nonsense"}, "namesrv_addr must be host:port"),
        ("T", {"tags": "|| ||"}, "tags, sql92 must be"),
        ("T", {"starting_offsets": '{"T":{"9":1}}'}, "starting_offsets must name exactly the existing queues"),
    ],
)  # fmt: skip
def test_mistakes_are_raised_by_the_call_in_its_own_words(
    rocketmq: RocketMQ, topic: str, options: dict[str, Any], problem: str
) -> None:
    namesrv_addr = options.pop("namesrv_addr", rocketmq.namesrv_addr)
    with pytest.raises(OptionError, match=f"^{re.escape(problem)}"):
        open_topic(namesrv_addr, topic, **options)


def test_brokers_that_do_not_answer_are_waited_for_as_long_as_the_call_says() -> None:
    with pytest.raises(SourceUnreachable):
        open_topic("127.0.0.1:1", "T", retry_timeout_ms=1)


SCHEMA = arrow_schema(MESSAGE_COLUMNS, list(MESSAGE_COLUMNS))


def test_a_condition_narrows_queues_and_offsets() -> None:
    one, two = Queue("T", "broker-a", 0), Queue("T", "broker-b", 1)
    ranges = [Range(one, 0, 3 * PIECE), Range(two, 0, 10)]
    assert narrow(ranges, None, SCHEMA) == ranges
    assert narrow(ranges, pc.field("brokerName") == "broker-b", SCHEMA) == [ranges[1]]
    offsets = (pc.field("queueOffset") > PIECE) & (pc.field("queueOffset") < 2 * PIECE + 5)
    assert narrow(ranges, offsets, SCHEMA) == [Range(one, PIECE, 3 * PIECE)]
    assert narrow(ranges, pc.field("tags") == "A", SCHEMA) == ranges
    assert narrow([], offsets, SCHEMA) == []
