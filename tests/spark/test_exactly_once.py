"""From a topic into Parquet, row for row, although the driver is killed with -9 within a batch, repeatedly."""

import sys
from pathlib import Path

import pytest
from pocketmq.testing import RocketMQ
from pyspark.sql import SparkSession

from spark.drivers import driver

DRIVER = Path(__file__).with_name("parquet_driver.py")
QUEUES = 3
EACH_LIFE = 100
"""Messages sent before each start of the driver, which reads 40 in a batch."""
KILLED_IN_BATCH = (0, 1, 3)
"""The batch whose offsets are written and whose rows are not yet, at each kill."""


def numbers(folder: Path) -> set[int]:
    """The batches of one of the checkpoint's logs."""
    return {int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()}


@pytest.mark.on_demand
@pytest.mark.timeout(900)
def test_a_driver_killed_repeatedly_within_a_batch_loses_and_repeats_no_row(
    spark: SparkSession, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    topic = rocketmq.topic("killed", queues=QUEUES)
    sent = unfinished = 0
    for batch in (*KILLED_IN_BATCH, None):
        for number in range(sent, sent + EACH_LIFE):
            rocketmq.send(topic, f"m{number:05}", queue_id=number % QUEUES)
        sent += EACH_LIFE
        argv = [sys.executable, str(DRIVER), rocketmq.namesrv_addr, topic, str(tmp_path)]
        with driver(tmp_path / "driver.out", [*argv, "all" if batch is None else "forever"]) as one:
            if batch is None:
                assert one.end() == 0, one.output()[-3000:]
            else:
                one.wait_until(lambda batch=batch: batch in numbers(tmp_path / "checkpoint" / "offsets"))
        logs = tmp_path / "checkpoint"
        unfinished += bool(numbers(logs / "offsets") - numbers(logs / "commits"))
    wanted = [(one.queue_id, one.queue_offset, one.text, one.message_id) for one in rocketmq.messages(topic)]
    assert len(wanted) == sent
    rows = [tuple(row) for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
    assert sorted(rows) == sorted(wanted)
    assert unfinished, "no kill came between a batch's offsets and its commit: nothing was put to the test"
