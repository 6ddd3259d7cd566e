"""Messages sent again as they are: body, keys, tag, properties, sharding key, flag and id. No Spark.

A compressed body stays compressed: it is sent by itself, because all messages of a batch have one compression.

Properties with a meaning for brokers (delay, transaction, retries) are left out, because they would act once more. The
id is kept, so a consumer that knows the message recognises the copy. A message without UNIQ_KEY gets its offset id. A
copy of a message that waits for a retry, or is dead, can keep its attempts and where it came from: in another cluster
nothing else says that.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np
from pocketmq.protocol.message.flags import COMPRESSED, COMPRESSION_MASK
from pocketmq.protocol.message.properties import (
    DLQ_ORIGIN_MESSAGE_ID,
    DLQ_ORIGIN_TOPIC,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
)
from pocketmq.protocol.message.topics import is_retry_topic

from ...tables.brokers.batch_sender import BatchSender
from ...tables.records.batch_encoder import NOT_SENT, copied_texts, elements, requests

COLUMNS: Final = ("body", "properties", "msgId", "flag", "sysFlag", "bornTimestamp")
"""The columns that a copy needs: the body as it is stored, which `sysFlag` says."""
OF_ATTEMPTS: Final = frozenset((RETRY_TOPIC, DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID, ORIGIN_MESSAGE_ID))
ATTEMPTS: Final = "reconsumeTimes"
"""The column with the number of attempts."""
BATCH_ROWS: Final = 4000
BATCH_BYTES: Final = 2 * 1024 * 1024
"""Half of what brokers accept unless they are configured otherwise."""


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """The copies of rows [first, stop) of a batch, as one request: a batch body, or one message with its property
    text."""

    first: int
    stop: int
    body: Any
    born_ms: int
    """When the first of them was born: the messages of a request have one time."""
    properties: str | None = None
    flag: int = 0
    sys_flag: int = 0
    attempts: int = 0

    def request(self, sender: BatchSender, topic: str) -> Any:
        """What `sender` sends with the body."""
        return sender.request(
            topic,
            self.properties,
            flag=self.flag,
            sys_flag=self.sys_flag,
            reconsume_times=self.attempts,
            born_timestamp=self.born_ms,
        )


def copies_of(
    batch: Any,
    topic: str,
    *,
    extra: Mapping[str, str] | None = None,
    max_bytes: int = BATCH_BYTES,
    keeps_attempts: bool = False,
) -> Iterator[Copy]:
    """The requests for the rows of a batch, in their order.

    A request has at most `max_bytes`, with 0 one message. `keeps_attempts` needs the column `ATTEMPTS`.
    """
    dropped = NOT_SENT - OF_ATTEMPTS if keeps_attempts else NOT_SENT
    texts = copied_texts(batch.column("properties"), batch.column("msgId"), extra or {}, dropped)
    born_ms = (np.asarray(batch.column("bornTimestamp").cast("int64")) // 1000).tolist()
    flags = np.asarray(batch.column("sysFlag"), dtype=np.int64)
    is_compressed = (flags & COMPRESSED) != 0

    def single(row: int) -> Copy:
        return Copy(
            first=row,
            stop=row + 1,
            body=batch.column("body")[row].as_py(),
            born_ms=born_ms[row],
            properties=texts[row].as_py(),
            flag=batch.column("flag")[row].as_py(),
            sys_flag=int(flags[row]) & (COMPRESSED | COMPRESSION_MASK) if is_compressed[row] else 0,
            attempts=batch.column(ATTEMPTS)[row].as_py() if keeps_attempts else 0,
        )

    if keeps_attempts or is_retry_topic(
        topic
    ):  # a batch has one number of attempts, a retry topic no batches
        yield from map(single, range(batch.num_rows))
        return
    edges = [0, *(np.flatnonzero(np.diff(is_compressed)) + 1).tolist(), batch.num_rows]
    for begin, end in itertools.pairwise(edges):
        if begin == end or is_compressed[begin]:  # a batch has one compression
            yield from map(single, range(begin, end))
            continue
        part, of_part = batch.slice(begin, end - begin), texts.slice(begin, end - begin)
        encoded = elements(part.column("body"), of_part, part.column("flag"))
        for first, stop, body in requests(encoded, BATCH_ROWS, max_bytes):
            if body is None:
                yield single(begin + first)
            else:
                first, stop = begin + first, begin + stop
                yield Copy(first=first, stop=stop, body=body, born_ms=born_ms[first])
