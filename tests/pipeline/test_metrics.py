"""The numbers of a stream, from progress events as Spark writes them."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.pipeline.spark.session.metrics import BatchCounts, metrics_line, stream_metrics
from pocketmq.pipeline.tables.planning.positions import Queue, StreamPosition

A, B = Queue("A", "b0", 0), Queue("B", "b0", 0)


def event(**more: Any) -> dict[str, Any]:
    start, end, latest = (StreamPosition({A: a, B: b}).to_json() for a, b in ((1, 0), (5, 2), (9, 2)))
    source = {"startOffset": json.dumps(start), "endOffset": end, "latestOffset": latest}
    return {
        "name": "copies",
        "batchId": 3,
        "numInputRows": 6,
        "processedRowsPerSecond": 12.0,
        "durationMs": {"triggerExecution": 500},
        "sources": [source, {"startOffset": None, "endOffset": 5, "description": "RateStream"}],
        **more,
    }


def test_lag_and_requested_messages_are_by_topic() -> None:
    numbers = stream_metrics(event())
    assert (numbers.query, numbers.batch, numbers.rows) == ("copies", 3, 6)
    assert numbers.requested == {"A": 4, "B": 2}
    assert numbers.lag == {"A": 4, "B": 0}
    assert (numbers.messages, numbers.bytes, numbers.missing) == (None, None, None)
    assert metrics_line(numbers) == "batch 3: 6 rows in 500 ms (12/s), 4 waiting"


def test_offsets_behind_latest_are_those_of_the_queues_as_in_the_kafka_connector() -> None:
    numbers = stream_metrics(event())
    assert numbers.min_offsets_behind_latest == 0
    assert numbers.max_offsets_behind_latest == 4
    assert numbers.avg_offsets_behind_latest == 2.0
    without = stream_metrics({})
    assert (without.min_offsets_behind_latest, without.avg_offsets_behind_latest) == (None, None)


def test_what_a_measured_source_did_not_deliver_is_missing() -> None:
    numbers = stream_metrics(event(observedMetrics={"pocketmq": {"messages": 4, "bytes": 80}}))
    assert (numbers.messages, numbers.bytes, numbers.missing) == (4, 80, 2)
    assert metrics_line(numbers).endswith("4 waiting, 2 missing")


def of_connect(**columns: int) -> dict[str, Any]:
    """An observed row as a session of Spark Connect has it."""
    fields = [{"name": name, "type": "long", "nullable": False, "metadata": {}} for name in columns]
    return {"values": list(columns.values()), "schema": {"type": "struct", "fields": fields}}


def test_rows_are_counted_batch_by_batch_also_in_a_session_of_spark_connect() -> None:
    row: Any = pytest.importorskip("pyspark.sql").Row
    observed = [{"copies": row(messages=3)}, {}, {"copies": row(messages=4), "other": row(messages=9)}]
    observed.append({"copies": row(**of_connect(messages=5))})
    reports = [SimpleNamespace(batchId=n, observedMetrics=one) for n, one in enumerate(observed)]
    query: Any = SimpleNamespace(lastProgress=None)
    counts = BatchCounts(query, "copies")
    assert counts.look() == 0
    query.recentProgress, query.lastProgress = reports[:2], reports[1]
    assert counts.look() == 3
    query.recentProgress, query.lastProgress = reports, reports[-1]
    assert counts.look() == 12
    del query.recentProgress
    assert counts.look() == 12  # without news the reports are not fetched


def test_a_measured_source_is_counted_in_a_session_of_spark_connect() -> None:
    numbers = stream_metrics(event(observedMetrics={"pocketmq": of_connect(messages=4, bytes=80)}))
    assert (numbers.messages, numbers.bytes, numbers.missing) == (4, 80, 2)


def test_nothing_is_missing_where_the_broker_filters() -> None:
    progress = event(observedMetrics={"pocketmq": {"messages": 4}})
    progress["sources"][0]["endOffset"]["filtered"] = True
    assert stream_metrics(progress).missing is None


def test_the_first_batch_begins_where_its_end_says() -> None:
    end = StreamPosition({A: 5}, start_offsets={A: 3}).to_json()
    progress = event(sources=[{"startOffset": None, "endOffset": end, "latestOffset": None}])
    assert stream_metrics(progress).requested == {"A": 2}


def test_an_event_without_sources_has_no_numbers() -> None:
    numbers = stream_metrics({})
    assert (numbers.rows, numbers.lag, numbers.requested) == (0, {}, {})
