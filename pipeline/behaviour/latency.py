"""Latency from sent to consumed, from message traces: `python -m pocketmq.pipeline.behaviour.latency --store DIR`.

Clients with tracing enabled send trace records to RMQ_SYS_TRACE_TOPIC. In a body, records end with 0x02 and fields are
separated by 0x01:

    Pub        time region group topic msgId tags keys storeHost bodyLength cost type offsetMsgId success clientHost
    SubBefore  time region group requestId msgId retryTimes keys
    SubAfter   requestId msgId cost success keys code [time group]

Latency is the time of SubBefore minus the time of Pub, for one message id. The times are from the clocks of two
machines, so a latency may be negative; those are counted. Minutes are by the time of sending.
"""

from typing import TYPE_CHECKING, Any

import click
import msgspec
from pocketmq.protocol.message.topics import TRACE_TOPIC

from ..errors import OptionError
from ..jobs.inputs import input_options, messages
from ..jobs.on_engine import check_brokers, engine_options, run_on_engine
from ..jobs.run import exit_on_user_error, run_job
from ..report.report import Report, Section
from ..sql.engine import DUCKDB
from ..sql.message_input import MessageInput
from . import journal_latency

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def build(spark: "SparkSession", source: MessageInput) -> Report:
    """The report over a trace topic."""
    records = trace_records(messages(spark, traced_in(source), "topic string, body binary")).cache()
    pubs, befores, afters = published(records), received(records), done(records)
    deliveries = (
        befores.join(pubs, ["msgId"], "left")
        .join(afters, ["requestId", "msgId"], "left")
        .selectExpr(
            *(
                "topic",
                "`group`",
                "producer",
                "msgId",
                "sentMs",
                "receivedMs",
                "receivedMs - sentMs as latencyMs",
            ),
            *("costMs", "success", "retryTimes"),
        )
        .cache()
    )
    minutes, groups = _summary(deliveries, with_minutes=True), _summary(deliveries, with_minutes=False)
    unmatched = spark.createDataFrame(
        [
            ("sent, never received", pubs.join(befores, ["msgId"], "left_anti").count(), pubs.count()),
            ("received, sending unknown", deliveries.where("sentMs is null").count(), befores.count()),
            ("received, end unknown", deliveries.where("success is null").count(), befores.count()),
            ("negative: clocks differ", deliveries.where("latencyMs < 0").count(), befores.count()),
        ],
        "what string, messages bigint, of bigint",
    )
    sections = [
        Section("groups", "Latency by group", groups),
        Section("minutes", "Latency by minute", minutes),
        Section("unmatched", "What could not be matched", unmatched),
    ]
    return Report("End-to-end latency", f"From traces of {source.name}.", sections)


def traced_in(source: MessageInput) -> MessageInput:
    """The same input with the trace topic, unless topics are named."""
    return source if source.topics else msgspec.structs.replace(source, topics=TRACE_TOPIC)


def trace_records(rows: "DataFrame") -> "DataFrame":
    """Each trace record as an array of its fields."""
    return rows.selectExpr("explode(split(decode(body, 'UTF-8'), '\\u0002')) as record").selectExpr(
        "split(record, '\\u0001') as f"
    )


def published(records: "DataFrame") -> "DataFrame":
    return records.where("f[0] = 'Pub' and size(f) >= 12").selectExpr(
        "f[5] as msgId", "f[4] as topic", "f[3] as producer", "try_cast(f[1] as bigint) as sentMs"
    ).dropDuplicates(["msgId"])  # fmt: skip


def received(records: "DataFrame") -> "DataFrame":
    return records.where("f[0] = 'SubBefore' and size(f) >= 7").selectExpr(
        *("f[5] as msgId", "f[4] as requestId", "f[3] as `group`", "try_cast(f[1] as bigint) as receivedMs"),
        "try_cast(f[6] as int) as retryTimes",
    )


def done(records: "DataFrame") -> "DataFrame":
    return records.where("f[0] = 'SubAfter' and size(f) >= 5").selectExpr(
        "f[1] as requestId", "f[2] as msgId", "try_cast(f[3] as int) as costMs", "f[4] = 'true' as success"
    )


def _summary(deliveries: "DataFrame", *, with_minutes: bool) -> "DataFrame":
    from pyspark.sql import functions as F

    keys = ["topic", "group"]
    rows = deliveries.where("sentMs is not null")
    if with_minutes:
        rows = rows.withColumn("minute", F.expr("date_trunc('minute', timestamp_millis(sentMs))"))
        keys.append("minute")
    shares = [
        F.percentile_approx("latencyMs", share).alias(f"p{share * 100:g}Ms") for share in (0.5, 0.95, 0.99)
    ]
    return rows.groupBy(*keys).agg(
        F.count("*").alias("messages"),
        *shares,
        F.max("latencyMs").alias("mostMs"),
        F.percentile_approx("costMs", 0.5).alias("costMsMedian"),
        F.sum(F.expr("cast(not coalesce(success, true) as int)")).alias("failed"),
    ).orderBy(*keys)  # fmt: skip


@click.command("latency")
@input_options
@click.option(
    "--journal",
    "journals",
    multiple=True,
    metavar="DIR",
    help="A broker's journal instead of message traces.",
)
@engine_options
def main(journals: tuple[str, ...], engine: str | None, source: MessageInput, **options: Any) -> None:
    """Latency from sent to consumed, from the trace topic (--topics names another one) or from journals."""
    if journals:
        run_on_engine(
            "latency",
            lambda here: journal_latency.build(here, journals),
            engine=engine,
            check=lambda: check_journals(source, journals),
            **options,
        )
        return
    traced = traced_in(source)
    with exit_on_user_error():
        if engine == DUCKDB:
            raise OptionError("--engine duckdb is for --journal: message traces are read by Spark")
        if source.namesrv_addr is None and not source.folders:
            raise OptionError("one of --journal DIR, --store DIR and --namesrv ADDR is required")

    def check() -> None:
        traced.check_topics()
        check_brokers(traced)

    run_job("latency", lambda spark: build(spark, traced), check=check, **options)


def check_journals(source: MessageInput, journals: tuple[str, ...]) -> None:
    """`OptionError` unless all the input is journals."""
    from ..files.journal_rows import journal_paths

    if source.store is not None or source.namesrv_addr is not None:
        raise OptionError("--journal: name no store and no broker with it")
    journal_paths(journals, "--journal")


if __name__ == "__main__":
    main()
