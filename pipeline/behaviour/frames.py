"""The data frames of the behaviour report, built from journal entries."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pocketmq.protocol.languages import version_name
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS

from ..planning.absolute_paths import absolute
from ..planning.topic_options import DEFAULT_GROUP
from .ownership import PullRun, end_at_next_run, merge_tenures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PULLS: Final = (11, 361)

RECEIVE: Final = RPC_NUMBERS["ReceiveMessage"]
"""What gRPC clients do instead: the broker chooses the queues."""

QUERY_OFFSET, COMMIT = 14, 15

SEND_BACKS: Final = (36, RPC_NUMBERS["ForwardMessageToDeadLetterQueue"])

HEARTBEATS: Final = (34, RPC_NUMBERS["Heartbeat"])

JOIN_CODES: Final = (*HEARTBEATS, RPC_NUMBERS["Telemetry"])
"""Requests that make their client a member; the settings of gRPC clients are on their telemetry streams."""

LEAVE_CODES: Final = (35, RPC_NUMBERS["NotifyClientTermination"])

NOT_FOUND: Final = 19

NO_NEW_MESSAGE: Final = 40_401
"""The same to a gRPC client."""

QUERY_NOT_FOUND: Final = 22

HELD_MICROS: Final = 50_000
"""A pull that takes longer than this waited for messages: one that finds some is answered in a millisecond or two."""

_CONSUMER: Final = "struct<groupName:string,consumeFromWhere:string,messageModel:string>"

_HEARTBEAT_SCHEMA: Final = f"clientID string, consumerDataSet array<{_CONSUMER}>"


def load(spark: "SparkSession", paths: Sequence[str]) -> "DataFrame":
    """Entries of all journals, with a client id wherever one is known.

    A connection belongs to one client. The client's id is known from its first heartbeat on, and is added to the
    earlier requests of the connection too.
    """
    from pyspark.sql import functions as F

    frames = [
        spark.read.format("pocketmq-journal").load(absolute(path)).withColumn("source", F.lit(name))
        for path, name in zip(paths, side_names(paths), strict=True)
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


def side_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path if that tells them apart, else the paths."""
    names = [Path(path).name or path for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def pulls_of(entries: "DataFrame") -> "DataFrame":
    """Pulls with their results, without those of this package's own readers: they own no queue."""
    return (
        entries.where(entries.kind == "exchange")
        .where(entries.code.isin(*PULLS))
        .where(f"coalesce(`group`, '') <> '{DEFAULT_GROUP}'")
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
            # A pull that waits for messages holds the queue for its client, also if it is never answered.
            "coalesce(answered, closedAt, time) as until",
            f"coalesce(replyCode = {NOT_FOUND} or tookMicros >= {HELD_MICROS}, false) as isHeld",
            f"coalesce(replyCode = {NOT_FOUND}, true) as isEmpty",
            "cast(fields['queueOffset'] as bigint) offset",
            "cast(replyFields['nextBeginOffset'] as bigint) next",
            "cast(replyFields['maxOffset'] as bigint) maxOffset",
            "if(replyCode = 0, cast(replyFields['nextBeginOffset'] as bigint)"
            " - cast(fields['queueOffset'] as bigint), 0) messages",
        )
    )


def receives_of(entries: "DataFrame") -> "DataFrame":
    """The receives of gRPC clients, in the columns of `pulls_of`. They are of no queue, and have no offsets."""
    return (
        entries.where(entries.kind == "exchange")
        .where(entries.code == RECEIVE)
        .selectExpr(
            *("source", "journal", "group", "topic", "cast(null as int) as queueId", "client", "time"),
            *("answered", "tookMicros", "replyCode", "coalesce(answered, closedAt, time) as until"),
            f"coalesce(replyCode = {NO_NEW_MESSAGE} or tookMicros >= {HELD_MICROS}, false) as isHeld",
            f"coalesce(replyCode = {NO_NEW_MESSAGE}, true) as isEmpty",
            *("cast(null as bigint) as offset", "cast(null as bigint) as next"),
            *("cast(null as bigint) as maxOffset", "cast(replyFields['messages'] as bigint) as messages"),
        )
    )


def runs_of(pulls: "DataFrame") -> list[PullRun]:
    """Consecutive pulls of one client from one queue, collapsed into runs."""
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
    return end_at_next_run(
        PullRun(
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


def owners_of(spark: "SparkSession", runs: Sequence[PullRun]) -> "DataFrame":
    """The tenures in the drawing, as a table."""
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
        for run in merge_tenures(runs)
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
    pairs = [
        F.lit(value) for n in numbers for value in (n, version_name(n).removeprefix("V").replace("_", "."))
    ]
    return F.create_map(*pairs)[F.col("version")]


def members_of(entries: "DataFrame") -> "DataFrame":
    """Each member from its first heartbeat with a group to its end: unregistered, the connection of its last heartbeat
    closed, or still connected."""
    from pyspark.sql import functions as F

    beats = (
        entries.where(entries.code.isin(*JOIN_CODES))
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
            F.max_by("connection", "time").alias("connection"),
        )
    )
    left = entries.where(entries.code.isin(*LEAVE_CODES)).selectExpr(
        "journal", "client", "coalesce(fields['consumerGroup'], '') as `group`", "time as unregistered"
    )
    closed = entries.where("kind = 'closed'").selectExpr("journal", "connection", "time as closed")
    joined = (
        beats.withColumn("release", releases_of(entries))
        .join(left.groupBy("journal", "client", "group").agg(F.max("unregistered").alias("unregistered")),
              ["journal", "client", "group"], "left")
        .join(closed, ["journal", "connection"], "left")
        .withColumn("gone", F.expr("case when unregistered >= lastHeartbeat then unregistered end"))
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
        "coalesce(least(gone, closed), lastHeartbeat) as until",
        "case when gone is not null then 'unregistered' when closed is not null then 'connection closed' "
        "else 'still connected' end as how",
    ).orderBy("journal", "group", "joined")


def first_positions(entries: "DataFrame", pulls: "DataFrame") -> "DataFrame":
    """The broker's answer to the first offset query of each client, and the offset of its first pull."""
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
        "when replyCode is null then 'not asked: the client keeps offsets itself' "
        "when answer > 0 or firstCommit < time then 'stored offset, or reset' "
        "when answer = 0 then 'broker: no stored offset, first message in memory: read all' else 'refused' end"
    )
    return joined.selectExpr(
        *("source", "`group`", "topic", "queueId", "client", "time", "answer", "firstPull", "maxOffset"),
        f"{rule} as rule",
    ).orderBy("source", "group", "topic", "queueId", "time")


def clients_of(entries: "DataFrame", pulls: "DataFrame") -> "DataFrame":
    """One row for each client of each group: rates, shares, intervals. `pulls` may include receives."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    key = ("source", "group", "client")
    seconds = "greatest(cast(max(time) as double) - cast(min(time) as double), 0.001)"
    pulled = pulls.groupBy(*key).agg(
        F.count("*").alias("pulls"),
        F.sum("messages").alias("messages"),
        F.expr(f"round(sum(messages) / {seconds}, 1)").alias("messagesPerSecond"),
        F.expr("round(avg(cast(isEmpty as int)), 3)").alias("emptyShare"),
        F.expr("round(avg(cast(isHeld as int)), 3)").alias("heldShare"),
        F.expr("round(percentile_approx(if(isHeld, tookMicros, null), 0.5) / 1000, 1)").alias("holdMsMedian"),
        F.expr("round(max(if(isHeld, tookMicros, null)) / 1000, 1)").alias("holdMsMost"),
    )
    last = pulls.where("queueId is not null").withColumn(
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
    for codes, name in (((COMMIT,), "commit"), (HEARTBEATS, "heartbeat")):
        result = result.join(_intervals(entries, codes, name), ["source", "client"], "left")
    backs = entries.where(entries.code.isin(*SEND_BACKS)).groupBy(*key).agg(F.count("*").alias("sendBacks"))
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


def _intervals(entries: "DataFrame", codes: Sequence[int], name: str) -> "DataFrame":
    """The median time between two rounds of a request of one client; requests within a second are one round."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_client = Window.partitionBy("source", "client").orderBy("time")
    since = F.col("time").cast("double") - F.lag("time").over(of_client).cast("double")
    rounds = (
        entries.where(entries.code.isin(*codes))
        .withColumn("since", since)
        .where("since is null or since > 1")
    )
    return rounds.groupBy("source", "client").agg(
        F.round(F.percentile_approx("since", 0.5), 1).alias(f"{name}Seconds")
    )


def requests_of(entries: "DataFrame") -> "DataFrame":
    """How often each request was received, and how long it took."""
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
