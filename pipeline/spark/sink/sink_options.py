"""Options and columns of the sink: names, defaults, allowed values and types. No network."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from pocketmq.client.access import NO_ACCESS_KEYS, Access
from pocketmq.client.values.validators import check_group, check_topic

from ...errors import OptionError
from ...tables.planning.access_names import ACCESS_NAMES, read_access
from ...tables.planning.option_values import NAMESRV, OptionValues, canonical_options
from ...tables.planning.spelling import SINK_COLUMNS, SINK_OPTIONS, kafka_hint
from ...tables.records.batch_encoder import COLUMNS

AT_LEAST_ONCE, IDEMPOTENT, TRANSACTIONAL = "at-least-once", "idempotent", "transactional"
DEFAULT_GROUP: Final = "spark-rocketmq-sink"
_NAMES: Final = (
    *(NAMESRV, "topic", "guarantee", "producerGroup", "batchRows", "batchBytes", "inFlight"),
    *("sendTimeoutMs", "retryTimeoutMs", "sendRetries", "maxRowsPerSecond"),
    *ACCESS_NAMES,
)
"""In the order of docs/pipeline.md, which says what each of them means."""
_ALIASES: Final = {"nameServer": NAMESRV, "rocketmq.client.endpoints": NAMESRV}
_SPARK_OPTIONS: Final = ("checkpointlocation", "path", "queryname")
"""Spark's own options, which it passes along."""


class SinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All options of a writer; picklable."""

    namesrv_addr: str
    topic: str | None = None
    group: str = DEFAULT_GROUP
    guarantee: str = IDEMPOTENT
    batch_rows: int = 1000
    batch_bytes: int = 512 * 1024
    in_flight: int = 4
    send_timeout_ms: int = 10_000
    retry_timeout_ms: int = 60_000
    send_retries: int | None = None
    """None: as many as `retry_timeout_ms` allows."""
    max_rows_per_second: int | None = None
    access: Access = NO_ACCESS_KEYS


def read_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """`OptionError` with one clear line for anything wrong."""
    own = {key: value for key, value in options.items() if key.lower() not in _SPARK_OPTIONS}
    values = OptionValues(canonical_options(own, _NAMES, _ALIASES, SINK_OPTIONS))
    return SinkOptions(
        namesrv_addr=values.name_servers(),
        topic=values.resource_name("topic", check_topic),
        group=values.resource_name("producerGroup", check_group) or DEFAULT_GROUP,
        guarantee=values.choice("guarantee", IDEMPOTENT, (AT_LEAST_ONCE, IDEMPOTENT, TRANSACTIONAL)),
        batch_rows=values.integer("batchRows", 1000),
        batch_bytes=values.integer("batchBytes", 512 * 1024, most=4 * 1024 * 1024),
        in_flight=values.integer("inFlight", 4, most=64),
        send_timeout_ms=values.integer("sendTimeoutMs", 10_000),
        retry_timeout_ms=values.integer("retryTimeoutMs", 60_000, least=0),
        send_retries=values.optional_integer("sendRetries", least=0),
        max_rows_per_second=values.optional_integer("maxRowsPerSecond"),
        access=read_access(values),
    )


def check_columns(fields: Iterable[tuple[str, str]], options: SinkOptions) -> None:
    """`OptionError` for an unknown column, a column of another type, and a missing column."""
    types = dict(fields)
    for name, kind in types.items():
        allowed = COLUMNS.get(name)
        if allowed is None:
            meant = kafka_hint(name, SINK_COLUMNS)
            raise OptionError(f"unknown column {name}", f"{meant}; select columns of {', '.join(COLUMNS)}")
        if kind not in allowed:
            raise OptionError(f"column {name}", f"must be {' or '.join(allowed)}, got {kind}")
    if "body" not in types:
        raise OptionError("column body", "is required")
    if "topic" not in types and options.topic is None:
        raise OptionError("column topic or option topic", "is required")
    if "brokerName" in types and "queueId" not in types:
        raise OptionError("column queueId", "is required with column brokerName: together they name a queue")
    if {"delayTimeLevel", "deliverTimestamp"} <= types.keys():
        raise OptionError("columns delayTimeLevel and deliverTimestamp", ": select one of them")
    delay_columns = {"delayTimeLevel", "deliverTimestamp"} & types.keys()
    if options.guarantee == TRANSACTIONAL and delay_columns:
        raise OptionError(f"column {delay_columns.pop()}", ": a message of a transaction cannot be delayed")
