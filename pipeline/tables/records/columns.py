"""The columns of every table: name, Spark type and Arrow type, in a fixed order. No Spark.

A user schema may name any subset in any order; other columns are not decoded. Times are milliseconds on the wire and
become UTC timestamps.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

Columns = dict[str, tuple[str, Any]]
"""Column -> (Spark type, Arrow type)."""
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
STRING_MAP: Final = pa.map_(pa.string(), pa.string())
_ARROW_TYPES: Final = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": TIMESTAMP,
    "map<string,string>": STRING_MAP,
}


def _columns(ddl: str) -> Columns:
    """The columns of a Spark schema text."""
    words = [word.rstrip(",") for word in ddl.split()]
    return {name: (kind, _ARROW_TYPES[kind]) for name, kind in zip(words[::2], words[1::2], strict=True)}


MESSAGE_COLUMNS: Final = _columns("""
    topic string, brokerName string, queueId int, queueOffset bigint, keys string, tags string, body binary,
    properties map<string,string>, flag int, sysFlag int, bornTimestamp timestamp, storeTimestamp timestamp,
    bornHost string, storeHost string, reconsumeTimes int, msgId string, offsetMsgId string, bodyCRC int,
    physicalOffset bigint, storeSize int, preparedTransactionOffset bigint, transactionId string
""")
"""`msgId` is UNIQ_KEY, else the offset message id. `transactionId` is the UNIQ_KEY of a message that was sent in a
transaction."""
STORE_COLUMNS: Final = MESSAGE_COLUMNS | _columns("file string, status string")
"""`rocketmq-store` adds the file, and a status: `ok`, `bad magic`, `bad size`, `bad offset`, `bad crc` or `missing`."""
CONSUME_QUEUE_COLUMNS: Final = _columns(
    "topic string, queueId int, queueOffset bigint, physicalOffset bigint, size int, tagsCode bigint"
)
"""One unit of a consume queue."""
CONSUMER_OFFSET_COLUMNS: Final = _columns("group string, topic string, queueId int, offset bigint")
"""One row of a consumer offset table."""
RUN_COLUMNS: Final = _columns("""
    status string, topic string, queueId int, firstOffset bigint, lastOffset bigint, firstPosition bigint,
    lastPosition bigint, records bigint, bytes bigint, firstTime timestamp, lastTime timestamp, file string
""")
"""Consecutive records of one queue (`ok`), or what is wrong at a position or with a queue (any other status).

The times are the earliest and latest store time. `file` is filled for damage.
"""
STATISTIC_COLUMNS: Final = _columns("""
    topic string, queueId int, tags string, minute timestamp, messages bigint, bytes bigint, bodyBytes bigint,
    largest bigint, firstTime timestamp, lastTime timestamp
""")
"""Counts by the columns that are asked for among the first four. A group may have a row in each task.

`largest` is the most bytes of a record; the times are the earliest and latest store time.
"""
JOURNAL_COLUMNS: Final = _columns("""
    kind string, time timestamp, answered timestamp, tookMicros bigint, connection bigint, server string, peer string,
    clientId string, code int, request string, language string, version int, oneway boolean, group string, topic string,
    queueId int, fields map<string,string>, bodyBytes int, bodyCRC bigint, replyCode int, replyRemark string,
    replyFields map<string,string>, replyBytes int, replyCRC bigint, detail string, count bigint, journal string,
    file string
""")
"""`kind` is exchange, connected, closed, pushed or dropped (`count` entries). `journal` names one run of one broker."""
LEAN_COLUMNS: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "keys", "tags", "body"),
    *("bornTimestamp", "storeTimestamp", "reconsumeTimes", "msgId"),
)
"""The columns of messages unless others are chosen: Spark hands every column to the JVM, used or not."""
LEAN, ALL = "lean", "all"


def ddl(columns: Columns) -> str:
    """The Spark schema text of a set of columns."""
    return ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())


def arrow_schema(columns: Columns, names: Sequence[str] | None = None) -> Any:
    """The Arrow schema of the named columns, in that order; of all without names."""
    return pa.schema([(name, columns[name][1]) for name in (columns if names is None else names)])
