"""Options of the `rocketmq` source: names, defaults, what they may be. Texts in, typed values out. No network.

Spark hands options over with lower-cased names; an unknown name is refused, so that a typing error does not pass as a
default. The names follow Spark's Kafka connector where it has the thing; `ALIASES` are those of older RocketMQ
connectors.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from pocketmq.client.values.validators import check_group
from pocketmq.protocol.bodies.client import ExpressionError, tag_subscription

from ..errors import OptionError
from .access import NAMES as ACCESS_NAMES
from .access import NO_ACCESS_KEYS, Access, read_access
from .option_values import NAMESRV, OptionValues, canonical_options
from .positions import Queue, check_whole, offsets_from_json

ALIASES: Final = {
    "nameServer": NAMESRV,
    "rocketmq.client.endpoints": NAMESRV,
    "topic": "subscribe",
}
EARLIEST, LATEST, COMMITTED = "earliest", "latest", "committed"
DEFAULT_GROUP: Final = "spark-rocketmq-source"
SYSTEM_PREFIXES: Final = (
    "%RETRY%",
    "%DLQ%",
    "rmq_sys_",
    "RMQ_SYS_",
    "SCHEDULE_TOPIC_XXXX",
    "TBW102",
    "OFFSET_MOVED_EVENT",
)


class StartOrEnd(msgspec.Struct, frozen=True):
    """Where to begin or end: `kind` is earliest, latest, committed, offsets (`text` is JSON) or timestamp."""

    kind: str
    text: str = ""
    timestamp_ms: int = 0
    option: str = ""


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a reader needs; picklable."""

    namesrv_addr: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[Queue, ...] = ()
    start: StartOrEnd = StartOrEnd(EARLIEST)
    end: StartOrEnd = StartOrEnd(LATEST)
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
    expression: str = "*"
    filter_type: str = "TAG"
    decompresses: bool = True
    pull_batch_size: int = 32
    pulls_in_flight: int = 16
    pull_timeout_ms: int = 10_000
    decode_rows: int = 4096
    retry_timeout_ms: int = 60_000
    plan_timeout_ms: int = 60_000
    pushes_down: bool = False
    has_properties: bool = True
    access: Access = NO_ACCESS_KEYS

    @property
    def is_filtered(self) -> bool:
        return self.expression != "*" or self.filter_type != "TAG"


_NAMES: Final = (
    NAMESRV,
    *("subscribe", "subscribePattern", "assign"),
    *("startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp"),
    *("startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy"),
    *("failOnDataLoss", "minPartitions", "maxRecordsPerPartition"),
    *("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger"),
    *("groupId", "groupIdPrefix", "commitOffsets", "subExpression", "filterType", "decompress"),
    *("pullBatchSize", "pullInFlight", "pullTimeoutMs", "decodeRows", "retryTimeoutMs", "pushdown"),
    *("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "includeProperties", *ACCESS_NAMES),
)


def read_source_options(options: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """`OptionError` with one clear line for anything wrong."""
    values = OptionValues(canonical_options(options, _NAMES, ALIASES))
    group = values.name("groupId", check_group)
    prefix = values.name("groupIdPrefix", check_group) or DEFAULT_GROUP
    topics, pattern, assigned = _subscription(values)
    start = _place(values, "starting", LATEST if is_stream else EARLIEST)
    end = _place(values, "ending", LATEST)
    _check_places(start, end, has_group=bool(group), is_stream=is_stream)
    retry_timeout_ms = values.whole("retryTimeoutMs", 60_000, least=0)
    least, most = values.maybe("minOffsetsPerTrigger"), values.maybe("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OptionError(
            f"option minOffsetsPerTrigger: at most maxOffsetsPerTrigger, which is {most}, not {least}"
        )
    filter_type = values.choice("filterType", "TAG", ("TAG", "SQL92"))
    return SourceOptions(
        namesrv_addr=values.addresses(),
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        start=start,
        end=end,
        is_start_strict=values.choice("startingOffsetsByTimestampStrategy", "error", ("error", "latest"))
        == "error",
        fail_on_data_loss=values.flag("failOnDataLoss", True),
        min_partitions=values.maybe("minPartitions"),
        max_records_per_partition=values.maybe("maxRecordsPerPartition"),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_bytes_per_trigger=values.maybe("maxBytesPerTrigger"),
        max_trigger_delay_ms=values.duration_ms("maxTriggerDelay", 15 * 60 * 1000),
        group=group or prefix,
        commits_offsets=values.flag("commitOffsets", bool(group)),
        expression=_expression(values, filter_type),
        filter_type=filter_type,
        decompresses=values.flag("decompress", True),
        pull_batch_size=values.whole("pullBatchSize", 32, most=65536),
        pulls_in_flight=values.whole("pullInFlight", 16, most=1024),
        pull_timeout_ms=values.whole("pullTimeoutMs", 10_000),
        decode_rows=values.whole("decodeRows", 4096, most=1 << 20),
        retry_timeout_ms=retry_timeout_ms,
        plan_timeout_ms=_plan_timeout_ms(values, retry_timeout_ms),
        pushes_down=values.flag("pushdown", False),
        has_properties=values.flag("includeProperties", True),
        access=read_access(values),
    )


def tags_of(expression: str) -> frozenset[str]:
    """The tags an expression names; none for `*`, and none where it is none."""
    try:
        return frozenset(tag_subscription("", expression, sub_version=0).tags_set)
    except ExpressionError:
        return frozenset()


def _expression(values: OptionValues, filter_type: str) -> str:
    """`OptionError` for tags that are separators only, and for a SQL92 filter without an expression."""
    expression = values.text("subExpression") or "*"
    if filter_type == "SQL92":
        if expression == "*":
            raise OptionError(
                "option subExpression: a condition such as amount > 3 where filterType is SQL92"
            )
        return expression
    if expression != "*" and not tags_of(expression):
        raise OptionError(f"option subExpression: * or tags such as A || B, not {expression!r}")
    return expression


def _subscription(values: OptionValues) -> tuple[tuple[str, ...], str | None, tuple[Queue, ...]]:
    ways = ("subscribe", "subscribePattern", "assign")
    given = [name for name in ways if values.text(name) is not None]
    if len(given) != 1:
        raise OptionError(f"exactly one of the options {', '.join(ways)} is required, not {given or 'none'}")
    if given == ["subscribe"]:
        topics = tuple(part.strip() for part in (values.text("subscribe") or "").split(",") if part.strip())
        if not topics:
            raise OptionError("option subscribe: topic names with commas between them, not nothing")
        return topics, None, ()
    if given == ["subscribePattern"]:
        pattern = values.required("subscribePattern", "Orders.*")
        try:
            re.compile(pattern)
        except re.error as error:
            raise OptionError(
                f"option subscribePattern: a regular expression, not {pattern!r}: {error}"
            ) from error
        return (), pattern, ()
    text = values.text("assign") or ""
    try:
        named = {
            topic: {broker: dict.fromkeys(map(str, _queue_ids(ids)), 0) for broker, ids in brokers.items()}
            for topic, brokers in json.loads(text).items()
        }
        queues = tuple(sorted(offsets_from_json(named)))
    except (ValueError, TypeError, AttributeError) as error:
        raise OptionError(
            f'option assign: JSON such as {{"T":{{"broker-a":[0,1]}}}}, not {text!r:.100}'
        ) from error
    if not queues:
        raise OptionError("option assign: names no queue")
    return (), None, queues


def _queue_ids(value: Any) -> list[int]:
    """`ValueError` for what is no list of whole numbers: of a text every digit would be taken for a queue."""
    if type(value) is not list:
        raise ValueError(f"{value!r} is no list of queues")
    check_whole(value)
    return value


def _plan_timeout_ms(values: OptionValues, retry_timeout_ms: int) -> int:
    """How long planning asks again: the Kafka connector's pair of options where one is given, else as for pulls."""
    retries = values.maybe("fetchOffset.numRetries", least=0)
    interval_ms = values.maybe("fetchOffset.retryIntervalMs", least=0)
    if retries is None and interval_ms is None:
        return retry_timeout_ms
    return (3 if retries is None else retries) * (10 if interval_ms is None else interval_ms)


def _place(values: OptionValues, which: str, default: str) -> StartOrEnd:
    """Timestamp wins over timestamps by queue, and those over offsets, as with Kafka."""
    name = f"{which}Timestamp"
    moment = values.maybe(name, least=0)
    if moment is not None:
        return StartOrEnd("timestamp", timestamp_ms=moment, option=name)
    name = f"{which}OffsetsByTimestamp"
    text = values.text(name)
    if text is not None:
        return StartOrEnd("timestamps", text=text, option=name)
    name = f"{which}Offsets"
    text = (values.text(name) or default).strip()
    if text.lower() in (EARLIEST, LATEST, COMMITTED):
        return StartOrEnd(text.lower(), option=name)
    if not text.startswith("{"):
        raise OptionError(f"option {name}: earliest, latest, committed or JSON of offsets, not {text!r}")
    return StartOrEnd("offsets", text=text, option=name)


def _check_places(start: StartOrEnd, end: StartOrEnd, *, has_group: bool, is_stream: bool) -> None:
    if start.kind == LATEST and not is_stream:
        raise OptionError("option startingOffsets: latest is for streams; a batch would read nothing")
    if end.kind == EARLIEST:
        raise OptionError("option endingOffsets: latest, committed or JSON of offsets, not earliest")
    if is_stream and end.kind != LATEST:
        raise OptionError(f"option {end.option}: a stream has no end; it is for batches")
    if COMMITTED in (start.kind, end.kind) and not has_group:
        raise OptionError("option startingOffsets or endingOffsets: committed needs groupId")


def matching_topics(pattern: str, there: list[str]) -> list[str]:
    """The topics a pattern means; system, retry and dead-letter topics only where they are named in full."""
    compiled = re.compile(pattern)
    return sorted(
        topic for topic in there if compiled.fullmatch(topic) and not topic.startswith(SYSTEM_PREFIXES)
    )
