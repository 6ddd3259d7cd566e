"""Options and columns of the sink: what they are, what they may be. No network."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from pocketmq.client.values.validators import check_group, check_topic

from ..errors import OptionError
from ..planning.access import NAMES as ACCESS_NAMES
from ..planning.access import NO_ACCESS_KEYS, Access, read_access
from ..planning.option_values import NAMESRV, OptionValues, canonical_options
from ..records.batch_encoder import COLUMNS

AT_LEAST_ONCE, IDEMPOTENT, TRANSACTIONAL = "at-least-once", "idempotent", "transactional"
DEFAULT_GROUP: Final = "spark-rocketmq-sink"
_NAMES: Final = (
    *(NAMESRV, "topic", "producerGroup", "guarantee", "batchRows", "batchBytes", "inFlight"),
    *("sendTimeoutMs", "retryTimeoutMs", "sendRetries", "maxRowsPerSecond", *ACCESS_NAMES),
)
_ALIASES: Final = {"nameServer": NAMESRV, "rocketmq.client.endpoints": NAMESRV}
_OF_SPARK: Final = ("checkpointlocation", "path", "queryname")
"""Options of the engine's own that come along."""


class SinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a writer needs; picklable."""

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
    """None: as often as `retry_timeout_ms` allows."""
    max_rows_per_second: int | None = None
    access: Access = NO_ACCESS_KEYS


def read_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """`OptionError` with one clear line for anything wrong."""
    own = {key: value for key, value in options.items() if key.lower() not in _OF_SPARK}
    values = OptionValues(canonical_options(own, _NAMES, _ALIASES))
    return SinkOptions(
        namesrv_addr=values.addresses(),
        topic=values.name("topic", check_topic),
        group=values.name("producerGroup", check_group) or DEFAULT_GROUP,
        guarantee=values.choice("guarantee", IDEMPOTENT, (AT_LEAST_ONCE, IDEMPOTENT, TRANSACTIONAL)),
        batch_rows=values.whole("batchRows", 1000),
        batch_bytes=values.whole("batchBytes", 512 * 1024, most=4 * 1024 * 1024),
        in_flight=values.whole("inFlight", 4, most=64),
        send_timeout_ms=values.whole("sendTimeoutMs", 10_000),
        retry_timeout_ms=values.whole("retryTimeoutMs", 60_000, least=0),
        send_retries=values.maybe("sendRetries", least=0),
        max_rows_per_second=values.maybe("maxRowsPerSecond"),
        access=read_access(values),
    )


def check_columns(fields: Iterable[tuple[str, str]], options: SinkOptions) -> None:
    """`OptionError` for a column that is not one of the sink's, of another type, or missing."""
    types = dict(fields)
    for name, kind in types.items():
        allowed = COLUMNS.get(name)
        if allowed is None:
            raise OptionError(f"column {name}: the sink knows {', '.join(COLUMNS)}; select those")
        if kind not in allowed:
            raise OptionError(f"column {name}: is {kind}, and should be {' or '.join(allowed)}")
    if "body" not in types:
        raise OptionError("column body: is required")
    if "topic" not in types and options.topic is None:
        raise OptionError("no column topic and no option topic: one of them is required")
    if {"delayTimeLevel", "deliverTimestamp"} <= types.keys():
        raise OptionError("columns delayTimeLevel and deliverTimestamp: only one of them can decide")
    is_delayed = {"delayTimeLevel", "deliverTimestamp"} & types.keys()
    if options.guarantee == TRANSACTIONAL and is_delayed:
        raise OptionError(f"column {is_delayed.pop()}: a message of a transaction cannot be delayed")
