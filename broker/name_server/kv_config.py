"""The name server's key-value settings: texts by namespace and key, in one JSON file.

Tools write them, brokers and clients read them; the name server itself reads only `ORDER_TOPIC_CONFIG`. The file has
the official form. Mirrors `KVConfigManager`; only the event loop's thread touches it.

    {"configTable":{"ORDER_TOPIC_CONFIG":{"orders":"broker-a:4;broker-b:4"}}}
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import field
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store.files.json_file import MAX_FILE_BYTES, JsonFile

from ..errors import Refusal
from ..state.table_saver import TableSaver

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"
"""Namespace of ordered topics: topic -> `broker:queues;broker:queues`."""
MAX_CHARACTERS: Final = 2 * 1024 * 1024
"""Of all settings, each counting as 200 more: 10,000 of them. To write as many as text takes about 10 ms."""
_ENTRY_CHARACTERS: Final = 200


class _File(Body, frozen=True):
    """Official KVConfigSerializeWrapper."""

    config_table: dict[str, dict[str, str]] = field(default_factory=dict)


class KvConfig:
    """The settings and their file; without a path they are in memory only."""

    state_fields = ("_characters", "_namespaces")
    """A test companion sets them back."""

    def __init__(self, path: Path | None, files: TableSaver) -> None:
        self._file = None if path is None else JsonFile(path)
        self._files = files
        self._namespaces: dict[str, dict[str, str]] = {}
        self._characters = 0
        self._changes = 0
        self._changes_on_disk = 0
        self._saving = asyncio.Lock()

    def load(self) -> None:
        """Read the file, if it exists. Raises `StoreError` if it and its backup are damaged."""
        content = self._file.load(_decode) if self._file is not None else None
        if content is not None:
            self._namespaces = content.config_table
            self._characters = sum(
                _size(key, value) for table in self._namespaces.values() for key, value in table.items()
            )

    def get(self, namespace: str, key: str) -> str | None:
        return self._namespaces.get(namespace, {}).get(key)

    def list(self, namespace: str) -> dict[str, str] | None:
        """All keys of a namespace; None for a namespace that was never written."""
        return self._namespaces.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a key; `wait_until_saved` waits until it is on disk. Refused if the settings have become too many."""
        before = self.get(namespace, key)
        size = self._characters + _size(key, value) - (0 if before is None else _size(key, before))
        if namespace not in self._namespaces:
            size += _size(namespace, "")
        if size > MAX_CHARACTERS:
            remark = f"the settings of the name server would have more than {MAX_CHARACTERS} characters"
            raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
        self._namespaces.setdefault(namespace, {})[key] = value
        self._characters = size
        self._changes += 1

    def delete(self, namespace: str, key: str) -> None:
        """Remove a key if it exists; the namespace stays."""
        value = self._namespaces.get(namespace, {}).pop(key, None)
        if value is not None:
            self._characters -= _size(key, value)
        self._changes += 1

    def mark_restored(self) -> None:
        """The fields of `state_fields` were set, by a test companion: they are written."""
        self._changes += 1
        if self._file is not None:
            self._files.write(str(self._file.path), partial(self._file.save, self._content()))

    async def wait_until_saved(self) -> None:
        """Wait until the changes made so far are on disk; those made while a file is written go into the next one. (The
        official name server writes one file for each.) Refused if they cannot be written."""
        if self._file is None:
            return
        change = self._changes
        async with self._saving:
            if self._changes_on_disk >= change:
                return
            written = self._changes
            save = partial(self._file.save, self._content())
            if not await self._files.write_and_wait(str(self._file.path), save):
                raise Refusal(ResponseCode.SYSTEM_ERROR, "the settings cannot be written to disk")
            self._changes_on_disk = written

    def _content(self) -> bytes:
        return _File(config_table=self._namespaces).encode()


def _decode(content: bytes) -> _File:
    return _File.decode(content, max_bytes=MAX_FILE_BYTES)


def _size(key: str, value: str) -> int:
    return len(key) + len(value) + _ENTRY_CHARACTERS
