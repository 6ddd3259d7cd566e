"""The options of the source `rocketmq`: names, defaults and allowed values. Texts in, typed values out. No network.

The names are those of Spark's Kafka connector if it has the same option; `ALIASES` are names of older RocketMQ
connectors.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from pocketmq.client.access import NO_ACCESS_KEYS, Access
from pocketmq.client.values.validators import check_group
from pocketmq.protocol.bodies.client import ExpressionError, tag_subscription
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic, is_system_topic

from ...errors import OptionError
from .access_names import ACCESS_NAMES, read_access
from .option_values import NAMESRV, OptionValues, canonical_options, names_in
from .positions import Queue, check_whole, offsets_from_json
from .spelling import SOURCE_OPTIONS

ALIASES: Final = {"nameServer": NAMESRV, "rocketmq.client.endpoints": NAMESRV, "topic": "subscribe"}
EARLIEST, LATEST, COMMITTED = "earliest", "latest", "committed"
DEFAULT_GROUP: Final = "spark-rocketmq-source"


class ReadBound(msgspec.Struct, frozen=True):
    """Where a read starts or ends.

    `kind` is earliest, latest, committed, offsets or timestamps (`text` is JSON), or timestamp. `option` is the name of
    the option it was read from.
    """

    kind: str
    text: str = ""
    timestamp_ms: int = 0
    option: str = ""


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All options of a reader; picklable."""

    namesrv_addr: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[Queue, ...] = ()
    start: ReadBound = ReadBound(EARLIEST)
    end: ReadBound = ReadBound(LATEST)
    is_start_strict: bool = True
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60 * 1000
    group: str = DEFAULT_GROUP
    commits_offsets: bool = False
    shares_group: bool = False
    """Commits although the group has live members."""
    expression: str = "*"
    filter_type: str = "TAG"
    decompresses: bool = True
    pull_batch_size: int = 32
    pulls_in_flight: int = 16
    pull_timeout_ms: int = 10_000
    decode_rows: int = 16384
    retry_timeout_ms: int = 60_000
    plan_timeout_ms: int = 60_000
    pushes_down: bool = False
    stores: dict[str, str] = {}
    """Broker name -> the folder of its store; the empty name stands for every broker."""
    access: Access = NO_ACCESS_KEYS

    @property
    def is_filtered(self) -> bool:
        return self.expression != "*" or self.filter_type != "TAG"


_NAMES: Final = """
    subscribe subscribePattern assign subExpression filterType columns includeProperties decompress
    startingOffsets endingOffsets startingTimestamp endingTimestamp startingOffsetsByTimestamp
    endingOffsetsByTimestamp startingOffsetsByTimestampStrategy
    maxOffsetsPerTrigger maxBytesPerTrigger minOffsetsPerTrigger maxTriggerDelay minPartitions
    maxRecordsPerPartition pullBatchSize pullInFlight decodeRows storePath pushdown
    failOnDataLoss retryTimeoutMs pullTimeoutMs fetchOffset.numRetries fetchOffset.retryIntervalMs
    groupId commitOffsets groupIdPrefix
"""
"""In the order of docs/pipeline.md, which says what each of them means."""
SOURCE_OPTION_NAMES: Final = (NAMESRV, *_NAMES.split(), *ACCESS_NAMES)
_ENDS: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")


def read_source_options(options: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """`OptionError` with one clear line for anything wrong."""
    values = OptionValues(canonical_options(options, SOURCE_OPTION_NAMES, ALIASES, SOURCE_OPTIONS))
    group = values.resource_name("groupId", check_group)
    prefix = values.resource_name("groupIdPrefix", check_group) or DEFAULT_GROUP
    topics, pattern, assigned = _subscription(values)
    start = _start_or_end(values, "starting", LATEST if is_stream else EARLIEST)
    end = _start_or_end(values, "ending", LATEST)
    _check_start_and_end(start, end, has_group=bool(group), is_stream=is_stream)
    if is_stream:
        for name in _ENDS:
            if values.text(name) is not None:
                raise OptionError(f"option {name}", "is for batches; a stream has no end")
    retry_timeout_ms = values.integer("retryTimeoutMs", 60_000, least=0)
    least = values.optional_integer("minOffsetsPerTrigger")
    most = values.optional_integer("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OptionError(
            "option minOffsetsPerTrigger",
            f"must be at most maxOffsetsPerTrigger, which is {most}, got {least}",
        )
    commits = values.choice("commitOffsets", "true" if group else "false", ("true", "false", "force"))
    values.flag("includeProperties", False)  # the schema is made of it by `spark/sources/default_columns.py`
    filter_type = values.choice("filterType", "TAG", ("TAG", "SQL92"))
    strategy = values.choice("startingOffsetsByTimestampStrategy", "error", ("error", "latest"))
    return SourceOptions(
        namesrv_addr=values.name_servers(),
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        start=start,
        end=end,
        is_start_strict=strategy == "error",
        fail_on_data_loss=values.flag("failOnDataLoss", True),
        min_partitions=values.optional_integer("minPartitions"),
        max_records_per_partition=values.optional_integer("maxRecordsPerPartition"),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_bytes_per_trigger=values.optional_integer("maxBytesPerTrigger"),
        max_trigger_delay_ms=values.duration_ms("maxTriggerDelay", 15 * 60 * 1000),
        group=group or prefix,
        commits_offsets=commits != "false",
        shares_group=commits == "force",
        expression=_expression(values, filter_type),
        filter_type=filter_type,
        decompresses=values.flag("decompress", True),
        pull_batch_size=values.integer("pullBatchSize", 32, most=65536),
        pulls_in_flight=values.integer("pullInFlight", 16, most=1024),
        pull_timeout_ms=values.integer("pullTimeoutMs", 10_000),
        decode_rows=values.integer("decodeRows", 16384, most=1 << 20),
        retry_timeout_ms=retry_timeout_ms,
        plan_timeout_ms=_plan_timeout_ms(values, retry_timeout_ms),
        pushes_down=values.flag("pushdown", False),
        stores=_stores(values, filter_type),
        access=read_access(values),
    )


def _stores(values: OptionValues, filter_type: str) -> dict[str, str]:
    """The folders that `storePath` names: one path, or JSON of broker names and paths."""
    text = (values.text("storePath") or "").strip()
    if not text:
        return {}
    if filter_type == "SQL92":
        raise OptionError("option storePath", ": only a broker can filter by SQL92; leave out one of the two")
    if not text.startswith("{"):
        return {"": text}
    try:
        stores = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.DecodeError as error:
        raise OptionError(
            "option storePath", f'must be a folder or JSON such as {{"broker-a":"/path"}}, got {text!r:.100}'
        ) from error
    return stores


def tags_of(expression: str) -> frozenset[str]:
    """The tags that an expression names; empty for `*`, and for a text that is no tag expression."""
    try:
        return frozenset(tag_subscription("", expression, sub_version=0).tags_set)
    except ExpressionError:
        return frozenset()


def _expression(values: OptionValues, filter_type: str) -> str:
    """`OptionError` for a text of separators only, and for a SQL92 filter without an expression."""
    expression = values.text("subExpression") or "*"
    if filter_type == "SQL92":
        if expression == "*":
            raise OptionError(
                "option subExpression", "must be a condition such as amount > 3 if filterType is SQL92"
            )
        return expression
    if expression != "*" and not tags_of(expression):
        raise OptionError("option subExpression", f"must be * or tags such as A || B, got {expression!r}")
    return expression


def _subscription(values: OptionValues) -> tuple[tuple[str, ...], str | None, tuple[Queue, ...]]:
    """(topics, pattern, queues): exactly one of the three is filled."""
    allowed = ("subscribe", "subscribePattern", "assign")
    present = [name for name in allowed if values.text(name) is not None]
    if len(present) != 1:
        raise OptionError(
            f"exactly one of the options {', '.join(allowed)}", f"is required, got {present or 'none'}"
        )
    if present == ["subscribe"]:
        topics = tuple(names_in(values.text("subscribe")))
        if not topics:
            raise OptionError("option subscribe", "must be comma-separated topic names, got none")
        return topics, None, ()
    if present == ["subscribePattern"]:
        pattern = values.required("subscribePattern", "Orders.*")
        try:
            re.compile(pattern)
        except re.error as error:
            raise OptionError(
                "option subscribePattern", f"must be a regular expression, got {pattern!r}: {error}"
            ) from error
        return (), pattern, ()
    return (), None, _assigned_queues(values.text("assign") or "")


def _assigned_queues(text: str) -> tuple[Queue, ...]:
    """The broker's name is empty for a topic that is on one broker: `{"T":[0,1]}`."""
    try:
        of_topics = {
            topic: {"": brokers} if type(brokers) is list else brokers
            for topic, brokers in json.loads(text).items()
        }
        zeros = {
            topic: {broker: dict.fromkeys(map(str, _queue_ids(ids)), 0) for broker, ids in brokers.items()}
            for topic, brokers in of_topics.items()
        }
        queues = tuple(sorted(offsets_from_json(zeros)))
    except (ValueError, TypeError, AttributeError) as error:
        raise OptionError(
            "option assign", f'must be JSON such as {{"T":{{"broker-a":[0,1]}}}}, got {text!r:.100}'
        ) from error
    if not queues:
        raise OptionError("option assign", "must name at least one queue")
    return queues


def _queue_ids(value: Any) -> list[int]:
    """`ValueError` unless it is a list of whole numbers: each digit of a text would pass as a queue id."""
    if type(value) is not list:
        raise ValueError(f"{value!r} is not a list of queue ids")
    check_whole(value)
    return value


def _plan_timeout_ms(values: OptionValues, retry_timeout_ms: int) -> int:
    """How long planning retries: by the Kafka connector's two options if one is set, else as long as pulls."""
    retries = values.optional_integer("fetchOffset.numRetries", least=0)
    interval_ms = values.optional_integer("fetchOffset.retryIntervalMs", least=0)
    if retries is None and interval_ms is None:
        return retry_timeout_ms
    return (3 if retries is None else retries) * (10 if interval_ms is None else interval_ms)


def _start_or_end(values: OptionValues, which: str, default: str) -> ReadBound:
    """One timestamp wins over timestamps by queue, and those win over offsets, as in the Kafka connector."""
    name = f"{which}Timestamp"
    timestamp_ms = values.optional_integer(name, least=0)
    if timestamp_ms is not None:
        return ReadBound("timestamp", timestamp_ms=timestamp_ms, option=name)
    name = f"{which}OffsetsByTimestamp"
    text = values.text(name)
    if text is not None:
        return ReadBound("timestamps", text=text, option=name)
    name = f"{which}Offsets"
    text = (values.text(name) or default).strip()
    if text.lower() in (EARLIEST, LATEST, COMMITTED):
        return ReadBound(text.lower(), option=name)
    if not text.startswith("{"):
        raise OptionError(
            f"option {name}", f"must be earliest, latest, committed or JSON of offsets, got {text!r}"
        )
    return ReadBound("offsets", text=text, option=name)


def _check_start_and_end(start: ReadBound, end: ReadBound, *, has_group: bool, is_stream: bool) -> None:
    if start.kind == LATEST and not is_stream:
        raise OptionError("option startingOffsets", ": latest is for streams; a batch would read nothing")
    if end.kind == EARLIEST:
        raise OptionError(
            "option endingOffsets", "must be latest, committed or JSON of offsets, got earliest"
        )
    if COMMITTED in (start.kind, end.kind) and not has_group:
        raise OptionError("option groupId", "is required if startingOffsets or endingOffsets is committed")


def matching_topics(pattern: str, topics: list[str]) -> list[str]:
    """The topics that match a pattern, without system, retry and dead-letter topics: those must be named in full."""
    compiled = re.compile(pattern)
    return sorted(
        topic
        for topic in topics
        if compiled.fullmatch(topic)
        and not (is_system_topic(topic) or is_retry_topic(topic) or is_dlq_topic(topic))
    )
