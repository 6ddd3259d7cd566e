"""What many messages share in their records, as bytes: made once for each topic, flags and hosts.

The layout of a record is drawn in `protocol/message/record.py`; `core/records.py` packs it. Official class:
MessageExtEncoder.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pocketmq.core.records import Head
from pocketmq.protocol.message.flags import TRANSACTION_MASK, TRANSACTION_ROLLBACK, is_queued
from pocketmq.protocol.message.record import (
    MAGIC_V1,
    MAGIC_V2,
    MAX_TOPIC_BYTES_V1,
    RecordError,
    sys_flag_for_hosts,
)
from pocketmq.protocol.message.topics import RETRY_PREFIX, SCHEDULE_TOPIC

from ..put_values import PutStatus, RefusedError

_MAX_HEADS: Final = 4096
_MAX_TOPIC_BYTES: Final = 255
_CONSTANTS: Final = struct.Struct(">iii")
_INT: Final = struct.Struct(">i")

HashStarts = Callable[[str], tuple[int, int]]
"""topic -> Java's hashes of the texts before a key and before tags in the index; -1 for what is not indexed"""


FindHead = Callable[[str, int, int, bytes, bytes, int], Head]
"""(topic, flag, sysFlag, born host, store host, reconsume times) -> what such messages share. Raises RefusedError for a
topic or host that no record can hold."""


def record_heads(hash_starts: HashStarts, delays_ms: tuple[int, ...], *, may_write_v2: bool) -> FindHead:
    """Finds heads, and keeps those in use. `delays_ms`: of the levels from 1 on. `may_write_v2`:
    autoMessageVersionOnTopicLen."""

    @lru_cache(_MAX_HEADS)
    def find(
        topic: str, flag: int, sys_flag: int, born_host: bytes, store_host: bytes, reconsume_times: int
    ) -> Head:
        magic, topic_bytes = _topic(topic, may_write_v2=may_write_v2)
        try:
            sys_flag = sys_flag_for_hosts(sys_flag, born_host, store_host)
            constants = _CONSTANTS.pack(magic, flag, sys_flag)
            host_and_times = store_host + _INT.pack(reconsume_times)
        except (RecordError, struct.error) as error:
            raise RefusedError(PutStatus.MESSAGE_ILLEGAL, str(error)) from error
        is_rollback = sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK
        keys_start, tags_start = (-1, -1) if is_rollback else hash_starts(topic)
        return Head(
            constants,
            born_host,
            host_and_times,
            topic_bytes,
            keys_start,
            tags_start,
            topic,
            is_queued(sys_flag),
            delays_ms if topic == SCHEDULE_TOPIC else (),
        )

    return find


def _topic(topic: str, *, may_write_v2: bool) -> tuple[int, bytes]:
    """Magic, and a topic with its length before it."""
    data = topic.encode()
    limit = _MAX_TOPIC_BYTES if topic.startswith(RETRY_PREFIX) else MAX_TOPIC_BYTES_V1
    if not data or len(data) > limit:
        raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"topic of {len(data)} bytes: {topic!r}")
    if len(topic) > MAX_TOPIC_BYTES_V1 and may_write_v2:
        return MAGIC_V2, len(data).to_bytes(2, "big") + data
    if len(data) > MAX_TOPIC_BYTES_V1:
        # Few characters, many bytes: V1 by the official rule, whose signed length byte no reader gets right.
        raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"topic of {len(data)} bytes: {topic!r}")
    return MAGIC_V1, len(data).to_bytes(1, "big") + data
