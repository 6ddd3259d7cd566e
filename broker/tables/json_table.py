"""JsonTable, the base class of all tables: a file, a DataVersion, a mark for unsaved changes.

A table is owned by the event-loop thread. Saving may be split, so that another thread makes the text and waits for the
disk: `snapshot()` in the owner's thread, what it returns and `file.save()` in any other.
"""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.store.errors import StoreError
from pocketmq.store.files.json_file import JsonFile


class JsonTable:
    """Mirrors the official ConfigManager, but does not write at every change. Owner: the event-loop thread.

    `state_fields` name the fields that hold what the table knows; a test companion sets them back. Containers in them
    hold immutable values.
    `on_change` is called after each change of the data version: the broker then registers and saves.
    """

    state_fields: ClassVar[tuple[str, ...]]

    def __init__(
        self, path: Path, now_ms: Callable[[], int], on_change: Callable[[], None] | None = None
    ) -> None:
        self.file = JsonFile(path)
        self.data_version = DataVersion(timestamp=now_ms())
        self.dirty = False
        self._now_ms = now_ms
        self._on_change = on_change

    def to_json(self, *, pretty: bool = False) -> bytes:
        """The table as a body; with `pretty` as it is written to the file."""
        raise TypeError(f"{type(self).__name__} declares no JSON form")

    def load(self) -> bool:
        """Read the file over the built-in content. False if there is no file. Raises StoreError."""
        return self.file.load(self.read_content) is not None

    def snapshot(self) -> Callable[[], bytes] | None:
        """A function that makes the text to save; None if the file is up to date. Clears `dirty`: a caller that fails
        to save must set it again."""
        if not self.dirty:
            return None
        self.dirty = False
        return self._frozen()

    def _frozen(self) -> Callable[[], bytes]:
        """A function that makes the text of the table as it is now, in any thread, one at a time. Large tables copy
        what it needs; small ones make the text at once."""
        text = self.to_json(pretty=True)
        return lambda: text

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
        """Read the text of the file into the table. Raises BodyError and then changes nothing."""
        raise TypeError(f"{type(self).__name__} reads no file")

    def restored(self) -> None:
        """The fields of `state_fields` were set: a change of the table."""
        self._changed()

    def _changed(self) -> None:
        self.data_version = self.data_version.next_version(self._now_ms())
        self.dirty = True
        if self._on_change is not None:
            self._on_change()
