"""LmqOffsetTable: the offset table of a broker with light queues, kept in config/lmqConsumerOffset.json.

A light queue has only queue 0, so the file holds a plain number for it; inside it is an ordinary entry:

    {"dataVersion":{...}, "lmqOffsetTable":{"%LMQ%x@%LMQ%g":5}, "offsetTable":{"topic@group":{"0":120}}, ...}

Used in place of `OffsetTable` when `enableLmq` is set.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import field
from pocketmq.protocol.bodies.offsets import ConsumerOffsetSerializeWrapper
from pocketmq.protocol.message.topics import LMQ_PREFIX, is_lmq
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout
from pocketmq.store.files.json_file import MAX_FILE_BYTES

from .offset_table import SEPARATOR, Offsets, OffsetTable

_LMQ_GROUP = SEPARATOR + LMQ_PREFIX


class _LmqOffsetFile(ConsumerOffsetSerializeWrapper, frozen=True):
    lmq_offset_table: dict[str, int] = field(default_factory=dict)


class LmqOffsetTable(OffsetTable):
    """Official LmqConsumerOffsetManager: for a group named `%LMQ%...` the queue id of a call is ignored."""

    def __init__(
        self, config_folder: Path, now_ms: Callable[[], int], *, update_version_step: int = 500
    ) -> None:
        super().__init__(
            config_folder,
            now_ms,
            update_version_step=update_version_step,
            file_name=layout.LIGHT_CONSUMER_OFFSETS,
        )

    def commit(self, topic: str, group: str, queue_id: int, offset: int) -> None:
        super().commit(topic, group, 0 if is_lmq(group) else queue_id, offset)

    def query(self, topic: str, group: str, queue_id: int) -> int:
        return super().query(topic, group, 0 if is_lmq(group) else queue_id)

    def _tables(self, offsets: dict[str, Offsets]) -> dict[str, Any]:
        """The light queues have a member of their own."""
        return {
            "lmqOffsetTable": {key: of[0] for key, of in offsets.items() if _LMQ_GROUP in key and 0 in of},
            "offsetTable": {key: of for key, of in offsets.items() if _LMQ_GROUP not in key},
        }

    def read_content(self, content: bytes) -> bool:
        stored = fastjson.decode(content, _LmqOffsetFile, max_bytes=MAX_FILE_BYTES)
        self._offsets, self._topics, self._groups = {}, {}, {}
        light = {key: {0: offset} for key, offset in stored.lmq_offset_table.items()}
        for key, offsets in (stored.offset_table | light).items():
            self._add(key, offsets)
        self.data_version = stored.data_version or self.data_version
        return True
