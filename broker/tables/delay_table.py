"""DelayTable: delay levels and how far each has been delivered, kept in config/delayOffset.json.

    {"dataVersion":{...}, "offsetTable":{"3":7}}      key: level, from 1; value: next offset of queue level-1

The levels are the setting `messageDelayLevel`. The broker delivers the messages. Owner: the event-loop thread.
"""

from pathlib import Path
from typing import Final

from pocketmq.protocol.bodies.offsets import DelayOffsetSerializeWrapper
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout
from pocketmq.store.config import DEFAULT_DELAY_LEVELS, parse_delay_levels

from .json_table import JsonTable, NowMs

UPDATES_OF_A_VERSION: Final = 200
"""So many updates make a new data version (official delayOffsetUpdateVersionStep)."""
_UNKNOWN_LEVEL_DELAY_MS: Final = 1_000


class DelayTable(JsonTable):
    """The tables of the official ScheduleMessageService."""

    state_fields = ("_offsets",)
    body_type = DelayOffsetSerializeWrapper

    def __init__(self, folder: Path, now_ms: NowMs, message_delay_level: str = DEFAULT_DELAY_LEVELS) -> None:
        super().__init__(folder / layout.DELAY_OFFSETS, now_ms)
        self.levels = parse_delay_levels(message_delay_level)
        self._offsets: dict[int, int] = {}
        self._update_count = 0

    def deliver_timestamp(self, level: int, store_timestamp: int) -> int:
        """When a message stored at `store_timestamp` (ms) is due; a level that no longer exists waits one second."""
        return store_timestamp + self.levels.get(level, _UNKNOWN_LEVEL_DELAY_MS)

    def offset(self, level: int) -> int:
        """Next offset to deliver from queue `level - 1` of the schedule topic."""
        return self._offsets.get(level, 0)

    def levels_with_offset(self) -> list[int]:
        return sorted(self._offsets)

    def update(self, level: int, offset: int) -> None:
        """Set the offset of a level. An update to the same value, which an idle level makes all the time, does not
        write the file."""
        if self._offsets.get(level) != offset:
            self._offsets[level] = offset
            self.dirty = True
        self._update_count += 1
        if self._update_count % UPDATES_OF_A_VERSION == 0:
            self._changed()

    def correct(self, level: int, min_offset: int, max_offset: int) -> None:
        """Bring a stored offset back into its queue (official correctDelayOffset); does nothing for a level without
        one."""
        stored = self._offsets.get(level)
        if stored is None:
            return
        corrected = min(max(stored, min_offset), max_offset)
        if corrected != stored:
            self._offsets[level] = corrected
            self.dirty = True

    def replace_all(self, text: bytes) -> None:
        """At a slave: take over the master's reply to 45. Raises BodyError."""
        self.read_content(text)
        self.dirty = True

    def to_json(self, *, pretty: bool = True) -> bytes:
        """The file, or the body of the reply to 45."""
        offsets = DelayOffsetSerializeWrapper(offset_table=self._offsets, data_version=self.data_version)
        return fastjson.dumps(offsets, pretty=pretty, quote_integer_keys=pretty)

    def _read(self, stored: DelayOffsetSerializeWrapper) -> None:
        self._offsets.update(stored.offset_table)
        if stored.data_version is not None:
            self.data_version = stored.data_version
