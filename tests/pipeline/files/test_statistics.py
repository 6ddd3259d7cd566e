"""Statistics are counts of the records by topic, queue, tag and minute, or by fewer of them."""

import collections
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.tables.files import aggregates
from pocketmq.pipeline.tables.files.aggregates import GROUPS, scan_statistics
from pocketmq.pipeline.tables.files.scan import ScanOptions

from pipeline.files.test_runs import MESSAGES
from pipeline.store_files import Message, whole_log, write_log


def scanned(
    messages: list[Message], most: int, names: list[str]
) -> tuple[list[Message], list[dict[str, Any]]]:
    """What was written, and the rows of a scan that keeps at most so many groups."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregates, "MAX_GROUPS", most)
        written = write_log(Path(folder), messages)
        batches = list(scan_statistics(whole_log(Path(folder)), ScanOptions(decode_rows=5), names))
    return written, pa.Table.from_batches(batches).to_pylist()


@settings(max_examples=40)
@given(MESSAGES, st.sets(st.sampled_from(GROUPS)), st.integers(1, 40))
def test_counts_are_those_of_a_loop_over_the_records(
    messages: list[Message], groups: set[str], most: int
) -> None:
    names = [name for name in GROUPS if name in groups]
    written, rows = scanned(messages, most, names)
    expected: collections.Counter[tuple[object, ...]] = collections.Counter()
    for number, message in enumerate(written):
        minute = (1_700_000_000_000 + 20_000 * number) // 60_000 * 60
        key = {
            "topic": message.topic,
            "queueId": message.queue_id,
            "tags": "AB"[number % 2],
            "minute": minute,
        }
        for what, value in (("messages", 1), ("bytes", message.size), ("bodyBytes", number % 7)):
            expected[(*(key[name] for name in names), what)] += value
    found: collections.Counter[tuple[object, ...]] = collections.Counter()
    for row in rows:
        row["minute"] = None if row["minute"] is None else int(row["minute"].timestamp())
        assert all(row[name] is None for name in GROUPS if name not in names)
        for what in ("messages", "bytes", "bodyBytes"):
            found[(*(row[name] for name in names), what)] += row[what]
    assert +found == +expected


@settings(max_examples=40)
@given(MESSAGES, st.integers(1, 40), st.booleans())
def test_extremes_are_those_of_a_loop_over_the_records(
    messages: list[Message], most: int, by_topic: bool
) -> None:
    names = ["largest", "firstTime", "lastTime", *(["topic"] if by_topic else [])]
    written, rows = scanned(messages, most, names)
    expected: dict[str | None, list[tuple[int, int]]] = {}
    for number, message in enumerate(written):
        values = (message.size, 1_700_000_000 + 20 * number)
        expected.setdefault(message.topic if by_topic else None, []).append(values)
    found: dict[str | None, list[tuple[int, int, int]]] = {}
    for row in rows:
        times = (int(row["firstTime"].timestamp()), int(row["lastTime"].timestamp()))
        found.setdefault(row["topic"], []).append((row["largest"], *times))
    for topic, of_topic in expected.items():
        largest, first, last = zip(*found.pop(topic), strict=True)
        assert (max(largest), min(first), max(last)) == (
            max(size for size, _ in of_topic),
            of_topic[0][1],
            of_topic[-1][1],
        )
    assert found == {}
