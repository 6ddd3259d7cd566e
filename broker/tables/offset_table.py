"""OffsetTable: how far each group has consumed each queue, kept in config/consumerOffset.json.

    {"dataVersion":{...}, "groupTopicMap":{...}, "offsetTable":{"topic@group":{"0":120}},
     "pullOffsetTable":{...}}

The value is the *next* offset to consume. Every commit is accepted: lower values overwrite, -1 means "no offset".
With `enableLmq` it is config/lmqConsumerOffset.json (LmqOffsetTable), which has a plain number for each light queue:

    {"lmqOffsetTable":{"%LMQ%x@%LMQ%g":5}, "offsetTable":{"topic@group":{"0":120}}, ...}

5.5.0 adds `groupTopicMap` and `pullOffsetTable` to the file; neither is read back, there or here. The broker decides
where a group without an offset starts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, Final

from msgspec import field
from msgspec.structs import replace
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.offsets import ConsumerOffsetSerializeWrapper
from pocketmq.protocol.message.topics import LMQ_PREFIX, is_lmq
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout

from .json_table import JsonTable, NowMs, TextOf
from .table_text import ENTRIES_IN_A_SLICE, MapText, file_pieces

NO_OFFSET: Final = -1
SEPARATOR: Final = "@"
COMMITS_OF_A_VERSION: Final = 500
"""So many commits make a new data version (official consumerOffsetUpdateVersionStep)."""
_LMQ_GROUP: Final = SEPARATOR + LMQ_PREFIX

Offsets = dict[int, int]
"""Queue id to offset."""


class OffsetTable(JsonTable):
    """Official ConsumerOffsetManager. `commit` and `query` are on the pull path: two look-ups each."""

    file_name = layout.CONSUMER_OFFSETS
    body_type = ConsumerOffsetSerializeWrapper
    state_fields = ("_offsets", "_reset_offsets", "_pull_offsets", "_topics", "_groups")

    def __init__(self, folder: Path, now_ms: NowMs) -> None:
        super().__init__(folder / self.file_name, now_ms)
        self._offsets: dict[str, Offsets] = {}
        self._reset_offsets: dict[str, Offsets] = {}
        self._pull_offsets: dict[str, Offsets] = {}
        self._topics: dict[str, dict[str, None]] = {}
        """Group to the topics that it has offsets for: the keys of `_offsets`, by group."""
        self._groups: dict[str, dict[str, None]] = {}
        """The same by topic."""
        self._texts = {
            "offsetTable": MapText(dict.copy),
            "groupTopicMap": MapText(list),
            "pullOffsetTable": MapText(dict.copy),
        }
        self._commit_count = 0

    # --- committed offsets

    def commit(self, topic: str, group: str, queue_id: int, offset: int) -> None:
        key = topic + SEPARATOR + group
        offsets = self._offsets.get(key) or self._add(key, {})
        offsets[queue_id] = offset
        self.dirty = True
        self._commit_count += 1
        if self._commit_count % COMMITS_OF_A_VERSION == 0:
            self._changed()

    def query(self, topic: str, group: str, queue_id: int) -> int:
        """The pending reset offset, or the committed one, or NO_OFFSET."""
        key = topic + SEPARATOR + group
        if self._reset_offsets:
            pending = self._reset_offsets.get(key)
            if pending is not None and queue_id in pending:
                return pending[queue_id]
        offsets = self._offsets.get(key)
        return NO_OFFSET if offsets is None else offsets.get(queue_id, NO_OFFSET)

    def offsets(self, topic: str, group: str) -> Offsets | None:
        """Committed offset of each queue, None when the group never committed to the topic."""
        offsets = self._offsets.get(topic + SEPARATOR + group)
        return None if offsets is None else dict(offsets)

    # --- resets of 5.x: kept until the consumer has received them

    def assign_reset(self, topic: str, group: str, queue_id: int, offset: int) -> None:
        """Let the group continue at `offset`, which becomes its committed offset too. Ignores negative numbers."""
        if not topic or not group or queue_id < 0 or offset < 0:
            return
        key = topic + SEPARATOR + group
        self._reset_offsets.setdefault(key, {})[queue_id] = offset
        offsets = self._offsets.get(key) or self._add(key, {})
        offsets[queue_id] = offset
        self.dirty = True

    def has_reset(self, topic: str, group: str, queue_id: int) -> bool:
        """Whether commits of this queue must be ignored because the consumer has not received the reset yet."""
        if not self._reset_offsets:
            return False
        return queue_id in self._reset_offsets.get(topic + SEPARATOR + group, ())

    def take_reset(self, topic: str, group: str, queue_id: int) -> int | None:
        """Return and forget the pending reset offset (official queryThenEraseResetOffset)."""
        if not self._reset_offsets:
            return None
        key = topic + SEPARATOR + group
        pending = self._reset_offsets.get(key)
        if pending is None:
            return None
        offset = pending.pop(queue_id, None)
        if not pending:
            del self._reset_offsets[key]
        return offset

    # --- pull offsets of 5.x: where the last pull ended, committed or not

    def commit_pull(self, topic: str, group: str, queue_id: int, offset: int) -> None:
        self._pull_offsets.setdefault(topic + SEPARATOR + group, {})[queue_id] = offset
        self.dirty = True

    def query_pull(self, topic: str, group: str, queue_id: int) -> int:
        """End of the last pull, or the result of `query`."""
        offsets = self._pull_offsets.get(topic + SEPARATOR + group)
        offset = None if offsets is None else offsets.get(queue_id)
        return self.query(topic, group, queue_id) if offset is None else offset

    # --- the table as a whole

    def topics_of(self, group: str) -> set[str]:
        """Topics the group has offsets for (official whichTopicByConsumer)."""
        return set(self._topics.get(group, ()))

    def groups(self) -> list[str]:
        return list(self._topics)

    def groups_of(self, topic: str) -> set[str]:
        """Groups that have offsets for the topic (official whichGroupByTopic)."""
        return set(self._groups.get(topic, ()))

    def min_offsets(
        self, topic: str, min_offset: Callable[[int], int], filter_groups: Iterable[str] = ()
    ) -> Offsets:
        """Lowest committed offset of each queue over all groups but `filter_groups`, not counting offsets below the
        queue's `min_offset(queue_id)` (308).

        The official queryMinOffsetInAllGroup *deletes* the offsets of the filtered groups; here they are only skipped.
        """
        skipped = frozenset(filter_groups)
        result: Offsets = {}
        for group in self._groups.get(topic, {}).keys() - skipped:
            offsets = self._offsets[topic + SEPARATOR + group]
            for queue_id, offset in offsets.items():
                if offset >= min_offset(queue_id):
                    result[queue_id] = min(offset, result.get(queue_id, offset))
        return result

    def clone(self, source_group: str, target_group: str, topic: str) -> None:
        """The target group continues at the offsets of the source (314)."""
        offsets = self._offsets.get(topic + SEPARATOR + source_group)
        if offsets is not None:
            self._add(topic + SEPARATOR + target_group, dict(offsets))
            self.dirty = True

    def remove(self, topic: str, group: str) -> None:
        key = topic + SEPARATOR + group
        if self._offsets.pop(key, None) is not None:
            self._forget(key)
            self.dirty = True

    def remove_group(self, group: str) -> None:
        """Forget all offsets of a group (official removeOffset)."""
        self._remove((topic, group) for topic in self.topics_of(group))
        self._remove_uncommitted(lambda _, owner: owner == group)

    def remove_topics(self, topics: Set[str]) -> None:
        """Forget all offsets of topics (official cleanOffsetByTopic)."""
        self._remove((topic, group) for topic in topics for group in self.groups_of(topic))
        self._remove_uncommitted(lambda topic, _: topic in topics)

    def merge(self, table: Mapping[str, Offsets], data_version: DataVersion) -> None:
        """At a slave: replace the offsets of each topic@group that the master has; others stay."""
        for key, offsets in table.items():
            self._add(key, dict(offsets))
        self.data_version = data_version
        self.dirty = True

    def _add(self, key: str, offsets: Offsets) -> Offsets:
        topic, separator, group = key.partition(SEPARATOR)
        if separator and SEPARATOR not in group:
            self._topics.setdefault(group, {})[topic] = None
            self._groups.setdefault(topic, {})[group] = None
        self._offsets[key] = offsets
        return offsets

    def _forget(self, key: str) -> None:
        """A key that is in `_offsets` no more."""
        topic, _, group = key.partition(SEPARATOR)
        for index, owner, member in ((self._topics, group, topic), (self._groups, topic, group)):
            members = index.get(owner)
            if members is not None:
                members.pop(member, None)
                if not members:
                    del index[owner]

    def _remove(self, pairs: Iterable[tuple[str, str]]) -> None:
        for topic, group in pairs:
            self.remove(topic, group)

    def _remove_uncommitted(self, selected: Callable[[str, str], bool]) -> None:
        """Resets and pull offsets."""
        for table in (self._reset_offsets, self._pull_offsets):
            for key in [key for key in table if selected(*key.partition(SEPARATOR)[::2])]:
                del table[key]
                self.dirty = True

    # --- text

    def text(self) -> "OffsetText":
        """The answer to 43, to be made part by part: without the members that a 5.5.0 slave refuses."""
        return OffsetText(self.data_version, self._offsets, self._tables)

    def _tables(self, offsets: dict[str, Offsets]) -> dict[str, Any]:
        """The members that hold the offsets."""
        return {"offsetTable": offsets}

    def _frozen(self) -> TextOf:
        offsets, pull_offsets, version = self._offsets.copy(), self._pull_offsets.copy(), self.data_version

        def text() -> Iterator[bytes]:
            # Every reader accepts quoted queue ids, even one that does not know the member that holds them.
            # Nobody reads the groups' topics back, so they may be those of a moment later: a copy takes milliseconds.
            groups = self._topics.copy()
            tables = {**self._tables(offsets), "groupTopicMap": groups, "pullOffsetTable": pull_offsets}
            large = {name: pieces.pieces(tables[name]) for name, pieces in self._texts.items()}
            return file_pieces({**tables, "dataVersion": version, **large})

        return text

    def _read(self, stored: ConsumerOffsetSerializeWrapper) -> None:
        self._offsets, self._topics, self._groups = {}, {}, {}
        for key, offsets in stored.offset_table.items():
            self._add(key, offsets)
        self.data_version = stored.data_version or self.data_version  # 4.x writes none


class _LmqOffsetFile(ConsumerOffsetSerializeWrapper, frozen=True):
    lmq_offset_table: dict[str, int] = field(default_factory=dict)


class LmqOffsetTable(OffsetTable):
    """Official LmqConsumerOffsetManager: for a group named `%LMQ%...` the queue id of a call is ignored."""

    file_name = layout.LIGHT_CONSUMER_OFFSETS
    body_type = _LmqOffsetFile

    def commit(self, topic: str, group: str, queue_id: int, offset: int) -> None:
        super().commit(topic, group, 0 if is_lmq(group) else queue_id, offset)

    def query(self, topic: str, group: str, queue_id: int) -> int:
        return super().query(topic, group, 0 if is_lmq(group) else queue_id)

    def _tables(self, offsets: dict[str, Offsets]) -> dict[str, Any]:
        return {
            "lmqOffsetTable": {key: of[0] for key, of in offsets.items() if _LMQ_GROUP in key and 0 in of},
            "offsetTable": {key: of for key, of in offsets.items() if _LMQ_GROUP not in key},
        }

    def _read(self, stored: Any) -> None:
        light = {key: {0: offset} for key, offset in stored.lmq_offset_table.items()}
        super()._read(replace(stored, offset_table=stored.offset_table | light))


class OffsetText:
    """The answer to 43. `parts` makes it, a part with each `next`; then `whole` has it. The table may change between
    two parts: each has the offsets of its time."""

    def __init__(
        self,
        version: DataVersion,
        offsets: dict[str, Offsets],
        members_of: Callable[[dict[str, Offsets]], dict[str, Any]],
    ) -> None:
        self._version = version
        self._offsets = offsets
        self._keys = list(offsets)  # no tuples: 50,000 of them start a garbage collection of 80 ms
        self._members_of = members_of
        self._texts: dict[str, list[bytes]] = {name: [] for name in members_of({})}

    def parts(self) -> Iterator[None]:
        for first in range(0, len(self._keys), ENTRIES_IN_A_SLICE):
            keys = self._keys[first : first + ENTRIES_IN_A_SLICE]
            part = {key: self._offsets[key] for key in keys if key in self._offsets}
            for name, table in self._members_of(part).items():
                if table:
                    self._texts[name].append(fastjson.dumps(table)[1:-1])
            yield

    def whole(self) -> bytes:
        tables = [b'"%b":{%b}' % (name.encode(), b",".join(texts)) for name, texts in self._texts.items()]
        return b'{"dataVersion":%b,%b}' % (fastjson.dumps(self._version), b",".join(tables))
