"""Schemas, filters and rows in readers and writers, called directly, without a JVM."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pocketmq.pipeline.errors import CorruptStoreError, OptionError
from pocketmq.pipeline.spark.sink.topic_writer import TopicStreamWriter
from pocketmq.pipeline.spark.sources.output_schema import OutputSchema
from pocketmq.pipeline.spark.sources.store_source import StoreSource
from pocketmq.pipeline.spark.sources.topic_reader import FilteringReader, TopicReader
from pocketmq.pipeline.spark.sources.topic_source import RocketMQSource
from pocketmq.pipeline.tables.planning.topic_options import read_source_options
from pocketmq.pipeline.tables.records.columns import MESSAGE_COLUMNS
from pocketmq.testing import EmbeddedServer, RocketMQ
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    StringStartsWith,
)

from pipeline.brokers.cluster_sends import send_rows
from pipeline.store_files import overwrite
from spark.source_readers import rows, schema

OFFSETS = schema("queueOffset bigint")


def test_a_schema_that_names_a_column_twice_is_refused() -> None:
    """Arrow's own error is a Java stack trace."""
    with pytest.raises(OptionError, match="names a column twice: queueOffset, queueOffset"):
        OutputSchema(schema("queueOffset bigint, queueOffset bigint"), MESSAGE_COLUMNS)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("color string", "unknown column color; the columns are topic, "),
        ("queueId string", "column queueId must be int, got string"),
        ("value binary", "unknown column value; here it is body"),
    ],
)
def test_a_wrong_column_of_a_schema_is_named(field: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        OutputSchema(schema(field), MESSAGE_COLUMNS)


def test_a_column_that_the_kafka_connector_has_is_answered_with_its_name_here() -> None:
    source = RocketMQSource({"subscribe": "T", "columns": "topic,offset,timestamp"})
    with pytest.raises(OptionError, match="offset; here it is queueOffset; timestamp; here it is store"):
        source.schema()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nameServer": "h:1", "endingTimestamp": "5"}, "a stream has no end"),
        (
            {"nameServer": "h:1", "maxTriggerDelay": "10"},
            "maxTriggerDelay must be a number with ms, s, m or h",
        ),
        ({}, "namesrv.addr is required"),
    ],
)
def test_a_stream_with_wrong_options_reports_the_option(options: dict[str, str], message: str) -> None:
    """Spark's worker stops a reader in any case, also one that could not be created."""
    reader = RocketMQSource({"subscribe": "T", **options}).streamReader(OFFSETS)
    reader.stop()
    with pytest.raises(OptionError, match=message):
        reader.initialOffset()


@pytest.mark.parametrize(
    ("tags", "expression"),
    [
        (("A",), "A"),
        (("B", "A"), "A || B"),
        ((" A",), "*"),
        (("A", "A||B"), "*"),
        (("*",), "*"),
        (("",), "*"),
        (("A", None), "*"),
    ],
)
def test_only_tags_that_an_expression_can_name_are_pushed_down(
    tags: tuple[str, ...], expression: str
) -> None:
    """Brokers drop the blanks around a tag: for " A" they would send "A" and withhold the wanted messages."""
    options = {"nameServer": "h:1", "subscribe": "T", "pushdown": "true"}
    reader = FilteringReader(read_source_options(options, is_stream=False), OFFSETS)
    one = EqualTo(("tags",), tags[0]) if len(tags) == 1 else In(("tags",), tags)
    assert list(reader.pushFilters([one])) == [one], "the engine looks again"
    assert reader._options.expression == expression


def test_a_row_that_is_larger_than_a_batch_is_sent_as_a_message() -> None:
    """A batch of one is longer than its message, so the largest allowed message would be refused."""
    with EmbeddedServer({"maxMessageSize": 1000}) as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("large", queues=1)
        rows = {
            "body": [b"a", b"x" * 1000, b"b"],
            "flag": pa.array([1, 7, None], pa.int32()),
            "tags": ["t", "u", "v"],
        }
        send_rows(server.namesrv_addr, rows, topic=topic, batchBytes="500")
        messages = rocketmq.messages(topic)
        found = {(one.text, one.tags, one.flag) for one in messages}
        assert found == {("a", "t", 1), ("x" * 1000, "u", 7), ("b", "v", 0)}
        assert len({one.message_id for one in messages}) == 3


def test_a_transactional_stream_without_a_topic_is_refused_before_a_task_starts() -> None:
    columns = schema("body binary, topic string")
    with pytest.raises(OptionError, match="option topic is required for streams"):
        TopicStreamWriter({"nameServer": "h:1", "guarantee": "transactional"}, columns, overwrite=False)


LOG_FILE_BYTES = 4096


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """50 messages in several log files."""
    with EmbeddedServer({"mappedFileSizeCommitLog": LOG_FILE_BYTES}, store=tmp_path) as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("T", queues=1)
        for number in range(50):
            rocketmq.send(topic, f"m{number:02}" + "." * 100)
    return tmp_path


STATUSES = "status string, queueOffset bigint"


def scan(store: Path, **options: str) -> list[tuple[Any, ...]]:
    return rows(StoreSource, STATUSES, path=str(store), topics="T", **options)


@pytest.mark.parametrize("driver", ["commitlog", "consumequeue"])
def test_a_missing_file_between_two_others_is_damage(store: Path, driver: str) -> None:
    files = sorted((store / "commitlog").iterdir())
    assert scan(store, driver=driver) == [("ok", number) for number in range(50)]
    files[1].unlink()
    (store / "commitlog" / ("9" * 20)).mkdir()  # not a file, and so none of the log
    with pytest.raises(
        CorruptStoreError, match=f"{files[0].name}: {LOG_FILE_BYTES} bytes of the log are missing"
    ):
        scan(store, driver=driver)
    left = scan(store, driver=driver, onCorrupt="skip")
    assert {status for status, _ in left} == {"ok"}
    assert 25 < len(left) < 50
    assert sorted(scan(store, driver=driver, onCorrupt="report"), key=str) == sorted(
        [*left, ("missing", None)], key=str
    )
    files[0].unlink()
    assert scan(store, driver=driver)[-1] == ("ok", 49), "the oldest files are deleted in good order"


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({}, 1),
        ({"splitBytes": "1"}, LOG_FILE_BYTES),
        ({"splitBytes": "1000"}, 12),
        ({"minPartitions": "50"}, 50),
        ({"driver": "consumequeue"}, 1),
        ({"decodeRows": "3"}, 1),
    ],
)
def test_every_message_is_read_once_with_any_splits(store: Path, options: dict[str, str], tasks: int) -> None:
    all_options = {"path": str(store), **options}
    assert len(StoreSource(all_options).reader(schema(STATUSES)).partitions()) >= tasks
    assert sorted(scan(store, **options)) == [("ok", number) for number in range(50)]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"driver": "consumequeue"}, "driver=commitlog reads without it"),
        ({"table": "consumequeue"}, "table consumequeue needs the consume queues"),
    ],
)
def test_a_store_without_queues_is_not_read_as_an_empty_store(
    store: Path, option: dict[str, str], reason: str
) -> None:
    (store / "consumequeue").rename(store / "elsewhere")
    reader = StoreSource({"path": str(store), **option}).reader(OFFSETS)
    with pytest.raises(OptionError, match=f"consumequeue is not a folder; {reason}"):
        reader.partitions()


@pytest.mark.parametrize("lost", [range(20, 21), range(10, 30), range(40, 50)])
def test_messages_without_their_unit_are_read_by_every_driver(store: Path, lost: range) -> None:
    path = store / "consumequeue" / "T" / "0" / f"{0:020}"
    overwrite(path, 20 * lost.start, bytes(20 * len(lost)))
    for driver in ("commitlog", "consumequeue"):
        assert sorted(scan(store, driver=driver)) == [("ok", number) for number in range(50)]


def test_queues_that_do_not_match_the_log_are_not_believed(store: Path) -> None:
    path = store / "consumequeue" / "T" / "0" / f"{0:020}"
    overwrite(path, 20 * 7 + 8, (4000).to_bytes(4, "big"))
    assert sorted(scan(store, driver="consumequeue")) == [("ok", number) for number in range(50)]


WHOLE = schema(f"{STATUSES}, storeTimestamp timestamp")


@pytest.mark.parametrize("driver", ["commitlog", "consumequeue"])
def test_filters_rule_out_rows_and_parts_of_a_store(store: Path, driver: str) -> None:
    options = {"path": str(store), "pushdown": "true", "splitBytes": "1000", "driver": driver}

    def read(reader: DataSourceReader) -> tuple[list[dict[str, Any]], int]:
        tasks = reader.partitions()
        return [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()], len(tasks)

    every, tasks = read(StoreSource(options).reader(WHOLE))
    assert len(every) == 50
    moment = every[30]["storeTimestamp"]
    for filters, wanted in (
        ([GreaterThan(("queueOffset",), 40)], lambda row: row["queueOffset"] > 40),
        ([In(("queueOffset",), (3, 5, None))], lambda row: row["queueOffset"] in (3, 5)),
        ([EqualTo(("topic",), "Other")], lambda row: False),
        (
            [GreaterThanOrEqual(("storeTimestamp",), moment)],
            lambda row: row["storeTimestamp"] >= every[30]["storeTimestamp"],
        ),
        ([EqualTo(("topic",), "T"), LessThan(("queueOffset",), 7)], lambda row: row["queueOffset"] < 7),
        ([StringStartsWith(("topic",), "X")], lambda row: True),
        ([EqualTo(("queueOffset",), "no number"), EqualTo(("nothing",), 1)], lambda row: True),
    ):
        reader = StoreSource(options).reader(WHOLE)
        assert list(reader.pushFilters(filters)) == filters, "the engine looks again"
        found, planned = read(reader)
        assert found == [row for row in every if wanted(row)], filters
        assert planned <= tasks


def test_where_nothing_is_to_be_read_spark_reads_a_task_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    store = StoreSource({"path": str(tmp_path)}).reader(schema(STATUSES))
    assert store.partitions() == []
    options = read_source_options({"nameServer": "h:1", "subscribe": "T"}, is_stream=False)
    for reader in (store, TopicReader(options, OFFSETS)):
        assert list(reader.read(InputPartition(None))) == []


def test_a_filter_on_the_log_position_rules_out_tasks(store: Path) -> None:
    reader = StoreSource({"path": str(store), "pushdown": "true", "splitBytes": "1000"}).reader(
        schema(STATUSES)
    )
    every = len(reader.partitions())
    list(reader.pushFilters([LessThan(("physicalOffset",), 10)]))
    (first,) = reader.partitions()
    assert every > 10
    assert [row["queueOffset"] for batch in reader.read(first) for row in batch.to_pylist()] == [0]
