"""Messages sent again as they are: body, keys, tag, properties, sharding key, flag and id. No Spark.

Properties with a meaning for brokers (delay, transaction, retries) are left out, because they would act once more. The
id is kept, so a consumer that knows the message recognises the copy. A message without UNIQ_KEY gets its offset id.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pocketmq.protocol.message.properties import (
    KEYS,
    SHARDING_KEY,
    TAGS,
    UNIQ_KEY,
    WAIT,
    encode_properties_text,
)
from pocketmq.protocol.message.topics import is_retry_topic

from ..brokers.batch_sender import BatchSender, Stored
from ..planning.positions import Queue
from ..records.batch_encoder import RESERVED, batch_slices, elements

COLUMNS: Final = ("body", "properties", "msgId", "flag")
"""The columns that a copy needs."""
DROPPED: Final = RESERVED - {KEYS, TAGS, SHARDING_KEY}
StoredRows = Callable[[int, int, Queue, int], None]
BATCH_ROWS: Final = 1000
BATCH_BYTES: Final = 512 * 1024


def property_text(properties: Sequence[tuple[str, str]], message_id: str, extra: Mapping[str, str]) -> str:
    """The property text of a copy."""
    kept = {name: value for name, value in properties if name not in DROPPED and value}
    return encode_properties_text({**kept, **extra, WAIT: "true", UNIQ_KEY: message_id})


def property_texts(batch: Any, extra: Mapping[str, str]) -> Any:
    """The property texts of the rows of a batch, as an Arrow array."""
    maps, ids = batch.column("properties").to_pylist(), batch.column("msgId").to_pylist()
    return pa.array(
        [property_text(pairs or (), one, extra) for pairs, one in zip(maps, ids, strict=True)], pa.string()
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
) -> None:
    """Start sending the rows of a batch, in their order if `queue` is named.

    A request has at most `most_bytes`, with 0 one message.

    `stored(first, stop, queue, offset)` is called for rows [first, stop) once the broker says where their first is.
    """
    texts = property_texts(batch, extra or {})
    if is_retry_topic(topic):  # brokers take no batches for these
        _send_singly(sender, batch, texts, topic, queue, 0, stored)
        return
    encoded = elements(batch.column("body"), texts, batch.column("flag"))
    sizes = np.diff(
        np.asarray(pa.Array.from_buffers(pa.int32(), len(encoded) + 1, [None, encoded.buffers()[1]]))
    )
    edges = np.concatenate(([0], np.cumsum(sizes)))
    most_bytes = BATCH_BYTES if most_bytes is None else most_bytes
    data = memoryview(encoded.buffers()[2])
    for first, stop in batch_slices(sizes.astype(np.int64), BATCH_ROWS, most_bytes):
        if stop - first == 1 and sizes[first] > most_bytes:
            # A batch of one is longer than the message alone, and may exceed the broker's limit.
            _send_singly(sender, batch.slice(first, 1), texts.slice(first, 1), topic, queue, first, stored)
            continue
        body = data[int(edges[first]) : int(edges[stop])]
        sender.send_batch(topic, body, stop - first, queue=queue, stored=_told(stored, first, stop))


def _send_singly(
    sender: BatchSender,
    batch: Any,
    texts: Any,
    topic: str,
    queue: Queue | None,
    first: int,
    stored: StoredRows | None,
) -> None:
    rows = zip(
        batch.column("body").to_pylist(), texts.to_pylist(), batch.column("flag").to_pylist(), strict=True
    )
    for row, (body, text, flag) in enumerate(rows, first):
        sender.send_one(topic, body, text, flag, queue=queue, stored=_told(stored, row, row + 1))


def _told(stored: StoredRows | None, first: int, stop: int) -> Stored | None:
    return None if stored is None else lambda queue, offset: stored(first, stop, queue, offset)
