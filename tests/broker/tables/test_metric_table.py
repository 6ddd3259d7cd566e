"""MetricTable: counts by topic, and a data version that only changes increase."""

from pathlib import Path

from pocketmq.broker.tables.metric_table import MetricTable
from pocketmq.store import VirtualClock


def test_reading_the_table_does_not_change_its_data_version(tmp_path: Path, clock: VirtualClock) -> None:
    table = MetricTable(tmp_path, clock.now_ms, "timingCount")
    table.add("orders", 1)
    before = table.data_version
    clock.advance(1000)
    first = table.to_json()
    clock.advance(1000)
    assert table.to_json() == first
    assert table.data_version == before
    table.add("orders", 1)
    assert table.to_json() != first
