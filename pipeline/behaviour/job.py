"""What clients really did, from a broker's journal: `python -m pocketmq.pipeline.behaviour.job JOURNAL... --html FILE`.

Per group: who was a member when, who owned which queue when, with gaps and double owners; where each queue was first
read and which rule decided; pull rate, share of empty pulls, how long pulls were held, how often offsets were
committed and heartbeats came, retries, slow consumers. Several journals (one of Java clients of 4.9, one of 5.x, one of
ours) stand side by side. The judgement over runs of pulls is `ownership.py`, the drawing `drawing.py`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from pocketmq.protocol.languages import version_name

from ..jobs.run import output_options, run_job
from ..report.output import Report, Section
from .drawing import draw
from .ownership import DoubleOwner, Gap, Run, cut_at_next, double_owners, gaps, merged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PULLS: Final = (11, 361)
QUERY_OFFSET, COMMIT, SEND_BACK, HEARTBEAT, UNREGISTER = 14, 15, 36, 34, 35
NOT_FOUND: Final = 19
QUERY_NOT_FOUND: Final = 22
HELD_MICROS: Final = 50_000
"""A pull answered later than this waited for messages: one that finds some is answered in a millisecond or two."""
SLOW_LAG: Final = 1000
"""Messages a client leaves unread in its queues at the end, from which on it is called slow."""
DEFAULT_GAP_SECONDS: Final = 5.0
CLIENTS_NOTE: Final = (
    f"Empty: the share of pulls that brought nothing. Held: the share that waited at the broker for messages, for "
    f"{HELD_MICROS // 1000} ms or more, and how long. Commit and heartbeat: the usual time between two of them. Send "
    "backs: messages given back to be retried. Unread: what was left in its queues when it pulled last."
)
OWNERS_NOTE: Final = "From a client's first pull of a queue to its last, while no other pulled from it."
POSITIONS_NOTE: Final = (
    "Answer: the offset the broker gave when the client asked where its group stands. First pull: where the client "
    "then began. Max offset: where the queue ended at that moment."
)
_CONSUMER: Final = "struct<groupName:string,consumeFromWhere:string,messageModel:string>"
_HEARTBEAT_SCHEMA: Final = f"clientID string, consumerDataSet array<{_CONSUMER}>"


def build(spark: "SparkSession", paths: Sequence[str], *, gap_seconds: float = DEFAULT_GAP_SECONDS) -> Report:
    """The report over journals in folders or files; each path is one side of the comparison."""
    entries = load(spark, paths).cache()
    pulls = pulls_of(entries).cache()
    runs = runs_of(pulls)
    doubles, idle = double_owners(runs), gaps(runs, gap_seconds)
    positions = first_positions(entries, pulls)
    # Both are asked for twice: for the findings and the drawing, and as tables.
    members, clients = members_of(entries).cache(), clients_of(entries, pulls).cache()
    dropped = entries.where("kind = 'dropped'").selectExpr("coalesce(sum(count), 0) n").collect()[0].n
    told = findings_of(doubles, idle, clients, dropped)
    name_of = dict(zip(paths, _side_names(paths), strict=True))
    side_of = {journal: name_of[path] for journal, path in _sides(paths).items()} if len(paths) > 1 else {}
    drawn = draw(runs, doubles, idle, [row.asDict() for row in members.collect()], side_of)
    return Report(
        "Client behaviour",
        f"From {', '.join(paths)}.",
        [
            Section("clients", "Clients, side by side", clients, CLIENTS_NOTE),
            Section("members", "Members of the groups", members),
            Section(
                "owners", "Owners of the queues, with times", owners_of(spark, runs, doubles), OWNERS_NOTE
            ),
            Section("positions", "First positions, and the rule that decided", positions, POSITIONS_NOTE),
            Section("requests", "Requests by code", requests_of(entries)),
        ],
        told,
        drawn,
    )


def _sides(paths: Sequence[str]) -> dict[str, str]:
    from ..journal.rows import sides_of

    return sides_of(paths)


def load(spark: "SparkSession", paths: Sequence[str]) -> "DataFrame":
    """Entries of all journals with a client id on each that can have one: a connection is one client's, known from its
    first heartbeat on, so the requests before it are given the same."""
    from pyspark.sql import functions as F

    frames = [
        spark.read.format("pocketmq-journal").load(path).withColumn("source", F.lit(name))
        for path, name in zip(paths, _side_names(paths), strict=True)
    ]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    connections = whole.groupBy("journal", "connection").agg(
        F.first("clientId", ignorenulls=True).alias("knownId"),
        F.first("peer", ignorenulls=True).alias("knownPeer"),
        F.max(F.when(F.col("kind") == "closed", F.col("time"))).alias("closedAt"),
    )
    joined = whole.drop("peer").join(F.broadcast(connections), ["journal", "connection"], "left")
    return (
        joined.withColumn(
            "client", F.coalesce("clientId", "knownId", "knownPeer", F.col("connection").cast("string"))
        )
        .withColumnRenamed("knownPeer", "peer")
        .drop("knownId")
    )


def _side_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path where that tells them apart."""
    names = [Path(path).name or path for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def pulls_of(entries: "DataFrame") -> "DataFrame":
    """Pulls with what they brought."""
    return (
        entries.where(entries.kind == "exchange")
        .where(entries.code.isin(*PULLS))
        .selectExpr(
            *(
                "source",
                "journal",
                "group",
                "topic",
                "queueId",
                "client",
                "time",
                "answered",
                "tookMicros",
                "replyCode",
            ),
            # A pull that waits for messages is its client's hold on the queue, also where no answer ever came.
            "coalesce(answered, closedAt, time) as until",
            f"coalesce(replyCode = {NOT_FOUND} or tookMicros >= {HELD_MICROS}, false) as isHeld",
            "cast(fields['queueOffset'] as bigint) offset",
            "cast(replyFields['nextBeginOffset'] as bigint) next",
            "cast(replyFields['maxOffset'] as bigint) maxOffset",
            "if(replyCode = 0, cast(replyFields['nextBeginOffset'] as bigint)"
            " - cast(fields['queueOffset'] as bigint), 0) messages",
        )
    )


def runs_of(pulls: "DataFrame") -> list[Run]:
    """Pulls of a queue collapsed while one client makes them."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_queue = Window.partitionBy("source", "journal", "group", "topic", "queueId").orderBy("time", "client")
    changed = F.coalesce((F.col("client") != F.lag("client").over(of_queue)).cast("int"), F.lit(0))
    numbered = pulls.withColumn("changed", changed).withColumn("run", F.sum("changed").over(of_queue))
    rows = numbered.groupBy("journal", "group", "topic", "queueId", "client", "run").agg(
        F.min("time").cast("double").alias("begin"),
        F.max("until").cast("double").alias("end"),
        F.count("*").alias("pulls"),
        F.sum("messages").alias("messages"),
    )
    return cut_at_next(
        Run(
            row.journal,
            row["group"],
            row.topic,
            row.queueId,
            row.begin,
            row.end,
            row.client,
            row.pulls,
            row.messages or 0,
        )
        for row in rows.collect()
    )


def owners_of(spark: "SparkSession", runs: Sequence[Run], doubles: Sequence[DoubleOwner]) -> "DataFrame":
    """The tenures that are drawn, as a table."""
    rows = [
        (
            run.journal,
            run.group,
            run.topic,
            run.queue_id,
            run.client,
            run.begin,
            run.end,
            run.pulls,
            run.messages,
        )
        for run in merged(runs, doubles)
    ]
    schema = (
        "journal string, `group` string, topic string, queueId int, client string, begin double, end double"
    )
    frame = spark.createDataFrame(rows, f"{schema}, pulls bigint, messages bigint")
    return frame.selectExpr(
        *("journal", "`group`", "topic", "queueId", "client"),
        *("timestamp_seconds(begin) as since", "timestamp_seconds(end) as until", "pulls", "messages"),
    ).orderBy("journal", "group", "topic", "queueId", "since")


def releases_of(entries: "DataFrame") -> Any:
    """The expression that names the release of a version number: 5.5.0 for 513."""
    from pyspark.sql import functions as F

    numbers = [
        row.version for row in entries.where("version is not null").select("version").distinct().collect()
    ]
    if not numbers:
        return F.lit(None).cast("string")
    pairs = [F.lit(one) for n in numbers for one in (n, version_name(n).removeprefix("V").replace("_", "."))]
    return F.create_map(*pairs)[F.col("version")]


def members_of(entries: "DataFrame") -> "DataFrame":
    """From the first heartbeat with a group to the end: unregistered, connection closed, or still there."""
    from pyspark.sql import functions as F

    beats = (
        entries.where(entries.code == HEARTBEAT)
        .withColumn("data", F.from_json("detail", _HEARTBEAT_SCHEMA))
        .withColumn("consumer", F.explode("data.consumerDataSet"))
        .groupBy("source", "journal", "client", F.col("consumer.groupName").alias("group"))
        .agg(
            F.min("time").alias("joined"),
            F.max("time").alias("lastHeartbeat"),
            F.first("consumer.consumeFromWhere").alias("consumeFromWhere"),
            F.first("consumer.messageModel").alias("messageModel"),
            F.first("language").alias("language"),
            F.first("version").alias("version"),
            F.first("connection").alias("connection"),
        )
    )
    left = entries.where(entries.code == UNREGISTER).selectExpr(
        "journal", "client", "coalesce(fields['consumerGroup'], '') as `group`", "time as unregistered"
    )
    closed = entries.where("kind = 'closed'").selectExpr("journal", "connection", "time as closed")
    joined = (
        beats.withColumn("release", releases_of(entries))
        .join(left.groupBy("journal", "client", "group").agg(F.max("unregistered").alias("unregistered")),
              ["journal", "client", "group"], "left")
        .join(closed, ["journal", "connection"], "left")
    )  # fmt: skip
    return joined.selectExpr(
        *(
            "source",
            "journal",
            "`group`",
            "client",
            "language",
            "release",
            "consumeFromWhere",
            "messageModel",
            "joined",
        ),
        "coalesce(least(unregistered, closed), lastHeartbeat) as until",
        "case when unregistered is not null then 'unregistered' when closed is not null then 'connection closed' "
        "else 'still there' end as how",
    ).orderBy("journal", "group", "joined")


def first_positions(entries: "DataFrame", pulls: "DataFrame") -> "DataFrame":
    """What the broker answered to the first question of each client, and where its first pull began."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    key = ("source", "journal", "group", "topic", "queueId", "client")
    asked = entries.where(entries.code == QUERY_OFFSET).where("kind = 'exchange'")
    first = asked.withColumn("n", F.row_number().over(Window.partitionBy(*key).orderBy("time"))).where(
        "n = 1"
    )
    answers = first.selectExpr(
        *("source", "journal", "`group`", "topic", "queueId", "client", "replyCode"),
        "cast(replyFields['offset'] as bigint) as answer",
    )
    begun = (
        pulls.withColumn("n", F.row_number().over(Window.partitionBy(*key).orderBy("time"))).where("n = 1")
        .selectExpr("source", "journal", "`group`", "topic", "queueId", "client", "time",
                    "offset as firstPull", "maxOffset")
    )  # fmt: skip
    committed = (
        entries.where(entries.code == COMMIT)
        .groupBy("journal", "group", "topic", "queueId")
        .agg(F.min("time").alias("firstCommit"))
    )
    joined = begun.join(answers, list(key), "left").join(
        committed, ["journal", "group", "topic", "queueId"], "left"
    )
    rule = (
        f"case when replyCode = {QUERY_NOT_FOUND} then 'not found: the client decides (consumeFromWhere)' "
        "when replyCode is null then 'not asked: kept by the client' "
        "when answer > 0 or firstCommit < time then 'stored offset, or reset' "
        "when answer = 0 then 'broker: no stored offset, first message in memory: read all' else 'refused' end"
    )
    return joined.selectExpr(
        *("source", "`group`", "topic", "queueId", "client", "time", "answer", "firstPull", "maxOffset"),
        f"{rule} as rule",
    ).orderBy("source", "group", "topic", "queueId", "time")


def clients_of(entries: "DataFrame", pulls: "DataFrame") -> "DataFrame":
    """One row for each client of each group: rates, shares, intervals."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    key = ("source", "group", "client")
    seconds = "greatest(cast(max(time) as double) - cast(min(time) as double), 0.001)"
    pulled = pulls.groupBy(*key).agg(
        F.count("*").alias("pulls"),
        F.sum("messages").alias("messages"),
        F.expr(f"round(sum(messages) / {seconds}, 1)").alias("messagesPerSecond"),
        F.expr(f"round(avg(cast(replyCode = {NOT_FOUND} or replyCode is null as int)), 3)").alias(
            "emptyShare"
        ),
        F.expr("round(avg(cast(isHeld as int)), 3)").alias("heldShare"),
        F.expr("round(percentile_approx(if(isHeld, tookMicros, null), 0.5) / 1000, 1)").alias("holdMsMedian"),
        F.expr("round(max(if(isHeld, tookMicros, null)) / 1000, 1)").alias("holdMsMost"),
    )
    last = pulls.withColumn(
        "n", F.row_number().over(Window.partitionBy(*key, "topic", "queueId").orderBy(F.desc("time")))
    )
    behind = (
        last.where("n = 1")
        .groupBy(*key)
        .agg(
            F.sum(F.greatest(F.col("maxOffset") - F.coalesce("next", "offset"), F.lit(0))).alias(
                "unreadAtEnd"
            )
        )
    )
    result = pulled.join(behind, list(key), "left")
    for code, name in ((COMMIT, "commit"), (HEARTBEAT, "heartbeat")):
        result = result.join(_intervals(entries, code, name), ["source", "client"], "left")
    backs = entries.where(entries.code == SEND_BACK).groupBy(*key).agg(F.count("*").alias("sendBacks"))
    language = entries.groupBy("source", "client").agg(
        F.first("language", ignorenulls=True).alias("language")
    )
    return (
        result.join(backs, list(key), "left")
        .join(language, ["source", "client"], "left")
        .fillna(0, ["sendBacks"])
        .select(
            *(
                "source",
                "group",
                "client",
                "language",
                "pulls",
                "messages",
                "messagesPerSecond",
                "emptyShare",
            ),
            *(
                "heldShare",
                "holdMsMedian",
                "holdMsMost",
                "commitSeconds",
                "heartbeatSeconds",
                "sendBacks",
                "unreadAtEnd",
            ),
        )
        .orderBy("group", "source", "client")
    )


def _intervals(entries: "DataFrame", code: int, name: str) -> "DataFrame":
    """The usual time between two rounds of a request of one client; requests within a second are one round."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_client = Window.partitionBy("source", "client").orderBy("time")
    since = F.col("time").cast("double") - F.lag("time").over(of_client).cast("double")
    rounds = (
        entries.where(entries.code == code).withColumn("since", since).where("since is null or since > 1")
    )
    return rounds.groupBy("source", "client").agg(
        F.round(F.percentile_approx("since", 0.5), 1).alias(f"{name}Seconds")
    )


def requests_of(entries: "DataFrame") -> "DataFrame":
    """How often each request came, and how long it took."""
    return (
        entries.where("kind = 'exchange'")
        .groupBy("source", "server", "code", "request")
        .agg(
            *(
                _named("count(*)", "count"),
                _named("sum(cast(coalesce(replyCode, 0) <> 0 as int))", "notSuccess"),
            ),
            _named("percentile_approx(tookMicros, 0.5)", "microsMedian"),
            _named("percentile_approx(tookMicros, 0.99)", "micros99"),
        )
        .drop("server")
        .orderBy("source", "code")
    )


def _named(expression: str, name: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(expression).alias(name)


def findings_of(
    doubles: Sequence[DoubleOwner], idle: Sequence[Gap], clients: "DataFrame", dropped: int
) -> list[str]:
    """The sentences at the top."""
    told = [
        f"{one.group}: {one.topic} queue {one.queue_id} was read by two clients at once, {one.clients[0]} and "
        f"{one.clients[1]}, for {one.end - one.begin:.1f} s ({one.changes} changes)"
        for one in doubles
    ]
    told += [
        f"{one.group}: {one.topic} queue {one.queue_id} was read by nobody for {one.end - one.begin:.1f} s, "
        f"between {one.before} and {one.after}"
        for one in idle
    ]
    told += [
        f"{row['group']}: {row.client} is slow: {row.unreadAtEnd:,} messages were unread at its last pulls"
        for row in clients.where(f"unreadAtEnd >= {SLOW_LAG}").collect()
    ]
    if dropped:
        told.append(f"{dropped:,} entries are missing: the broker could not write its journal fast enough")
    return told


@click.command("behaviour")
@click.argument("journals", nargs=-1, required=True)
@click.option(
    "--gap-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_GAP_SECONDS,
    show_default=True,
    help="Tell of queues unread for longer.",
)
@output_options
def main(*, journals: tuple[str, ...], gap_seconds: float, **options: Any) -> None:
    """What clients did, from the JOURNALS of brokers started with --journal; several are compared."""

    def built(spark: "SparkSession") -> Report:
        return build(spark, journals, gap_seconds=gap_seconds)

    run_job("behaviour", built, check=lambda: _sides(journals), is_short=True, **options)


if __name__ == "__main__":
    main()
