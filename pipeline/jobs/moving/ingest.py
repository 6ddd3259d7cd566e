"""Topics to tables: `pocketmq pipeline ingest -n ADDR --topics Orders --to DIR --checkpoint DIR`.

A stream reads the topics and appends to Parquet files, or to a Delta or Iceberg table, by topic and day of storing. It
ends when everything is written that was there when it began; `--every 10s` goes on until a signal. A checkpoint
remembers what is written, so Parquet files hold every message once, also after a failure, a signal or a kill. With
`--decode` the body becomes the column `value`; what cannot be decoded goes to the side table `--bad DIR` with its body
as it is, and has a checkpoint of its own.
"""

import re
import secrets
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from pocketmq.client.access import NO_ACCESS_KEYS, Access
from pocketmq.client.access_options import access_options

from ...errors import OptionError
from ...spark.session.metrics import BatchCounts, keep_reports
from ...tables.brokers.reachable import check_reachable
from ...tables.files.locations import absolute
from ...tables.planning.option_values import check_name_servers, names_in
from ..answers.inputs import UTC_DAY, epoch_ms
from ..answers.run import INTERRUPTED, ended_by_signals, output_options, run_job, spark_error_line
from ..report.output_folders import names_in_folder
from ..report.report import Report, Section
from ..sql.message_input import MessageInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

PARQUET, DELTA, ICEBERG = "parquet", "delta", "iceberg"
JSON, AVRO, PROTOBUF = "json", "avro", "protobuf"
WRITTEN, REFUSED = "pocketmq ingest", "pocketmq ingest, refused"
"""The names under which Spark counts rows."""
BATCH_MESSAGES: Final = 500_000
WAIT_SECONDS: Final = 60
POLL_SECONDS: Final = 1
SAY_SECONDS: Final = 10.0
"""Between two lines of progress."""
LIST_OF_BATCHES: Final = "_spark_metadata"
CORRUPT: Final = "_corrupt"
PERMISSIVE: Final = {"mode": "PERMISSIVE"}
AVRO_MARK: Final = secrets.token_bytes(16)
"""Of each run its own: no body can end with it."""
_EVERY: Final = re.compile(r"\d+ ?(ms|s|m|h)")


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """What to read and where to write it."""

    namesrv_addr: str
    topics: str
    target: str
    checkpoint: str
    format: str = PARQUET
    every: str | None = None
    starting_ms: int | None = None
    decode: str | None = None
    schema: str | None = None
    message: str | None = None
    bad: str | None = None
    batch_messages: int = BATCH_MESSAGES
    files: int | None = None
    wait_seconds: int = WAIT_SECONDS
    access: Access = NO_ACCESS_KEYS

    def check(self) -> None:
        """`OptionError` for everything that can be checked without Spark."""
        check_name_servers("--namesrv", self.namesrv_addr)
        if self.every is not None and not _EVERY.fullmatch(self.every):
            raise OptionError(
                "--every", f"must be a number with ms, s, m or h, such as 10s, got {self.every!r}"
            )
        if self.decode is None and (self.schema or self.message or self.bad):
            raise OptionError("--schema, --message and --bad", "are for --decode")
        if self.decode is not None and not self.schema:
            raise OptionError("--schema", f"is required with --decode {self.decode}")
        if self.decode == PROTOBUF and not self.message:
            raise OptionError("--message", "is required with --decode protobuf: the name of the message type")
        if self.decode is not None and not self.bad:
            raise OptionError(
                "--bad", "is required with --decode: the folder for messages that cannot be decoded"
            )
        if self.bad is not None and absolute(self.bad) == absolute(self.target):
            raise OptionError("--bad and --to", "must be different folders")
        if self.decode == PROTOBUF and not Path(self.schema or "").is_file():
            raise OptionError(
                "--schema", f"must be a descriptor file with --decode protobuf, got {self.schema!r}"
            )
        if self.decode == AVRO:
            try:
                kind = msgspec.json.decode(self.schema_text(), type=dict[str, Any]).get("type")
            except msgspec.DecodeError:
                kind = None
            if kind != "record":
                raise OptionError(
                    "--schema", "must be an Avro schema of a record, or a file with one, as JSON"
                )

    def schema_text(self) -> str:
        """The schema itself, read from its file if `--schema` names one."""
        text = self.schema or ""
        if "\n" not in text and len(text) < 1000 and Path(text).is_file():
            return Path(text).read_text(encoding="utf-8").strip()
        return text


def build(
    spark: "SparkSession", ingest: Ingest, ended: threading.Event | None = None, *, is_quiet: bool = True
) -> Report:
    """Write until everything is written, or until `ended` is set, and report how much.

    A batch that is being written then is not in the table: the next run writes it.
    """
    import pyarrow as pa

    from ..sql.arrow_frame import frame_of_rows

    keep_reports(spark)
    ended = ended or threading.Event()
    queries = [start(spark, ingest, is_bad=False)]
    if ingest.decode is not None:
        queries.append(start(spark, ingest, is_bad=True))
    counts = [BatchCounts(query, name) for query, name in zip(queries, (WRITTEN, REFUSED), strict=False)]
    try:
        _wait(queries, counts, ended, is_quiet=is_quiet)
    finally:
        for query in queries:
            query.stop()
    numbers = [each.look() for each in counts]
    refused = numbers[1] if len(numbers) > 1 else 0
    rows = [(ingest.target, numbers[0]), *([(ingest.bad, refused)] if ingest.bad is not None else [])]
    table = frame_of_rows({"target": pa.string(), "messages": pa.int64()}, rows)
    findings = [f"{refused:,} messages cannot be decoded: they are in {ingest.bad}"] if refused else []
    lead = f"{numbers[0]:,} messages of {ingest.topics} written to {ingest.target}."
    if ended.is_set():
        lead += " Stopped: the next run with this checkpoint goes on there."
    return Report("Ingest", lead, [Section("messages", "Messages", table)], findings)


def _wait(
    queries: "list[StreamingQuery]", counts: list[BatchCounts], ended: threading.Event, *, is_quiet: bool
) -> None:
    """Return once all queries have ended, or `ended` is set. Raises the error of a query that failed."""
    said, said_at = 0, time.monotonic()
    while not ended.is_set():
        running = [query for query in queries if query.isActive]
        for query in queries:
            if query not in running[1:]:
                query.awaitTermination(POLL_SECONDS)  # at once for one that has ended
        if not running:
            return
        for each in counts:
            each.look()
        written = counts[0].rows
        if written > said and not is_quiet and time.monotonic() - said_at >= SAY_SECONDS:
            said, said_at = written, time.monotonic()
            click.echo(f"{written:,} messages written", err=True)


def start(spark: "SparkSession", ingest: Ingest, *, is_bad: bool) -> "StreamingQuery":
    """Start the query of the table, or that of the side table."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    rows = prepared(stream_of(spark, ingest), ingest, is_bad=is_bad)
    rows = rows.observe(REFUSED if is_bad else WRITTEN, F.count(F.lit(1)).alias("messages"))
    if ingest.files is not None:
        rows = rows.coalesce(ingest.files)
    kind, target = (PARQUET, ingest.bad or "") if is_bad else (ingest.format, ingest.target)
    target = target if kind == ICEBERG else absolute(target)  # the name of a table
    checkpoint = f"{absolute(ingest.checkpoint).rstrip('/')}/{'bad' if is_bad else 'table'}"
    if kind == PARQUET:
        check_target("--bad" if is_bad else "--to", target, checkpoint)
    writer = rows.writeStream.format(kind).option("checkpointLocation", checkpoint).outputMode("append")
    writer = writer.partitionBy("date", "topic")
    if ingest.every is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=_interval(ingest.every))
    try:
        return writer.toTable(target) if kind == ICEBERG else writer.start(target)
    except (PySparkException, Py4JJavaError) as error:
        raise OptionError(f"the {kind} table", f"cannot be written: {spark_error_line(error)}") from error


def check_target(option: str, target: str, checkpoint: str) -> None:
    """`OptionError` for a folder that Spark would not write to, or whose files its readers would not see any more.

    Spark keeps a list of batches in the folder. It leaves out those whose number is in the list, without a word, and a
    new checkpoint begins at 0. Its readers see no files that are not in the list.
    """
    written, begun = names_in_folder(f"{target}/{LIST_OF_BATCHES}"), names_in_folder(f"{checkpoint}/offsets")
    if written and begun == []:
        raise OptionError(
            option,
            f": {target} was written with another checkpoint than {checkpoint}: name that or another folder",
        )
    names = [name for name in names_in_folder(target) or [] if name[0] not in "_."]
    if written == [] and begun == [] and names:
        raise OptionError(
            option, f": {target} holds {min(names)}, which no ingest has written: it must be new or empty"
        )


def stream_of(spark: "SparkSession", ingest: Ingest) -> "DataFrame":
    """The messages of the topics, as a stream."""
    wanted = MessageInput(
        namesrv_addr=ingest.namesrv_addr,
        topics=ingest.topics,
        since_ms=ingest.starting_ms,
        access=ingest.access,
    )
    options = wanted.reader_options(is_stream=True)
    options["maxOffsetsPerTrigger"] = str(ingest.batch_messages)
    options["retryTimeoutMs"] = str(ingest.wait_seconds * 1000)
    return spark.readStream.format(wanted.format).options(**options).load()


def prepared(messages: "DataFrame", ingest: Ingest, *, is_bad: bool = False) -> "DataFrame":
    """Messages with their day, and decoded if that is wanted: those that can be, or those that cannot."""
    from pyspark.sql import functions as F

    dated = messages.withColumn("date", F.expr(UTC_DAY))
    if ingest.decode is None:
        return dated
    decoded, is_good = _decoded(dated, ingest)
    is_good = F.coalesce(is_good, F.lit(False))  # a row for which neither is true would be in neither table
    if is_bad:
        return decoded.where(~is_good).drop("value", "_ok")
    return decoded.where(is_good).drop("body", "_ok")


def _decoded(messages: "DataFrame", ingest: Ingest) -> tuple["DataFrame", Any]:
    """The messages with the column `value`, and which of them could be decoded."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    try:
        if ingest.decode == JSON:
            kept = json_schema(ingest.schema_text()).add(CORRUPT, StringType())
            options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
            text = F.expr("cast(body as string)")
            rows = messages.withColumn("_json", F.from_json(text, kept, options))
            # Without a look at the other fields Spark would not parse them, and find nothing wrong.
            is_good = F.col("_json").isNotNull() & F.col(f"_json.{CORRUPT}").isNull() & is_one_value(text)
            rows = rows.withColumn("_good", is_good).withColumn("value", F.col("_json").dropFields(CORRUPT))
            return rows.drop("_json").withColumn("_ok", F.col("_good")).drop("_good"), F.col("_ok")
        if ingest.decode == AVRO:
            from pyspark.sql.avro.functions import from_avro

            # Spark reads a record and ignores what follows: so a mark must follow, and nothing else.
            marked = F.concat("body", F.lit(AVRO_MARK))
            rows = messages.withColumn(
                "_avro", from_avro(marked, marked_schema(ingest.schema_text()), PERMISSIVE)
            )
            rows = rows.withColumn("_ok", F.col("_avro.mark") == F.lit(AVRO_MARK))
            return rows.withColumn("value", F.col("_avro.value")).drop("_avro"), F.col("_ok")
        from pyspark.sql.protobuf.functions import from_protobuf

        value = from_protobuf("body", ingest.message or "", absolute(ingest.schema or ""), PERMISSIVE)
        rows = messages.withColumn("value", value)
        return rows, is_decoded(rows)
    except (PySparkException, TypeError) as error:
        line = spark_error_line(error)
        if "NOT_LOADED" in line or "JavaPackage" in line:
            raise OptionError(
                f"--decode {ingest.decode}",
                f"needs Spark's package: "
                f"--conf spark.jars.packages=org.apache.spark:spark-{ingest.decode}_2.13:VERSION",
            ) from error
        raise OptionError("--schema", f": {line}") from error


def is_one_value(text: Any) -> Any:
    """Whether a text is one JSON value in valid UTF-8, and nothing else.

    Spark reads the first value of a text and ignores what follows. So the text is read once more, before a second value
    that it cannot contain.
    """
    from pyspark.sql import functions as F

    end = secrets.token_hex(16)
    both = F.concat(F.lit("["), text, F.lit(f',{{"end":"{end}"}}]'))
    values = F.from_json(both, "array<struct<end: string>>")
    return F.is_valid_utf8(text) & (F.size(values) == 2) & (F.get(values, F.lit(1)).end == end)


def json_schema(text: str) -> "StructType":
    """The fields of JSON bodies: a DDL, or Spark's own JSON of a schema. `OptionError` for anything else.

    Needs a session: only Spark reads a DDL.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import DataType, StructType

    wanted = "must name the fields of a JSON object, such as 'id int, name string'"
    try:
        kind = (
            StructType.fromJson(msgspec.json.decode(text))
            if text.startswith("{")
            else DataType.fromDDL(text.rstrip(", "))
        )
    except (PySparkException, msgspec.DecodeError, KeyError, TypeError) as error:
        raise OptionError("--schema", f"{wanted}, got {text!r:.100}: {spark_error_line(error)}") from error
    if not isinstance(kind, StructType) or not kind.names:
        raise OptionError("--schema", f"{wanted}, got {text!r:.100}")
    twice = {name for name in kind.names if [one.lower() for one in kind.names].count(name.lower()) > 1}
    if twice or CORRUPT in kind.names:
        raise OptionError("--schema", f"names the field {min(twice, default=CORRUPT)} twice")
    return kind


def is_decoded(rows: "DataFrame") -> Any:
    """Whether the body of a row became its `value`.

    Of a body that it cannot read, Spark makes a record whose fields are all null. A real one has no bytes.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    kind = rows.schema["value"].dataType
    if not isinstance(kind, StructType) or not kind.names:
        return F.col("value").isNotNull()
    has_field = F.lit(False)
    for name in kind.names:
        has_field = has_field | F.col("value").getField(name).isNotNull()
    return has_field


def marked_schema(schema: str) -> str:
    """The Avro schema of a record of this schema and `AVRO_MARK`, one behind the other."""
    mark = {"type": "fixed", "name": "PocketmqMark", "size": len(AVRO_MARK)}
    fields = [{"name": "value", "type": msgspec.json.decode(schema)}, {"name": "mark", "type": mark}]
    return msgspec.json.encode({"type": "record", "name": "PocketmqMarked", "fields": fields}).decode()


def _interval(text: str) -> str:
    """10s as Spark's `10 seconds`."""
    number, unit = re.findall(r"\d+|[a-z]+", text)
    names = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
    return f"{number} {names[unit]}"


@click.command("ingest")
@click.option("-n", "--namesrv", "namesrv_addr", required=True, metavar="ADDR", help="The name server.")
@click.option("--topics", required=True, metavar="T[,T]", help="Topics to read.")
@click.option(
    "--to", "target", required=True, metavar="DIR|TABLE", help="A folder, or the name of an Iceberg table."
)
@click.option("--checkpoint", required=True, metavar="DIR", help="Where Spark remembers what is written.")
@click.option("--format", type=click.Choice([PARQUET, DELTA, ICEBERG]), default=PARQUET, show_default=True)
@click.option("--every", metavar="TIME", help="Go on, a batch each 10s, 5m ...  [default: what is there now]")
@click.option("--since", "starting_ms", type=epoch_ms, metavar="TIME", help="Begin at this store time.")
@click.option(
    "--decode", type=click.Choice([JSON, AVRO, PROTOBUF]), help="Decode the bodies to the column value."
)
@click.option(
    "--schema", metavar="FILE|TEXT", help="The schema of the bodies; for protobuf a descriptor file."
)
@click.option("--message", metavar="NAME", help="The message type of a descriptor file.")
@click.option("--bad", metavar="DIR", help="The side table for messages that cannot be decoded.")
@click.option(
    "--batch-messages",
    type=click.IntRange(1),
    default=BATCH_MESSAGES,
    show_default=True,
    help="Messages of a batch.",
)
@click.option("--files", type=click.IntRange(1), help="Files of a batch for each day and topic, at most.")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.IntRange(1),
    default=WAIT_SECONDS,
    show_default=True,
    help="Seconds to wait for a broker that is away.",
)
@access_options
@output_options
def main(**options: Any) -> None:
    """Write topics to Parquet, Delta or Iceberg tables."""
    ingest = Ingest(**{name: options.pop(name) for name in Ingest.__struct_fields__})

    def check() -> None:
        ingest.check()
        check_reachable(ingest.namesrv_addr, names_in(ingest.topics), ingest.access)

    ended = threading.Event()

    def write(spark: "SparkSession") -> Report:
        with ended_by_signals(ended):
            return build(spark, ingest, ended, is_quiet=options["quiet"])

    run_job("ingest", write, check=check, **options)
    if ended.is_set() and ingest.every is None:
        sys.exit(INTERRUPTED)
