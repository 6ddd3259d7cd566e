"""What readers and writers make of schemas, filters and rows, asked from themselves: no JVM."""

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

pytest.importorskip("pyspark")

import pyarrow as pa
from pocketmq.pipeline.batch_sender import BatchSender
from pocketmq.pipeline.columns import MESSAGE_COLUMNS
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.options import read_source_options
from pocketmq.pipeline.sink import TaskSender, TopicStreamWriter
from pocketmq.pipeline.sink_options import read_sink_options
from pocketmq.pipeline.source import FilteringReader, Layout
from pocketmq.pipeline.wire import Wire
from pyspark.sql.datasource import EqualTo, In
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

OFFSETS = StructType([StructField("queueOffset", LongType())])


def test_a_schema_that_names_a_column_twice_is_refused() -> None:
    """Arrow's own answer is a stack of Java."""
    twice = StructType([*OFFSETS.fields, *OFFSETS.fields])
    with pytest.raises(OptionError, match="names a column twice: queueOffset, queueOffset"):
        Layout(twice, MESSAGE_COLUMNS)


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
def test_only_tags_that_an_expression_can_name_are_asked_for(tags: tuple[str, ...], expression: str) -> None:
    """Brokers drop the blanks around a tag: asked for " A" they would send "A" and keep what was meant."""
    given = {"nameServer": "h:1", "subscribe": "T", "pushdown": "true"}
    reader = FilteringReader(read_source_options(given, is_stream=False), OFFSETS)
    one = EqualTo(("tags",), tags[0]) if len(tags) == 1 else In(("tags",), tags)
    assert list(reader.pushFilters([one])) == [one], "the engine looks again"
    assert reader._options.expression == expression


def test_a_row_that_is_larger_than_a_batch_is_sent_as_a_message() -> None:
    """A batch of one is longer than its message: the largest that a broker takes would not get there."""
    with EmbeddedServer({"maxMessageSize": 1000}) as server, Wire(server.namesrv_addr).held() as wire:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("large", queues=1)
        chosen = read_sink_options({"nameServer": server.namesrv_addr, "topic": topic, "batchBytes": "500"})
        sender = BatchSender(wire, group="g", in_flight=1, timeout_ms=10_000, retry_timeout_ms=5_000)
        rows = {
            "body": [b"a", b"x" * 1000, b"b"],
            "flag": pa.array([1, 7, None], pa.int32()),
            "tags": ["t", "u", "v"],
        }
        TaskSender(sender, chosen, "w").send(pa.RecordBatch.from_pydict(rows))
        sender.finish()
        messages = rocketmq.messages(topic)
        assert [(one.text, one.tags, one.flag) for one in messages] == [
            ("a", "t", 1),
            ("x" * 1000, "u", 7),
            ("b", "v", 0),
        ]
        assert len({one.message_id for one in messages}) == 3


def test_a_transactional_stream_needs_its_topic_at_once_and_not_in_a_task() -> None:
    schema = StructType([StructField("body", BinaryType()), StructField("topic", StringType())])
    with pytest.raises(OptionError, match="option topic: is required for streams"):
        TopicStreamWriter({"nameServer": "h:1", "guarantee": "transactional"}, schema, overwrite=False)
