"""The columns of every table: name, Spark type and Arrow type, in a fixed order. No Spark.

A user schema may name any subset in any order; other columns are not decoded. Times are milliseconds on the wire and
become UTC timestamps.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from ...errors import OptionError

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
STRING_MAP: Final = pa.map_(pa.string(), pa.string())

MESSAGE_COLUMNS: Final[dict[str, tuple[str, Any]]] = {
    "topic": ("string", pa.string()),
    "brokerName": ("string", pa.string()),
    "queueId": ("int", pa.int32()),
    "queueOffset": ("bigint", pa.int64()),
    "keys": ("string", pa.string()),
    "tags": ("string", pa.string()),
    "body": ("binary", pa.binary()),
    "properties": ("map<string,string>", STRING_MAP),
    "flag": ("int", pa.int32()),
    "sysFlag": ("int", pa.int32()),
    "bornTimestamp": ("timestamp", TIMESTAMP),
    "storeTimestamp": ("timestamp", TIMESTAMP),
    "bornHost": ("string", pa.string()),
    "storeHost": ("string", pa.string()),
    "reconsumeTimes": ("int", pa.int32()),
    "msgId": ("string", pa.string()),
    "offsetMsgId": ("string", pa.string()),
    "bodyCRC": ("int", pa.int32()),
    "physicalOffset": ("bigint", pa.int64()),
    "storeSize": ("int", pa.int32()),
    "preparedTransactionOffset": ("bigint", pa.int64()),
    "transactionId": ("string", pa.string()),
}
"""Column -> (Spark type, Arrow type).

`msgId` is UNIQ_KEY, else the offset message id. `transactionId` is the UNIQ_KEY of a message that was sent in a
transaction.
"""

STORE_COLUMNS: Final[dict[str, tuple[str, Any]]] = {
    **MESSAGE_COLUMNS,
    "file": ("string", pa.string()),
    "status": ("string", pa.string()),
}
"""`rocketmq-store` adds the file, and a status: `ok`, `bad magic`, `bad size`, `bad offset`, `bad crc` or `missing`."""

CONSUME_QUEUE_COLUMNS: Final[dict[str, tuple[str, Any]]] = {
    "topic": ("string", pa.string()),
    "queueId": ("int", pa.int32()),
    "queueOffset": ("bigint", pa.int64()),
    "physicalOffset": ("bigint", pa.int64()),
    "size": ("int", pa.int32()),
    "tagsCode": ("bigint", pa.int64()),
}
"""One unit of a consume queue."""

CONSUMER_OFFSET_COLUMNS: Final[dict[str, tuple[str, Any]]] = {
    "group": ("string", pa.string()),
    "topic": ("string", pa.string()),
    "queueId": ("int", pa.int32()),
    "offset": ("bigint", pa.int64()),
}
"""One row of a consumer offset table."""


RUN_COLUMNS: Final[dict[str, tuple[str, Any]]] = {
    "status": ("string", pa.string()),
    "topic": ("string", pa.string()),
    "queueId": ("int", pa.int32()),
    "firstOffset": ("bigint", pa.int64()),
    "lastOffset": ("bigint", pa.int64()),
    "firstPosition": ("bigint", pa.int64()),
    "lastPosition": ("bigint", pa.int64()),
    "records": ("bigint", pa.int64()),
    "bytes": ("bigint", pa.int64()),
    "firstTime": ("timestamp", TIMESTAMP),
    "lastTime": ("timestamp", TIMESTAMP),
    "file": ("string", pa.string()),
}
"""Consecutive records of one queue (`ok`), or what is wrong at a position or with a queue (any other status).

The times are the earliest and latest store time. `file` is filled for damage.
"""

STATISTIC_COLUMNS: Final[dict[str, tuple[str, Any]]] = {
    "topic": ("string", pa.string()),
    "queueId": ("int", pa.int32()),
    "tags": ("string", pa.string()),
    "minute": ("timestamp", TIMESTAMP),
    "messages": ("bigint", pa.int64()),
    "bytes": ("bigint", pa.int64()),
    "bodyBytes": ("bigint", pa.int64()),
    "largest": ("bigint", pa.int64()),
    "firstTime": ("timestamp", TIMESTAMP),
    "lastTime": ("timestamp", TIMESTAMP),
}
"""Counts by the columns that are asked for among the first four. A group may have a row in each task.

`largest` is the most bytes of a record; the times are the earliest and latest store time.
"""

LEAN_COLUMNS: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "keys", "tags", "body"),
    *("bornTimestamp", "storeTimestamp", "reconsumeTimes", "msgId"),
)
"""The columns of messages unless others are chosen: Spark hands every column to the JVM, used or not."""
LEAN, ALL = "lean", "all"


def ddl(columns: dict[str, tuple[str, Any]]) -> str:
    """The Spark schema text of a set of columns."""
    return ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())


def arrow_schema(columns: dict[str, tuple[str, Any]], names: Sequence[str]) -> Any:
    """The Arrow schema of the named columns, in that order."""
    return pa.schema([(name, columns[name][1]) for name in names])


def check_names(columns: dict[str, tuple[str, Any]], fields: Iterable[tuple[str, str]]) -> list[str]:
    """The names of a user schema of (name, Spark type) fields. `OptionError` for an unknown column or another type."""
    names = []
    for name, kind in fields:
        known = columns.get(name)
        if known is None:
            raise OptionError(f"unknown column {name}", f"; the columns are {', '.join(columns)}")
        if known[0] != kind:
            raise OptionError(f"column {name}", f"must be {known[0]}, got {kind}")
        names.append(name)
    return names


JOURNAL_COLUMNS: Final[dict[str, tuple[str, Any]]] = {
    "kind": ("string", pa.string()),
    "time": ("timestamp", TIMESTAMP),
    "answered": ("timestamp", TIMESTAMP),
    "tookMicros": ("bigint", pa.int64()),
    "connection": ("bigint", pa.int64()),
    "server": ("string", pa.string()),
    "peer": ("string", pa.string()),
    "clientId": ("string", pa.string()),
    "code": ("int", pa.int32()),
    "request": ("string", pa.string()),
    "language": ("string", pa.string()),
    "version": ("int", pa.int32()),
    "oneway": ("boolean", pa.bool_()),
    "group": ("string", pa.string()),
    "topic": ("string", pa.string()),
    "queueId": ("int", pa.int32()),
    "fields": ("map<string,string>", STRING_MAP),
    "bodyBytes": ("int", pa.int32()),
    "bodyCRC": ("bigint", pa.int64()),
    "replyCode": ("int", pa.int32()),
    "replyRemark": ("string", pa.string()),
    "replyFields": ("map<string,string>", STRING_MAP),
    "replyBytes": ("int", pa.int32()),
    "replyCRC": ("bigint", pa.int64()),
    "detail": ("string", pa.string()),
    "count": ("bigint", pa.int64()),
    "journal": ("string", pa.string()),
    "file": ("string", pa.string()),
}
"""`kind` is exchange, connected, closed, pushed or dropped (`count` entries). `journal` names one run of one broker."""
