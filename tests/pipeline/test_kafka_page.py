"""docs/pipeline-kafka.md has every option and feature of Spark's Kafka connector, and each row names a test."""

import re

import pytest

pytest.importorskip("numpy", reason="the pipeline's extra is not installed")

from pocketmq.pipeline.planning.topic_options import SOURCE_OPTION_NAMES as SOURCE_NAMES
from pocketmq.pipeline.sink.sink_options import _NAMES as SINK_NAMES

from documents import ROOT, check_named_tests, rows

PAGE = ROOT / "docs" / "pipeline-kafka.md"
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
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in OF_KAFKA.split() if f"`{name}`" not in text] == []


def test_every_row_names_tests_that_exist() -> None:
    """By file and function, so that a test that is renamed or removed is missed here."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    lines = [row for section in sections for row in rows(section)]
    assert len(lines) > 70
    assert [row[0] for row in lines if len(row) != 3 or not check_named_tests(row[2])] == []


def test_options_that_are_the_same_have_the_same_name() -> None:
    """A row that says `same` is about an option that the source or the sink knows under Kafka's name."""
    known = {*SOURCE_NAMES, *SINK_NAMES}
    text = PAGE.read_text(encoding="utf-8")
    same = [line.split("|")[1] for line in text.splitlines() if re.match(r"\|[^|]+\| same", line)]
    named = {name for cell in same for name in re.findall(r"`(\w+(?:\.\w+)?)`", cell)}
    values = {"earliest", "latest", "error", "partition", "offset", "spark.read", "spark.readStream"}
    others = {"latestOffset", "Trigger.AvailableNow"}
    assert named - values - others <= known
