"""Measures the pipeline: `python -m bench.pipeline [--messages N] [--floor]`, on an otherwise idle machine.

One run on two cores: the time from nothing to the first rows, store scan with all columns and with headers only, a
topic read through Spark against our reader alone, the sink against our sender alone, the shortest micro-batch. Most
figures are followed by a control, the figure of a source that does nothing (`pipeline_controls.py`): the difference
is ours. With `--floor` the exit code is 1 if a figure is below 60 % of its goal (for times: above its goal by as
much).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

FLOOR: Final = 0.6
BODY: Final = "cast(repeat('x', cast(128 + id % 256 as int)) as binary) body"
COLUMNS: Final = (
    BODY,
    "concat('k', id) keys",
    "if(id % 2 = 0, 'A', 'B') tags",
    "map('color', 'red') properties",
)
HEADERS: Final = "queueId int, queueOffset bigint, physicalOffset bigint, storeSize int"
BATCHES: Final = 80
"""Number of micro-batches; the first half warms up."""
COLD_START: Final = """
import sys, time
from pocketmq.pipeline import pocketmq_session
spark = pocketmq_session("bench", master="local[2]", memory="2g")
if sys.argv[1] == "bench-one":
    from bench.pipeline_controls import One
    spark.dataSource.register(One)
    spark.read.format("bench-one").load().collect()
else:
    reader = spark.read.format("rocketmq").option("nameServer", sys.argv[1])
    reader.option("subscribe", "SELF_TEST_TOPIC").load().collect()
print("rows", time.time(), flush=True)
"""


class Figures:
    """Prints each measurement with its goal."""

    def __init__(self) -> None:
        self.is_below = False

    def more(self, name: str, value: float, goal: float, unit: str) -> None:
        """Print a figure that should be at least its goal."""
        self._print(name, value, goal, unit, value >= goal * FLOOR)

    def less(self, name: str, value: float, goal: float, unit: str) -> None:
        """Print a figure that should be at most its goal."""
        self._print(name, value, goal, unit, value <= goal / FLOOR)

    def control(self, name: str, value: float, unit: str) -> None:
        """The same figure of Spark without us."""
        print(f"  {name:<40} {value:>9.2f} {unit}", flush=True)

    def _print(self, name: str, value: float, goal: float, unit: str, is_fine: bool) -> None:
        self.is_below |= not is_fine
        print(
            f"{name:<42} {value:>9.2f} {unit:<8} goal {goal:g}{'' if is_fine else '  below the floor'}",
            flush=True,
        )


def seconds(work: Callable[[], Any], times: int = 3) -> float:
    """The shortest of several runs, after a run that warms up."""
    work()
    durations = []
    for _ in range(times):
        started_at = time.perf_counter()
        work()
        durations.append(time.perf_counter() - started_at)
    return min(durations)


def discard(frame: Any) -> None:
    """Compute every row and column, and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()


def bare_read(namesrv_addr: str, topic: str) -> int:
    """Read and decode the messages of a topic with our reader alone."""
    from pocketmq.pipeline.brokers.broker_client import shared_client
    from pocketmq.pipeline.brokers.range_reader import RangeReader
    from pocketmq.pipeline.brokers.read_planner import Planner
    from pocketmq.pipeline.planning.topic_options import read_source_options
    from pocketmq.pipeline.records.columns import MESSAGE_COLUMNS

    options = read_source_options({"nameServer": namesrv_addr, "subscribe": topic}, is_stream=False)
    planner = Planner(shared_client(namesrv_addr), options)
    rows = 0
    for part in planner.batch():
        for records in RangeReader(planner.client, part, options).batches():
            records.columns(list(MESSAGE_COLUMNS))
            rows += len(records)
    return rows


def bare_send(namesrv_addr: str, requests: list[tuple[str, Any, int]]) -> None:
    """Send prepared bodies with our sender alone."""
    from pocketmq.pipeline.sink.sink_options import read_sink_options
    from pocketmq.pipeline.sink.task_sender import sender_for

    sender = sender_for(read_sink_options({"nameServer": namesrv_addr}))
    for topic, body, rows in requests:
        sender.send_batch(topic, body, rows)
    sender.finish()


class Requests:
    """Replaces a sender and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any, int]] = []

    def send_batch(self, topic: str, body: Any, rows: int, *, queue: Any = None) -> None:
        self.requests.append((topic, bytes(body), rows))


def requests_of(rows: Any, topic: str) -> list[tuple[str, Any, int]]:
    """The requests that the sink would send for the rows."""
    from pocketmq.pipeline.sink.sink_options import read_sink_options
    from pocketmq.pipeline.sink.task_sender import TaskSender

    requests = Requests()
    task = TaskSender(requests, read_sink_options({"nameServer": "127.0.0.1:1", "topic": topic}), "bench")  # type: ignore[arg-type]
    for batch in rows.toArrow().to_batches(10_000):
        task.send(batch)
    return requests.requests


def measure_cold_start(figures: Figures, server: Any) -> None:
    """In separate processes, so that everything is loaded again."""

    def first_rows(source: str, cache: str) -> float:
        started_at = time.time()
        ran = subprocess.run(
            [sys.executable, "-c", COLD_START, source],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "XDG_CACHE_HOME": cache},
        )
        return float(ran.stdout.split("rows ")[1]) - started_at

    with tempfile.TemporaryDirectory() as cache:
        first_rows("bench-one", cache)
        figures.less("from nothing to the first rows", first_rows(server.namesrv_addr, cache), 8, "s")
        figures.control("to the row of an empty source", first_rows("bench-one", cache), "s")
        prepare = [sys.executable, "-m", "pocketmq.cli.pipeline.prepare"]
        subprocess.run(
            prepare, stdout=subprocess.DEVNULL, check=True, env={**os.environ, "XDG_CACHE_HOME": cache}
        )
        figures.less("the same after pipeline prepare", first_rows(server.namesrv_addr, cache), 8, "s")


def measure_topics(spark: Any, figures: Figures, server: Any, messages: int) -> None:
    rows = spark.range(messages).selectExpr(*COLUMNS)

    def write() -> None:
        writer = rows.write.format("rocketmq").mode("append").option("nameServer", server.namesrv_addr)
        writer.option("topic", "Bench").save()

    requests = requests_of(spark.range(100_000).selectExpr(*COLUMNS), "Bare")
    bare = 100_000 / seconds(lambda: bare_send(server.namesrv_addr, requests))
    duration = seconds(write, times=1)
    figures.more("sink", messages / duration / 1000, bare / 1000 * 0.9, "k/s")
    total = 2 * messages

    def read() -> None:
        reader = spark.read.format("rocketmq").option("nameServer", server.namesrv_addr)
        discard(reader.option("subscribe", "Bench").load())

    through_spark = seconds(read)
    duration = seconds(lambda: bare_read(server.namesrv_addr, "Bench"), times=1)
    figures.more("topic read", total / through_spark / 1000, total / duration / 1000 * 0.9, "k/s")


def measure_store(spark: Any, figures: Figures, store: Path) -> None:
    def load(schema: str | None = None, source: str = "rocketmq-store", **options: Any) -> Any:
        reader = spark.read.format(source).options(**options)
        return (reader if schema is None else reader.schema(schema)).load(str(store))

    def grouped(frame: Any) -> None:
        frame.groupBy("queueId").agg({"queueOffset": "max"}).collect()

    count = load("queueOffset bigint").count()
    same = {"source": "bench-same", "rows": count}
    figures.more("store scan, all columns", count / seconds(lambda: discard(load())) / 1e6, 0.7, "M/s")
    figures.control("of batches decoded earlier", count / seconds(lambda: discard(load(**same))) / 1e6, "M/s")
    audit = seconds(lambda: grouped(load(HEADERS)))
    figures.more("store scan, headers, grouped", count / audit / 1e6, 1.6, "M/s")
    audit = seconds(lambda: grouped(load(HEADERS, **same)))
    figures.control("of batches decoded earlier", count / audit / 1e6, "M/s")


def micro_batch_ms(frame: Any, folder: Path) -> float:
    """The median time of a micro-batch whose rows are discarded."""
    query = frame.writeStream.format("noop").option("checkpointLocation", str(folder)).start()
    try:
        while query.isActive and len(query.recentProgress) < BATCHES:
            time.sleep(0.2)
    finally:
        query.stop()
    durations = sorted(
        progress.durationMs["triggerExecution"] for progress in query.recentProgress[BATCHES // 2 :]
    )
    return float(durations[len(durations) // 2])


def measure_batches(spark: Any, figures: Figures, server: Any, folder: Path) -> None:
    """The shortest micro-batch: one message from each queue."""
    reader = spark.readStream.format("rocketmq").option("nameServer", server.namesrv_addr)
    frame = reader.options(subscribe="Bench", startingOffsets="earliest", maxOffsetsPerTrigger="4").load()
    figures.less("micro-batch", micro_batch_ms(frame, folder / "ours"), 120, "ms")
    steps = spark.readStream.format("bench-steps").load()
    figures.control("of a source of numbers", micro_batch_ms(steps, folder / "steps"), "ms")


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the pipeline.")
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--floor", action="store_true")
    arguments = parser.parse_args()
    from pocketmq.pipeline import pocketmq_session
    from pocketmq.testing import EmbeddedServer

    from bench.pipeline_controls import SameBatches, Steps

    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="pocketmq-bench-") as folder:
        store = Path(folder) / "store"
        with EmbeddedServer(store=store) as server:
            measure_cold_start(figures, server)
            spark = pocketmq_session("bench", master="local[2]", memory="2g")
            for source in (SameBatches, Steps):
                spark.dataSource.register(source)
            measure_topics(spark, figures, server, arguments.messages)
            measure_batches(spark, figures, server, Path(folder))
        measure_store(spark, figures, store)
        spark.stop()
    return 1 if arguments.floor and figures.is_below else 0


if __name__ == "__main__":
    sys.exit(main())
