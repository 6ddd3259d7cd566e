"""Messages sent again as they are: body, keys, tag, properties, sharding key, flag and id. No Spark.

A compressed body stays compressed: it is sent by itself, because all messages of a batch have one compression.

Properties with a meaning for brokers (delay, transaction, retries) are left out, because they would act once more. The
id is kept, so a consumer that knows the message recognises the copy. A message without UNIQ_KEY gets its offset id. A
copy of a message that waits for a retry, or is dead, can keep its attempts and where it came from: in another cluster
nothing else says that.
"""

import itertools
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pocketmq.protocol.message.flags import COMPRESSED, COMPRESSION_MASK
from pocketmq.protocol.message.properties import (
    DLQ_ORIGIN_MESSAGE_ID,
    DLQ_ORIGIN_TOPIC,
    KEYS,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    SHARDING_KEY,
    TAGS,
    UNIQ_KEY,
    WAIT,
    encode_properties_text,
)
from pocketmq.protocol.message.topics import is_retry_topic

from ..brokers.batch_sender import BatchSender, Stored
from ..planning.positions import Queue
from ..records.batch_encoder import RESERVED, elements, requests

COLUMNS: Final = ("body", "properties", "msgId", "flag", "sysFlag")
"""The columns that a copy needs: the body as it is stored, which `sysFlag` says."""
DROPPED: Final = RESERVED - {KEYS, TAGS, SHARDING_KEY}
OF_ATTEMPTS: Final = frozenset((RETRY_TOPIC, DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID, ORIGIN_MESSAGE_ID))
ATTEMPTS: Final = "reconsumeTimes"
"""The column with the number of attempts."""
StoredRows = Callable[[int, int, Queue, int], None]
BATCH_ROWS: Final = 1000
BATCH_BYTES: Final = 512 * 1024


def property_text(
    properties: Sequence[tuple[str, str]],
    message_id: str,
    extra: Mapping[str, str],
    dropped: Container[str] = DROPPED,
) -> str:
    """The property text of a copy."""
    kept = {name: value for name, value in properties if name not in dropped and value}
    return encode_properties_text({**kept, **extra, WAIT: "true", UNIQ_KEY: message_id})


def property_texts(batch: Any, extra: Mapping[str, str], dropped: Container[str] = DROPPED) -> Any:
    """The property texts of the rows of a batch, as an Arrow array."""
    maps, ids = batch.column("properties").to_pylist(), batch.column("msgId").to_pylist()
    return pa.array(
        [property_text(pairs or (), one, extra, dropped) for pairs, one in zip(maps, ids, strict=True)],
        pa.string(),
    )


def send_copies(
    sender: BatchSender,
    batch: Any,
    topic: str,
    queue: Queue | None,
    *,
    extra: Mapping[str, str] | None = None,
    stored: StoredRows | None = None,
    most_bytes: int | None = None,
    keeps_attempts: bool = False,
) -> None:
    """Start sending the rows of a batch, in their order if `queue` is named.

    A request has at most `most_bytes`, with 0 one message. `keeps_attempts` needs the column `ATTEMPTS`.

    `stored(first, stop, queue, offset)` is called for rows [first, stop) once the broker says where their first is.
    """
    texts = property_texts(batch, extra or {}, DROPPED - OF_ATTEMPTS if keeps_attempts else DROPPED)
    if keeps_attempts or is_retry_topic(
        topic
    ):  # a batch has one number of attempts, a retry topic no batches
        _send_singly(sender, batch, texts, topic, queue, 0, stored, keeps_attempts=keeps_attempts)
        return
    most_bytes = BATCH_BYTES if most_bytes is None else most_bytes
    is_compressed = _compressions(batch) != 0
    edges = [0, *(np.flatnonzero(np.diff(is_compressed)) + 1).tolist(), batch.num_rows]
    for first, stop in itertools.pairwise(edges):
        part, of_part = batch.slice(first, stop - first), texts.slice(first, stop - first)
        if stop > first and is_compressed[first]:  # a batch has one compression
            _send_singly(sender, part, of_part, topic, queue, first, stored)
        else:
            _send_batches(sender, part, of_part, topic, queue, first, stored, most_bytes)


def _compressions(batch: Any) -> Any:
    """How each body is compressed, in the bits of sysFlag; 0 if it is not."""
    flags = np.asarray(batch.column("sysFlag"), dtype=np.int64)
    return np.where(flags & COMPRESSED, flags & (COMPRESSED | COMPRESSION_MASK), 0)


def _send_batches(
    sender: BatchSender,
    batch: Any,
    texts: Any,
    topic: str,
    queue: Queue | None,
    begin: int,
    stored: StoredRows | None,
    most_bytes: int,
) -> None:
    encoded = elements(batch.column("body"), texts, batch.column("flag"))
    for first, stop, body in requests(encoded, BATCH_ROWS, most_bytes):
        if body is None:
            one, of_one = batch.slice(first, 1), texts.slice(first, 1)
            _send_singly(sender, one, of_one, topic, queue, begin + first, stored)
        else:
            told = _told(stored, begin + first, begin + stop)
            sender.send_batch(topic, body, stop - first, queue=queue, stored=told)


def _send_singly(
    sender: BatchSender,
    batch: Any,
    texts: Any,
    topic: str,
    queue: Queue | None,
    first: int,
    stored: StoredRows | None,
    *,
    keeps_attempts: bool = False,
) -> None:
    attempts = batch.column(ATTEMPTS).to_pylist() if keeps_attempts else [0] * batch.num_rows
    bodies, flags = batch.column("body").to_pylist(), batch.column("flag").to_pylist()
    rows = zip(bodies, texts.to_pylist(), flags, attempts, _compressions(batch).tolist(), strict=True)
    for row, (body, text, flag, times, compression) in enumerate(rows, first):
        told = _told(stored, row, row + 1)
        sender.send_one(
            topic, body, text, flag, queue=queue, sys_flag=compression, stored=told, reconsume_times=times
        )


def _told(stored: StoredRows | None, first: int, stop: int) -> Stored | None:
    return None if stored is None else lambda queue, offset: stored(first, stop, queue, offset)
