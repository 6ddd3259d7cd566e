"""Measures the pipeline: `python -m bench.pipeline [--messages N] [--floor] [--parts LIST] [--store DIR]`.

One run on two cores: the time from nothing to the first rows (`start`); a topic read through Spark against our reader
alone, and from its broker's files, the sink against our sender alone, both against Spark's own hand-over (`topics`);
the shortest micro-batch (`batches`); store scans with lean columns, all columns and headers only, counts and an audit
(`store`). The broker has a process of its own. Most figures are followed by a control, the figure of a source that does
nothing (`pipeline_controls.py`) or of the bare client: the difference is ours. A figure and its control run in turns,
the best round of each counts. Behind a figure stands the processor time a message, of the JVM and its Python workers
together, which other work on the machine disturbs less. With `--floor` the exit code is 1 if a figure is below 60 % of
its goal (for times: above its goal by as much).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.frame import Served, cpu_seconds, served, tree_seconds

FLOOR: Final = 0.6
PARTS: Final = ("start", "topics", "batches", "store")
BODY: Final = "cast(repeat('x', cast(128 + id % 256 as int)) as binary) body"
COLUMNS: Final = (
    BODY,
    "concat('k', id) keys",
    "if(id % 2 = 0, 'A', 'B') tags",
    "map('color', 'red') properties",
)
HEADERS: Final = "queueId int, queueOffset bigint, physicalOffset bigint, storeSize int"
BARE_ROWS: Final = 300_000
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

    def more(self, name: str, value: float, goal: float, unit: str, microseconds: float) -> None:
        """Print a figure that should be at least its goal."""
        self._print(name, value, goal, unit, value >= goal * FLOOR, f"{microseconds:.2f} us")

    def less(self, name: str, value: float, goal: float, unit: str) -> None:
        """Print a figure that should be at most its goal."""
        self._print(name, value, goal, unit, value <= goal / FLOOR)

    def control(self, name: str, value: float, unit: str, microseconds: float | None = None) -> None:
        """The same figure of Spark without us."""
        processor = "" if microseconds is None else f"{microseconds:>19.2f} us"
        print(f"  {name:<40} {value:>9.2f} {unit:<8}{processor}", flush=True)

    def together(self, name: str, whole: "Best", pieces: "list[tuple[Best, int]]", count: int) -> None:
        """How much of the processor time of the whole, broker included, is that of its pieces measured alone."""
        alone = sum(best.all_seconds / rows for best, rows in pieces) * 1e6
        all_of_it = whole.all_seconds / count * 1e6
        print(f"  {name:<40} {alone:>9.2f} us of {all_of_it:.2f}, {alone / all_of_it:.0%}", flush=True)

    def _print(
        self, name: str, value: float, goal: float, unit: str, is_fine: bool, processor: str = ""
    ) -> None:
        self.is_below |= not is_fine
        print(
            f"{name:<42} {value:>9.2f} {unit:<8} goal {goal:<7.3g} {processor}{'' if is_fine else '  below the floor'}",
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


@dataclass(frozen=True)
class Best:
    """The best round of some work."""

    seconds: float
    processor_seconds: float
    all_seconds: float
    """Processor time, that of this process and the broker's included."""

    def per_second(self, count: int) -> float:
        return count / self.seconds

    def microseconds(self, count: int) -> float:
        """Processor time of one of `count`."""
        return self.processor_seconds / count * 1e6


def in_turns(*works: Callable[[], Any], times: int = 3, broker: int | None = None) -> list[Best]:
    """Each work once to warm up, then all in turns, `times` rounds. `broker` is the broker's process id."""
    rounds: list[list[Best]] = [[] for _ in works]
    for turn in range(times + 1):
        for work, best in zip(works, rounds, strict=True):
            others = time.process_time() + (cpu_seconds(broker) if broker else 0)
            before, started_at = tree_seconds("java"), time.perf_counter()
            work()
            elapsed, processor = time.perf_counter() - started_at, tree_seconds("java") - before
            others = time.process_time() + (cpu_seconds(broker) if broker else 0) - others
            if turn:
                best.append(Best(elapsed, processor, processor + others))
    return [
        Best(
            min(done.seconds for done in best),
            min(done.processor_seconds for done in best),
            min(done.all_seconds for done in best),
        )
        for best in rounds
    ]


def discard(frame: Any) -> None:
    """Compute every row and column, and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()


def bare_read(namesrv_addr: str, topic: str) -> int:
    """Read and decode the messages of a topic with our reader alone, pulls in flight."""
    from pocketmq.pipeline.tables.brokers.broker_client import shared_client
    from pocketmq.pipeline.tables.brokers.range_reader import RangeReader
    from pocketmq.pipeline.tables.brokers.read_planner import Planner
    from pocketmq.pipeline.tables.planning.topic_options import read_source_options
    from pocketmq.pipeline.tables.records.columns import LEAN_COLUMNS

    options = read_source_options({"nameServer": namesrv_addr, "subscribe": topic}, is_stream=False)
    planner = Planner(shared_client(namesrv_addr), options)
    rows = 0
    for part in planner.batch():
        for records in RangeReader(planner.client, part, options).batches():
            records.columns(LEAN_COLUMNS)
            rows += len(records)
    return rows


def bare_send(namesrv_addr: str, requests: list[tuple[str, Any, int]]) -> None:
    """Send prepared bodies with our sender alone."""
    from pocketmq.pipeline.spark.sink.sink_options import read_sink_options
    from pocketmq.pipeline.spark.sink.task_sender import sender_for

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
    from pocketmq.pipeline.spark.sink.sink_options import read_sink_options
    from pocketmq.pipeline.spark.sink.task_sender import TaskSender

    requests = Requests()
    task = TaskSender(requests, read_sink_options({"nameServer": "127.0.0.1:1", "topic": topic}), "bench")  # type: ignore[arg-type]
    for batch in rows.toArrow().to_batches(10_000):
        task.send(batch)
    return requests.requests


def measure_cold_start(figures: Figures, namesrv_addr: str) -> None:
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
        figures.less("from nothing to the first rows", first_rows(namesrv_addr, cache), 8, "s")
        figures.control("to the row of an empty source", first_rows("bench-one", cache), "s")
        prepare = [sys.executable, "-m", "pocketmq.cli.pipeline.prepare"]
        subprocess.run(
            prepare, stdout=subprocess.DEVNULL, check=True, env={**os.environ, "XDG_CACHE_HOME": cache}
        )
        figures.less("the same after pipeline prepare", first_rows(namesrv_addr, cache), 8, "s")


def rows_of(spark: Any, messages: int) -> Any:
    """The rows that the sink sends."""
    return spark.range(messages).selectExpr(*COLUMNS)


def fill(spark: Any, namesrv_addr: str, messages: int) -> None:
    """Write messages with the sink."""
    writer = rows_of(spark, messages).write.format("rocketmq").mode("append")
    writer.options(nameServer=namesrv_addr, topic="Bench").save()


def measure_topics(spark: Any, figures: Figures, server: Served, store: Path, messages: int) -> None:
    measure_sink(spark, figures, server, messages)
    namesrv_addr = server.namesrv
    total = bare_read(namesrv_addr, "Bench")

    def read(**options: str) -> None:
        reader = spark.read.format("rocketmq").options(nameServer=namesrv_addr, subscribe="Bench", **options)
        discard(reader.load())

    topic, same, bare, files = in_turns(
        read,
        lambda: discard(spark.read.format("bench-same").option("rows", total).load(str(store))),
        lambda: bare_read(namesrv_addr, "Bench"),
        lambda: read(storePath=str(store)),
        times=2,
        broker=server.pid,
    )
    wanted = bare.per_second(total) / 1000
    figures.more("topic read", topic.per_second(total) / 1000, wanted * 0.9, "k/s", topic.microseconds(total))
    figures.control("of our reader alone", wanted, "k/s")
    figures.control(
        "of batches decoded earlier", same.per_second(total) / 1000, "k/s", same.microseconds(total)
    )
    figures.together("processor of the two together", topic, [(bare, total), (same, total)], total)
    figures.more(
        "the same with storePath", files.per_second(total) / 1000, wanted, "k/s", files.microseconds(total)
    )


def measure_sink(spark: Any, figures: Figures, server: Served, messages: int) -> None:
    requests = requests_of(rows_of(spark, BARE_ROWS), "Bare")
    sink, dropped, bare = in_turns(
        lambda: fill(spark, server.namesrv, messages),
        lambda: rows_of(spark, messages).write.format("bench-discard").mode("append").save(),
        lambda: bare_send(server.namesrv, requests),
        times=2,
        broker=server.pid,
    )
    wanted = bare.per_second(BARE_ROWS) / 1000
    figures.more("sink", sink.per_second(messages) / 1000, wanted * 0.9, "k/s", sink.microseconds(messages))
    figures.control("of our sender alone", wanted, "k/s")
    per_second = dropped.per_second(messages) / 1000
    figures.control("of rows that are dropped", per_second, "k/s", dropped.microseconds(messages))
    figures.together(
        "processor of the two together", sink, [(bare, BARE_ROWS), (dropped, messages)], messages
    )


def measure_store(spark: Any, figures: Figures, store: Path) -> None:
    def load(schema: str | None = None, source: str = "rocketmq-store", **options: Any) -> Any:
        reader = spark.read.format(source).options(**options)
        return (reader if schema is None else reader.schema(schema)).load(str(store))

    def grouped(frame: Any) -> None:
        frame.groupBy("queueId").agg({"queueOffset": "max"}).collect()

    def compare(name: str, goal: float, ours: Callable[[], None], control: Callable[[], None]) -> None:
        mine, other = in_turns(ours, control)
        figures.more(name, mine.per_second(count) / 1e6, goal, "M/s", mine.microseconds(count))
        of_control = "of batches decoded earlier"
        figures.control(of_control, other.per_second(count) / 1e6, "M/s", other.microseconds(count))

    count = load("queueOffset bigint").count()
    same = {"source": "bench-same", "rows": count}
    compare("store scan, lean columns", 1.0, lambda: discard(load()), lambda: discard(load(**same)))
    everything = {"columns": "all"}
    compare(
        "store scan, all columns",
        0.6,
        lambda: discard(load(**everything)),
        lambda: discard(load(**everything, **same)),
    )
    compare(
        "store scan, headers, grouped",
        2.2,
        lambda: grouped(load(HEADERS)),
        lambda: grouped(load(HEADERS, **same)),
    )
    (counted,) = in_turns(
        lambda: (
            load("topic string, messages bigint", table="stats").groupBy("topic").sum("messages").collect()
        )
    )
    figures.more("counts by topic", counted.per_second(count) / 1e6, 5, "M/s", counted.microseconds(count))
    (audited,) = in_turns(lambda: audit(spark, store), times=1)
    figures.more("audit", audited.per_second(count) / 1e6, 0.67, "M/s", audited.microseconds(count))
    print(f"  the audit took {audited.seconds:.1f} s for {count:,} messages", flush=True)


def audit(spark: Any, store: Path) -> None:
    """The questions of `pocketmq pipeline audit`, every body checked."""
    from pocketmq.pipeline.jobs.answers.audit import build
    from pocketmq.pipeline.jobs.sql.spark_engine import SparkEngine

    for section in build(SparkEngine(spark), str(store)).sections:
        section.frame.rows()
    spark.catalog.clearCache()


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


def measure_batches(spark: Any, figures: Figures, namesrv_addr: str, folder: Path) -> None:
    """The shortest micro-batch: one message from each queue."""
    reader = spark.readStream.format("rocketmq").option("nameServer", namesrv_addr)
    frame = reader.options(subscribe="Bench", startingOffsets="earliest", maxOffsetsPerTrigger="4").load()
    steps = spark.readStream.format("bench-steps").load()
    ours, control = [], []
    for turn in range(2):
        ours.append(micro_batch_ms(frame, folder / f"ours-{turn}"))
        control.append(micro_batch_ms(steps, folder / f"steps-{turn}"))
    figures.less("micro-batch", min(ours), min(control), "ms")
    figures.control("of a source of numbers", min(control), "ms")


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the pipeline.")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"comma-separated, of {', '.join(PARTS)}")
    parser.add_argument(
        "--store", type=Path, metavar="DIR", help="scan this store, not the one that is written"
    )
    parser.add_argument("--floor", action="store_true")
    arguments = parser.parse_args()
    parts = set(arguments.parts.split(","))
    if parts - set(PARTS):
        parser.error(f"--parts must be of {', '.join(PARTS)}, got {arguments.parts}")
    from pocketmq.pipeline import pocketmq_session

    from bench.pipeline_controls import Discard, SameBatches, Steps

    figures = Figures()
    print(f"load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="pocketmq-bench-") as folder:
        store = Path(folder) / "store"
        with served(store) as server:
            if "start" in parts:
                measure_cold_start(figures, server.namesrv)
            spark = pocketmq_session("bench", master="local[2]", memory="2g")
            for source in (Discard, SameBatches, Steps):
                spark.dataSource.register(source)
            if "topics" in parts:
                measure_topics(spark, figures, server, store, arguments.messages)
            elif arguments.store is None:
                fill(spark, server.namesrv, 3 * arguments.messages)
            if "batches" in parts:
                measure_batches(spark, figures, server.namesrv, Path(folder))
        if "store" in parts:
            measure_store(spark, figures, arguments.store or store)
        spark.stop()
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 1 if arguments.floor and figures.is_below else 0


if __name__ == "__main__":
    sys.exit(main())
