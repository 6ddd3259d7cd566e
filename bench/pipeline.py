"""How fast is the pipeline? `python -m bench.pipeline [--messages N] [--floor]`, on a machine that does nothing else.

One run, two cores: store scan with all columns and with headers alone, a topic read through Spark against our bare
reader, the sink against our bare sender, the shortest micro-batch, and the time from nothing to the first rows. With
`--floor` the exit code is 1 where a figure is below 60 % of its goal (or beyond it by as much, for times).
"""

import argparse
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


class Figures:
    """What was measured, with its goal."""

    def __init__(self) -> None:
        self.is_below = False

    def more(self, what: str, value: float, goal: float, unit: str) -> None:
        """A figure that should be at least its goal."""
        self._say(what, value, goal, unit, value >= goal * FLOOR)

    def less(self, what: str, value: float, goal: float, unit: str) -> None:
        """A figure that should be at most its goal."""
        self._say(what, value, goal, unit, value <= goal / FLOOR)

    def _say(self, what: str, value: float, goal: float, unit: str, is_fine: bool) -> None:
        self.is_below |= not is_fine
        print(
            f"{what:<42} {value:>9.2f} {unit:<8} goal {goal:g}{'' if is_fine else '  below the floor'}",
            flush=True,
        )


def seconds(work: Callable[[], Any], times: int = 3) -> float:
    """The shortest of some runs after one that warms up."""
    work()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def discard(frame: Any) -> None:
    """Compute every row and column, and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()


def bare_read(namesrv_addr: str, topic: str) -> int:
    """The messages of a topic, decoded, by our reader alone."""
    from pocketmq.pipeline.columns import MESSAGE_COLUMNS
    from pocketmq.pipeline.options import read_source_options
    from pocketmq.pipeline.planner import Planner
    from pocketmq.pipeline.range_reader import RangeReader
    from pocketmq.pipeline.wire import wire

    options = read_source_options({"nameServer": namesrv_addr, "subscribe": topic}, is_stream=False)
    planner = Planner(wire(namesrv_addr), options)
    rows = 0
    for one in planner.split(planner.batch()):
        for records in RangeReader(planner.wire, one, options).batches():
            records.columns(list(MESSAGE_COLUMNS))
            rows += len(records)
    return rows


def measure_topics(spark: Any, figures: Figures, server: Any, messages: int) -> None:
    rows = spark.range(messages).selectExpr(*COLUMNS)

    def write() -> None:
        writer = rows.write.format("rocketmq").mode("append").option("nameServer", server.namesrv_addr)
        writer.option("topic", "Bench").save()

    taken = seconds(write, times=1)
    figures.more("sink", messages / taken / 1000, 100, "k/s")
    total = 2 * messages

    def read() -> None:
        reader = spark.read.format("rocketmq").option("nameServer", server.namesrv_addr)
        discard(reader.option("subscribe", "Bench").load())

    through_spark = seconds(read)
    bare = seconds(lambda: bare_read(server.namesrv_addr, "Bench"), times=1)
    figures.more("topic read", total / through_spark / 1000, total / bare / 1000 * 0.9, "k/s")


def measure_store(spark: Any, figures: Figures, store: Path) -> None:
    def load(schema: str | None = None) -> Any:
        reader = spark.read.format("rocketmq-store")
        return (reader if schema is None else reader.schema(schema)).load(str(store))

    count = load("queueOffset bigint").count()
    figures.more("store scan, all columns", count / seconds(lambda: discard(load())) / 1e6, 0.7, "M/s")
    audit = seconds(lambda: load(HEADERS).groupBy("queueId").agg({"queueOffset": "max"}).collect())
    figures.more("store scan, headers, grouped", count / audit / 1e6, 1.6, "M/s")


def measure_batches(spark: Any, figures: Figures, server: Any, folder: Path) -> None:
    """The shortest micro-batch: one message at a time, nothing done with it."""
    reader = spark.readStream.format("rocketmq").option("nameServer", server.namesrv_addr)
    frame = (
        reader.option("subscribe", "Bench")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "4")
        .load()
    )
    query = frame.writeStream.format("noop").option("checkpointLocation", str(folder)).start()
    try:
        while len(query.recentProgress) < 40:
            time.sleep(0.2)
    finally:
        query.stop()
    taken = sorted(progress.durationMs["triggerExecution"] for progress in query.recentProgress[10:])
    figures.less("micro-batch", taken[len(taken) // 2], 120, "ms")


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast is the pipeline?")
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--floor", action="store_true")
    given = parser.parse_args()
    begun = time.perf_counter()
    from pocketmq.pipeline.session import pocketmq_session
    from pocketmq.testing import EmbeddedServer

    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="pocketmq-bench-") as folder:
        store = Path(folder) / "store"
        with EmbeddedServer(store=store) as server:
            spark = pocketmq_session("bench", master="local[2]", memory="2g")
            reader = spark.read.format("rocketmq").option("nameServer", server.namesrv_addr)
            reader.option("subscribe", "SELF_TEST_TOPIC").load().collect()
            figures.less("from nothing to the first rows", time.perf_counter() - begun, 8, "s")
            measure_topics(spark, figures, server, given.messages)
            measure_batches(spark, figures, server, Path(folder) / "checkpoint")
        measure_store(spark, figures, store)
        spark.stop()
    return 1 if given.floor and figures.is_below else 0


if __name__ == "__main__":
    sys.exit(main())
