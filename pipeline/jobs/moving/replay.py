"""Sends messages again: `pocketmq pipeline replay -n ADDR --topics T --to T2`.

Each copy has the id of its original in property `replayOf`. With `--queues keep` it is sent to the queue with the same
id, of the broker with the same name if the target has it, so the order within a queue is kept if the target has as many
queues. With `--queues spread` messages with a sharding key go to the queue of their key, the others to any. With
`--checkpoint DIR` an interrupted replay continues: acknowledged batches are not sent again, and messages in flight are
sent again with the same UNIQ_KEY. Retry and dead-letter topics are replayed if they are named.
"""

from typing import TYPE_CHECKING, Any

import click
import msgspec
from pocketmq.client.access import NO_ACCESS_KEYS, Access
from pocketmq.client.access_options import access_options

from ...errors import OptionError
from ...spark.session.metrics import BatchCounts, keep_reports
from ...tables.brokers.batch_sender import find_writable_queues
from ...tables.brokers.broker_client import BrokerClient
from ...tables.brokers.reachable import ANSWER_MS, check_reachable
from ...tables.files.locations import absolute
from ...tables.planning.access_names import source_options
from ...tables.planning.option_values import check_name_servers, names_in
from ..answers.inputs import epoch_ms
from ..answers.run import exit_on_user_error, output_options, run_job, spark_error_line
from ..report.report import Report, Section
from ..sql.message_input import MessageInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORIGIN = "replayOf"
SENT = "pocketmq replay"
"""The name under which Spark counts the rows that are sent."""
KEEP, SPREAD = "keep", "spread"
BATCH_MESSAGES = 50_000
POLL_SECONDS = 1
ROUTE_MS = 5_000


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What to replay, and how. Times are epoch ms."""

    namesrv_addr: str
    topics: str
    target: str
    target_namesrv_addr: str | None = None
    starting_ms: int | None = None
    ending_ms: int | None = None
    where: str | None = None
    queues: str = KEEP
    rows_per_second: int | None = None
    checkpoint: str | None = None
    is_dry: bool = False
    access: Access = NO_ACCESS_KEYS
    target_access: Access | None = None
    """Keys for the other name server; None: the same."""

    def check(self) -> None:
        """`OptionError` for everything that can be checked without a connection."""
        check_name_servers("--namesrv", self.namesrv_addr)
        if self.target_namesrv_addr is not None:
            check_name_servers("--to-namesrv", self.target_namesrv_addr)
        begin, end = self.starting_ms, self.ending_ms
        if begin is not None and end is not None and begin >= end:
            raise OptionError("--since", "must be before --until")

    @property
    def target_side(self) -> tuple[str, Access]:
        """The name server to send to, and its keys."""
        return self.target_namesrv_addr or self.namesrv_addr, self.target_access or self.access


def check_target(replay: Replay) -> None:
    """`OptionError` if the target has no queue for messages that there are, `SourceUnreachable` without an answer."""
    if replay.is_dry:
        return
    with BrokerClient(*replay.target_side).closing() as client:
        route = client.with_retries(
            f"route of {replay.target}", lambda fresh: find_writable_queues(client, replay.target, fresh=fresh),
            ROUTE_MS, said_as=client.name_server,
        )  # fmt: skip
        writable = {queue.queue_id for queue in client.run(route)}
    if replay.queues != KEEP:
        return
    with BrokerClient(replay.namesrv_addr, replay.access).closing() as client:
        found_queues = client.queues_of(names_in(replay.topics), ANSWER_MS)
        queues = [queue for found in found_queues.values() for queue in found or ()]
        bounds = client.bounds(queues, ANSWER_MS)
    needed = {queue.queue_id for queue, held in bounds.items() if held.high > held.low}
    if needed - writable:
        raise OptionError(
            "--to",
            f": {replay.target} has no writable queue {min(needed - writable)}, and {replay.topics} has messages "
            f"in {max(needed) + 1} queues: give it as many, or use --queues {SPREAD}",
        )


def build(spark: "SparkSession", replay: Replay) -> Report:
    """Send or count messages, and report how many."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    from ..sql.arrow_frame import frame_of_rows

    is_stream = replay.checkpoint is not None and not replay.is_dry
    wanted = MessageInput(
        namesrv_addr=replay.namesrv_addr,
        topics=replay.topics,
        since_ms=replay.starting_ms,
        until_ms=replay.ending_ms,
        access=replay.access,
    )
    options = wanted.reader_options(is_stream=is_stream)
    options["columns"] = "all"  # `--where` may name any of them
    if is_stream:
        options["maxOffsetsPerTrigger"] = str(BATCH_MESSAGES)
    reader = spark.readStream if is_stream else spark.read
    source = reader.format(wanted.format).options(**options).load()
    rows = source if replay.where is None else _filtered(source, replay.where)
    if replay.ending_ms is not None and is_stream:
        rows = rows.where(F.col("storeTimestamp") < F.timestamp_millis(F.lit(replay.ending_ms)))
    sent = rows.select("queueOffset").count() if replay.is_dry else _send(rows, replay)
    verb = "would be sent" if replay.is_dry else "sent"
    counts = frame_of_rows({"target": pa.string(), "messages": pa.int64()}, [(replay.target, sent)])
    return Report(
        "Replay", f"{sent:,} messages {verb} to {replay.target}.", [Section("messages", "Messages", counts)]
    )


def with_other_keys(access: Access, access_key: str | None, secret_key: str | None) -> Access | None:
    """The same access with other keys; None without keys. `OptionError` for one key without the other."""
    if bool(access_key) != bool(secret_key):
        raise OptionError("--to-access-key, --to-secret-key", ": set both or none")
    if access_key is None:
        return None
    return msgspec.structs.replace(access, access_key=access_key, secret_key=secret_key, security_token=None)


def _filtered(rows: "DataFrame", where: str) -> "DataFrame":
    """`OptionError` with the first line of Spark's error message about the condition."""
    from pyspark.errors import AnalysisException

    try:
        return rows.where(where)
    except AnalysisException as error:
        raise OptionError("--where", f": {spark_error_line(error)}") from error


def copies(rows: "DataFrame", queues: str) -> "DataFrame":
    """Messages read by the source as columns of the sink."""
    from pocketmq.protocol.message.properties import SHARDING_KEY
    from pyspark.sql import functions as F

    from ...tables.records.batch_encoder import RESERVED

    user_properties = F.map_filter(
        "properties", lambda name, _: ~name.isin(*sorted(RESERVED)) & (name != ORIGIN)
    )
    origin = F.create_map(F.lit(ORIGIN), F.col("msgId"))
    columns = [
        F.col("body"), F.col("keys"), F.col("tags"), F.col("flag"),
        F.map_concat(user_properties, origin).alias("properties"),
        F.col("properties")[SHARDING_KEY].alias("shardingKey"),
    ]  # fmt: skip
    return rows.select(*columns, *([F.col("brokerName"), F.col("queueId")] if queues == KEEP else []))


def _send(rows: "DataFrame", replay: Replay) -> int:
    from pyspark.sql import functions as F

    namesrv_addr, access = replay.target_side
    options = {"nameServer": namesrv_addr, "topic": replay.target, **source_options(access)}
    if replay.rows_per_second is not None:
        options["maxRowsPerSecond"] = str(replay.rows_per_second)
    prepared = copies(rows, replay.queues)
    if not rows.isStreaming:
        from pyspark.sql import Observation

        observation = Observation(SENT)
        counted = prepared.observe(observation, F.count(F.lit(1)).alias("messages"))
        counted.write.format("rocketmq").mode("append").options(**options).save()
        return int(observation.get["messages"])
    assert replay.checkpoint is not None
    counted = prepared.observe(SENT, F.count(F.lit(1)).alias("messages"))
    writer = counted.writeStream.format("rocketmq").options(**options)
    keep_reports(rows.sparkSession)
    query = (
        writer.option("checkpointLocation", absolute(replay.checkpoint)).trigger(availableNow=True).start()
    )
    counts = BatchCounts(query, SENT)
    while not query.awaitTermination(POLL_SECONDS):
        counts.look()
    return counts.look()


@click.command("replay")
@click.option(
    "-n", "--namesrv", "namesrv_addr", required=True, metavar="ADDR", help="The name server to read from."
)
@click.option("--topics", required=True, metavar="T[,T]", help="Topics to read.")
@click.option("--to", "target", required=True, metavar="TOPIC", help="The topic to send to.")
@click.option(
    "--to-namesrv",
    "target_namesrv_addr",
    metavar="ADDR",
    help="The name server to send to; default: the same.",
)
@click.option("--to-access-key", metavar="KEY", help="The key for --to-namesrv; default: the same.")
@click.option("--to-secret-key", metavar="KEY", help="The secret that belongs to that key.")
@click.option(
    "--since", "--from-ms", "starting_ms", type=epoch_ms, metavar="TIME", help="Store time to begin at."
)
@click.option(
    "--until", "--until-ms", "ending_ms", type=epoch_ms, metavar="TIME", help="Store time to end before."
)
@click.option("--where", metavar="SQL", help="A condition over the columns, such as \"tags = 'paid'\".")
@click.option("--queues", type=click.Choice([KEEP, SPREAD]), default=KEEP, show_default=True)
@click.option("--rows-per-second", type=click.IntRange(1), help="Limit of each task.")
@click.option("--checkpoint", metavar="DIR", help="Continue an interrupted replay.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only count the messages.")
@access_options
@output_options
def main(to_access_key: str | None, to_secret_key: str | None, **options: Any) -> None:
    """Send messages again, to the same or another topic."""
    fields = {name: options.pop(name) for name in Replay.__struct_fields__ if name != "target_access"}
    with exit_on_user_error():
        fields["target_access"] = with_other_keys(fields["access"], to_access_key, to_secret_key)
    replay = Replay(**fields)

    def check() -> None:
        replay.check()
        check_reachable(replay.namesrv_addr, names_in(replay.topics), replay.access)
        check_target(replay)

    run_job("replay", lambda spark: build(spark, replay), check=check, **options)
