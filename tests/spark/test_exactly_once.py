"""From a topic into Parquet, row for row, although the driver is killed with -9 within a batch, repeatedly."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.testing import RocketMQ

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

DRIVER = Path(__file__).with_name("parquet_driver.py")
LIMIT_SECONDS = 240.0
QUEUES = 3
EACH_LIFE = 100
"""Messages sent before each start of the driver, which reads 40 in a batch."""
KILLED_IN_BATCH = (0, 1, 3)
"""The batch whose offsets are written and whose rows are not yet, at each kill."""


@contextlib.contextmanager
def driver(rocketmq: RocketMQ, topic: str, folder: Path, until: str) -> Iterator[subprocess.Popen[bytes]]:
    """A driver in its own process group, with its JVM; killed at the end at the latest."""
    argv = [sys.executable, str(DRIVER), rocketmq.namesrv_addr, topic, str(folder), until]
    with (folder / "driver.out").open("ab") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def numbers(folder: Path) -> set[int]:
    """The batches of one of the checkpoint's logs."""
    return {int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()}


def wait_for_batch(process: subprocess.Popen[bytes], folder: Path, batch: int) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while batch not in numbers(folder / "checkpoint" / "offsets"):
        output = (folder / "driver.out").read_text(errors="replace")[-3000:]
        assert process.poll() is None, output
        assert time.monotonic() < deadline, output
        time.sleep(0.002)


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
        with driver(rocketmq, topic, tmp_path, "all" if batch is None else "forever") as process:
            if batch is None:
                assert process.wait(LIMIT_SECONDS) == 0, (tmp_path / "driver.out").read_text()[-3000:]
            else:
                wait_for_batch(process, tmp_path, batch)
        logs = tmp_path / "checkpoint"
        unfinished += bool(numbers(logs / "offsets") - numbers(logs / "commits"))
    wanted = [(one.queue_id, one.queue_offset, one.text, one.message_id) for one in rocketmq.messages(topic)]
    assert len(wanted) == sent
    rows = [tuple(row) for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
    assert sorted(rows) == sorted(wanted)
    assert unfinished, "no kill came between a batch's offsets and its commit: nothing was put to the test"
