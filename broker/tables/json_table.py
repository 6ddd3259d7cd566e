"""JsonTable, the base class of all tables: a file, a DataVersion, a mark for unsaved changes; and ConfigTable, that of
topics and groups.

A table is owned by the event-loop thread. Saving may be split, so that another thread makes the text and waits for the
disk: `snapshot()` in the owner's thread, what it returns and `file.save()` in any other.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from pocketmq.protocol.bodies.body import Body, DataVersion
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.topics import is_lmq
from pocketmq.protocol.text import fastjson
from pocketmq.store.errors import StoreError
from pocketmq.store.files.json_file import MAX_FILE_BYTES, JsonFile

from ..config.broker_config import BrokerConfig
from .attributes import Attribute, alter_attributes
from .table_text import MapText

NowMs = Callable[[], int]
ConfigT = TypeVar("ConfigT", TopicConfig, SubscriptionGroupConfig)

TextOf = Callable[[], Iterable[bytes]]
"""Makes the pieces of a file's text."""


class JsonTable:
    """Mirrors the official ConfigManager, but does not write at every change. Owner: the event-loop thread.

    `state_fields` name the fields that hold what the table knows; a test companion sets them back. Containers in them
    hold immutable values. `body_type` is the content of the file.
    """

    state_fields: ClassVar[tuple[str, ...]]
    body_type: type[Body]

    def __init__(self, path: Path, now_ms: NowMs) -> None:
        self.file = JsonFile(path)
        self.data_version = DataVersion(timestamp=now_ms())
        self.dirty = False
        self._now_ms = now_ms
        self.on_change: Callable[[], object] = lambda: None
        """Called after each change of the data version: the broker then registers and saves."""

    def to_json(self) -> bytes:
        """The text of the file. A table defines this or `_frozen`."""
        return b"".join(self._frozen()())

    def load(self) -> bool:
        """Read the file over the built-in content. False if there is no file. Raises StoreError."""
        return self.file.load(self.read_content) is not None

    def snapshot(self) -> TextOf | None:
        """A function that makes the text to save; None if the file is up to date. Clears `dirty`: a caller that fails
        to save must set it again."""
        if not self.dirty:
            return None
        self.dirty = False
        return self._frozen()

    def _frozen(self) -> TextOf:
        """A function that makes the text of the table as it is now, in any thread, one at a time. Large tables copy
        what it needs; small ones make the text at once."""
        text = self.to_json()
        return lambda: (text,)

    def persist(self) -> bool:
        """Save if something has changed since the last time; returns when it is on disk. Raises StoreError."""
        text_of = self.snapshot()
        if text_of is None:
            return False
        try:
            self.file.save(text_of())
        except (OSError, StoreError) as error:
            self.dirty = True
            raise StoreError(
                f"cannot write {self.file.path}: {getattr(error, 'strerror', None) or error}"
            ) from error
        return True

    def read_content(self, content: bytes) -> bool:
        """Read the text of the file into the table. Raises BodyError and then changes nothing. Always true."""
        self._read(fastjson.decode(content, self.body_type, max_bytes=MAX_FILE_BYTES))
        return True

    def _read(self, stored: Any) -> None:
        """Take over what the file holds, a `body_type`."""
        raise NotImplementedError

    def mark_restored(self) -> None:
        """The fields of `state_fields` were set: a change of the table."""
        self._changed()

    def _changed(self) -> None:
        self.data_version = self.data_version.next_version(self._now_ms())
        self.dirty = True
        self.on_change()


class ConfigTable(JsonTable, Generic[ConfigT]):
    """Settings by name. They are immutable: a change replaces those of a name."""

    known_attributes: ClassVar[Mapping[str, Attribute]]

    def __init__(self, path: Path, now_ms: NowMs, config: BrokerConfig) -> None:
        super().__init__(path, now_ms)
        self._config = config
        self._text = MapText()
        self._rows: dict[str, ConfigT] = {}

    def find(self, name: str) -> ConfigT | None:
        """The settings of a name. Light queues (`%LMQ%...`) are in no table and all have the default settings."""
        row = self._rows.get(name)
        if row is None and self._config.store.enable_lmq and is_lmq(name):
            return self._default(name)
        return row

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def __len__(self) -> int:
        return len(self._rows)

    def page_of_names(self, data_version: str | None, sequence: int, max_count: int) -> list[str]:
        """The names in one page of the reply to 21 or 201: sorted, from index `sequence`; from the start if
        `data_version` (the JSON that the requester saw) is no longer current."""
        try:
            is_current = (
                bool(data_version) and fastjson.decode(data_version or "", DataVersion) == self.data_version
            )
        except BodyError:
            is_current = False
        start = max(sequence, 0) if is_current else 0
        return sorted(self._rows)[start : start + max_count]

    def update(self, config: ConfigT) -> ConfigT | None:
        """Create or replace what has this name (17, 200). `config.attributes` are changes: keys prefixed with `+` or
        `-`. None for a light queue, which is not stored. Raises AttributeRefusedError and then changes nothing."""
        if self._config.store.enable_lmq and is_lmq(config.name):
            return None
        old = self._rows.get(config.name)
        attributes: dict[str, str] = {}
        if self._config.is_5:
            current = None if old is None else old.attributes
            attributes = alter_attributes(self.known_attributes, current, config.attributes)
        return self._put(msgspec.structs.replace(config, attributes=attributes))

    def copy(self) -> Body:
        """The table as it is now: nobody changes the copy, so any thread can make its text."""
        raise NotImplementedError

    def _default(self, name: str) -> ConfigT:
        raise NotImplementedError

    def _put(self, config: ConfigT) -> ConfigT:
        raise NotImplementedError
