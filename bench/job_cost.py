"""Measures what a Spark job costs before its first message: `python -m bench.job_cost [--rounds N] [--times N]`.

A topic of 3,000 messages is read and written in one session; in a session of its own, a source without any of our code
gives as many empty rows in two tasks, and a writer drops as many. The figure is processor time, of the JVM and of its
Python processes, so other work on the machine disturbs it little: that of the first job of a session (processes start
and import) and the lower quartile of later ones (Spark uses its processes again). The difference is ours.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from bench.frame import processor_seconds, served

MESSAGES = 3000
TASKS = 2
COLUMNS = "topic string, queueId int, queueOffset bigint, keys string, body binary, storeTimestamp timestamp"
OURS, CONTROL = "ours", "control"


class Nothing(DataSource):
    """Empty rows, and a writer that drops its rows. Pickled by value: no process imports more than Spark does."""

    @classmethod
    def name(cls) -> str:
        return "bench-nothing"

    def schema(self) -> str:
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return _NothingReader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return _NothingWriter()


class _NothingReader(DataSourceReader):
    def __init__(self, schema: StructType) -> None:
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(TASKS)]

    def read(self, partition: InputPartition) -> Any:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self._schema, timezone="UTC")
        arrays = [pa.nulls(MESSAGES // TASKS, field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class _NothingWriter(DataSourceArrowWriter):
    def write(self, iterator: Any) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def measure(name: str, work: Callable[[], Any], times: int) -> None:
    """Print (first, later) processor seconds of the JVM and of Python."""
    costs = []
    for _ in range(1 + 3 + times):
        java, python = processor_seconds("java")
        work()
        time.sleep(0.1)  # the workers collect their garbage after they have answered
        java_after, python_after = processor_seconds("java")
        costs.append((java_after - java, python_after - python))
    later = [sorted(column)[times // 4] for column in zip(*costs[4:], strict=True)]
    (first_java, first_python), (java, python) = costs[0], later
    print(
        f"{name:<28} first {first_java:.2f} + {first_python:.2f}   later {java:.3f} + {python:.3f} s",
        flush=True,
    )


def run(kind: str, times: int) -> None:
    from pocketmq.pipeline import pocketmq_session

    from bench.pipeline import discard, rows_of

    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "store") as server:
        spark = pocketmq_session("bench", master="local[2]", memory="2g")
        spark.dataSource.register(Nothing)
        formats = {OURS: "rocketmq", CONTROL: "bench-nothing"}
        options = {"nameServer": server.namesrv} if kind == OURS else {}

        def write(topic: str) -> None:
            named = {**options, "topic": topic} if options else {}
            rows_of(spark, MESSAGES).write.format(formats[kind]).mode("append").options(**named).save()

        def read() -> None:
            named = {**options, "subscribe": "Read"} if options else {}
            discard(spark.read.format(formats[kind]).options(**named).load())

        measure(f"{kind}: sink", lambda: write("Written"), times)
        write("Read")
        measure(f"{kind}: read", read, times)
        spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a Spark job costs before its first message.")
    parser.add_argument("--rounds", type=int, default=2, help="sessions of each kind, in turns")
    parser.add_argument("--times", type=int, default=16, help="jobs of a session that count as later ones")
    parser.add_argument("--only", choices=(OURS, CONTROL), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        run(arguments.only, arguments.times)
        return
    print(f"processor time, JVM + Python; load average {os.getloadavg()[0]:.1f}", flush=True)
    for _ in range(arguments.rounds):
        for kind in (OURS, CONTROL):
            command = [sys.executable, "-m", "bench.job_cost", "--only", kind]
            subprocess.run([*command, "--times", str(arguments.times)], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
