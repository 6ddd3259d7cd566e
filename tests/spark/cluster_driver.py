"""A driver on a cluster. Not a test.

    python cluster_driver.py MASTER NAMESRV_ADDR TOPIC FOLDER read|write|stream|slow COUNT

`test_cluster.py` runs it. It prints what it found as JSON, after `FOUND`.

    read     a batch read in several tasks: bodies, and the processes that read
    write    COUNT rows into TOPIC, in order by broker and queue
    stream   a stream into Parquet files of FOLDER until COUNT rows are there
    slow     a batch read of one message a task, which takes its time, into Parquet files of FOLDER
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from pocketmq.pipeline import pocketmq_session
from pocketmq.pipeline.spark.session.progress import commit_progress
from pyspark.sql import DataFrame, SparkSession

TASK_SECONDS = 0.5


def slowly(rows: Iterator[Any]) -> Iterator[tuple[str]]:
    time.sleep(TASK_SECONDS)
    for row in rows:
        yield (row.text,)


def with_process(rows: Iterator[Any]) -> Iterator[tuple[str, int]]:
    """Each row with the process id of the executor that reads it."""
    for row in rows:
        yield row.text, os.getppid()


def read(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    reader = spark.read.format("rocketmq").options(**options, maxRecordsPerPartition="5")
    return reader.load().selectExpr("cast(body as string) text")


def main() -> None:
    master, namesrv_addr, topic, folder, way, count = sys.argv[1:]
    spark = pocketmq_session("cluster", master=master)
    broker = {"rocketmq.namesrv.addr": namesrv_addr, "subscribe": topic}
    found: dict[str, Any] = {}
    if way == "read":
        rows = read(spark, broker).rdd.mapPartitions(with_process).collect()
        found = {"bodies": sorted(text for text, _ in rows), "executors": len({pid for _, pid in rows})}
    elif way == "write":
        wanted = spark.range(0, int(count), 1, 4).selectExpr(
            "cast(id as string) body", "concat('b', id % 2) brokerName", "cast(id % 4 div 2 as int) queueId"
        )
        writer = wanted.write.format("rocketmq").mode("append").option("topic", topic)
        writer.option("rocketmq.namesrv.addr", namesrv_addr).option("batchRows", "3").save()
    elif way == "slow":
        frame = spark.read.format("rocketmq").options(**broker, maxRecordsPerPartition="1").load()
        rows = frame.selectExpr("cast(body as string) text").rdd.mapPartitions(slowly)
        print("BEGUN", flush=True)
        spark.createDataFrame(rows, "text string").write.parquet(f"{folder}/slow")
    else:
        source = spark.readStream.format("rocketmq").options(**broker, startingOffsets="earliest").load()
        writer = source.selectExpr("cast(body as string) text").writeStream.format("parquet")
        writer = writer.option("path", f"{folder}/rows").option("checkpointLocation", f"{folder}/checkpoint")
        read_rows = 0

        def add(rows: int) -> None:
            nonlocal read_rows
            read_rows += rows
            print(f"ROWS {read_rows}", flush=True)

        with commit_progress(spark, on_metrics=lambda numbers: add(numbers.rows)):
            query = writer.queryName("cluster").trigger(processingTime="0 seconds").start()
            while read_rows < int(count) and query.isActive:
                query.awaitTermination(1)
            query.stop()
        found = {"error": str(query.exception() or "")}
    print("FOUND " + json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
