"""docs/pipeline-practice.md has every option and feature of Spark's Kafka connector; `kafka_rows.tsv` has the tests."""

import re

from pocketmq.pipeline.spark.sink.sink_options import _NAMES as SINK_NAMES
from pocketmq.pipeline.tables.planning.topic_options import SOURCE_OPTION_NAMES as SOURCE_NAMES

from documents import ROOT, check_named_tests, rows

PAGE = (ROOT / "docs" / "pipeline-practice.md").read_text(encoding="utf-8")
TABLES = PAGE.split("\n## Beside Spark's Kafka connector")[1].split("\n## ")[0]
TESTS = ROOT / "tests" / "pipeline" / "kafka_rows.tsv"
"""The first cell of a row (with the second one if that is "none") and its tests: without the feature they fail, or they
show the error where there is no counterpart."""
OF_KAFKA = """
    kafka.bootstrap.servers assign subscribe subscribePattern startingTimestamp startingOffsetsByTimestamp
    startingOffsets endingTimestamp endingOffsetsByTimestamp endingOffsets failOnDataLoss kafkaConsumer.pollTimeoutMs
    fetchOffset.numRetries fetchOffset.retryIntervalMs maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay
    minPartitions maxRecordsPerPartition groupIdPrefix kafka.group.id includeHeaders
    startingOffsetsByTimestampStrategy topic key value headers partition offset timestamp timestampType
    spark.kafka.consumer.cache.* spark.kafka.producer.cache.* spark.kafka.clusters.* kafka.partitioner.class kafka.*
    Trigger.AvailableNow Trigger.Continuous
"""
"""The options, columns and settings of Spark's guide for Kafka."""


def test_every_option_of_the_kafka_connector_is_named() -> None:
    assert [name for name in OF_KAFKA.split() if f"`{name}`" not in TABLES] == []


def test_every_row_names_tests_that_exist() -> None:
    """By file and function, so that a test that is renamed or removed is missed here."""
    listed = [row for text in TABLES.split("\n### ")[1:] for row in rows(text)]
    assert len(listed) > 70
    tests = dict(line.split("\t") for line in TESTS.read_text(encoding="utf-8").splitlines())
    keys = [f"none: {here}" if kafka == "none" else kafka for kafka, here in listed]
    assert keys == list(tests)
    for named in tests.values():
        assert check_named_tests(" ".join(f"`{name}`" for name in named.split(",")))


def test_options_that_are_the_same_have_the_same_name() -> None:
    """A row that says `same` is about an option that the source or the sink knows under Kafka's name."""
    known = {*SOURCE_NAMES, *SINK_NAMES}
    same = [line.split("|")[1] for line in TABLES.splitlines() if re.match(r"\|[^|]+\| same", line)]
    named = {name for cell in same for name in re.findall(r"`(\w+(?:\.\w+)?)`", cell)}
    values = {"earliest", "latest", "error", "partition", "offset", "spark.read", "spark.readStream"}
    others = {"latestOffset", "Trigger.AvailableNow"}
    assert named - values - others <= known
