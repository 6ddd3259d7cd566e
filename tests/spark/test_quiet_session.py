"""What a session on this machine prints on standard error: nothing if a stream is stopped, one line if it fails."""

import sys
from pathlib import Path

import pytest
from pocketmq.testing import RocketMQ

from spark.drivers import run

OF_JAVA = "WARNING: Using incubator modules: jdk.incubator.vector"
"""A line of the Java that runs Spark, which no log configuration reaches."""
STOPPED_STREAM = """
import sys, time
from pocketmq.pipeline import pocketmq_session

address, topic, folder, show_log = sys.argv[1:]
spark = pocketmq_session("quiet", master="local[1]", optimize_for_startup=True, show_log=show_log == "True")
stream = spark.readStream.format("rocketmq")
stream = stream.options(nameServer=address, subscribe=topic, startingOffsets="earliest").load()

def slowly(rows):
    for batch in rows:
        time.sleep(60)
        yield batch

def collect(batch, number):
    batch.mapInArrow(slowly, batch.schema).collect()

query = stream.writeStream.option("checkpointLocation", folder).foreachBatch(collect).start()
while not spark.sparkContext.statusTracker().getActiveJobsIds():
    time.sleep(0.1)
query.stop()
print("stopped", query.exception())

failing = spark.readStream.format("rocketmq").options(nameServer=address, subscribe="nothing", retryTimeoutMs="200")
query = failing.load().writeStream.format("noop").option("checkpointLocation", folder + "/failed").start()
try:
    query.awaitTermination()
except Exception as error:
    print(sum("Traceback" in line or "raise" in line for line in str(error).splitlines()), "nothing" in str(error))
spark.stop()
"""
FAILED = "ERROR MicroBatchExecution: Query"


@pytest.mark.on_demand
@pytest.mark.parametrize("show_log", [False, True])
def test_a_stream_that_is_stopped_within_a_batch_logs_no_stack_of_java(
    rocketmq: RocketMQ, tmp_path: Path, show_log: bool
) -> None:
    topic = rocketmq.topic("stopped", queues=1)
    rocketmq.send(topic, "one")
    argv = [sys.executable, "-c", STOPPED_STREAM, rocketmq.namesrv_addr, topic, str(tmp_path), str(show_log)]
    ran = run(argv)
    assert (ran.returncode, ran.stdout) == (0, "stopped None\n2 True\n"), ran.stderr[-3000:]
    assert "StackOverflowError" not in ran.stderr
    assert ("NativeCodeLoader" in ran.stderr) is show_log
    if not show_log:
        (failed,) = [line for line in ran.stderr.splitlines() if line != OF_JAVA]
        assert FAILED in failed
