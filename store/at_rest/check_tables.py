"""Can the tables of `config/` be read, and is no stored offset ahead of its queue?"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, TypeVar

from pocketmq.protocol.bodies.broker import TimerMetricsSerializeWrapper, TransactionMetricsSerializeWrapper
from pocketmq.protocol.bodies.group_config import SubscriptionGroupWrapper
from pocketmq.protocol.bodies.offsets import ConsumerOffsetSerializeWrapper, DelayOffsetSerializeWrapper
from pocketmq.protocol.bodies.topic_config import TopicConfigSerializeWrapper
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.topics import SYSTEM_TOPICS
from pocketmq.protocol.text import fastjson

from .. import layout
from ..files.json_file import MAX_FILE_BYTES
from .findings import Findings, Place

_TABLES: Final[dict[str, type[Any]]] = {
    layout.TOPICS: TopicConfigSerializeWrapper,
    layout.GROUPS: SubscriptionGroupWrapper,
    layout.CONSUMER_OFFSETS: ConsumerOffsetSerializeWrapper,
    layout.DELAY_OFFSETS: DelayOffsetSerializeWrapper,
    layout.TIMER_METRICS: TimerMetricsSerializeWrapper,
    layout.TRANSACTION_METRICS: TransactionMetricsSerializeWrapper,
    layout.CONSUMER_FILTERS: dict,
    layout.LIGHT_CONSUMER_OFFSETS: dict,
    layout.CONSUMER_ORDER: dict,
    layout.REQUEST_MODES: dict,
    layout.USERS: dict,
    layout.ACLS: dict,
}
"""The class that a start reads each file of `config/` into; of those that belong to the broker only that it is JSON."""
_Table = TypeVar("_Table")


class TableCheck:
    """Reads the tables; `run` compares them with the queues."""

    def __init__(self, root: Path, findings: Findings) -> None:
        self._root = root
        self._findings = findings
        self._tables = {
            name: self._table(root / layout.CONFIG / name, form) for name, form in _TABLES.items()
        }

    @property
    def topics(self) -> Collection[str] | None:
        """The topics that a start would know; None without a table that can be read."""
        table = self._tables[layout.TOPICS]
        return None if table is None else table.topic_config_table

    def run(self, places: Collection[Place], ends: dict[Place, int]) -> None:
        """`places` are the queues of the log, `ends` the max offsets of all queues."""
        if self.topics is not None:
            # A 4.9 broker keeps no entry for the topic of ended transactions, which nobody can delete.
            for topic in sorted({topic for topic, _ in places} - set(self.topics) - SYSTEM_TOPICS):
                self._findings.remark(
                    self._root / layout.CONFIG / layout.TOPICS,
                    f"does not know topic {topic}, which has messages in the log: it was deleted, or the table is old",
                )
        offsets = self._tables[layout.CONSUMER_OFFSETS]
        if offsets is not None:
            self._offsets(offsets, ends)

    def _table(self, path: Path, form: type[_Table]) -> _Table | None:
        """The table of the file, or of its backup; None if neither holds one."""
        faults = []
        for candidate, start in (
            (path, "it would use the backup"),
            (path.with_name(path.name + layout.BACKUP_ENDING), ""),
        ):
            if candidate.is_dir():
                self._findings.damage(candidate, "is a folder", "it would refuse")
                return None
            if not candidate.exists() or not candidate.stat().st_size:
                continue
            try:
                table = fastjson.decode(candidate.read_bytes(), form, max_bytes=MAX_FILE_BYTES)
            except BodyError as error:
                faults.append((candidate, f"is damaged: {error}", start))
                continue
            for place, what, consequence in faults:
                self._findings.damage(place, what, consequence)
            return table
        for place, what, _ in faults:
            self._findings.damage(place, what, "it would refuse")
        return None

    def _offsets(self, table: ConsumerOffsetSerializeWrapper, ends: dict[Place, int]) -> None:
        path = self._root / layout.CONFIG / layout.CONSUMER_OFFSETS
        for key, queues in table.offset_table.items():
            topic, _, group = key.partition("@")
            for queue_id, offset in queues.items():
                end = ends.get((topic, queue_id))
                if end is not None and offset > end:
                    self._findings.damage(
                        path,
                        f"group {group} has offset {offset} in {topic}-{queue_id}, which ends at {end}",
                        "it would keep the offset; consumers correct it when they pull",
                    )
