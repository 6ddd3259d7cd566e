"""The name server's key-value settings: texts by namespace and key, in one JSON file.

Tools write them, brokers and clients read them; the name server itself reads only `ORDER_TOPIC_CONFIG`. The file has
the official form. Mirrors `KVConfigManager`; only the event loop's thread touches it.

    {"configTable":{"ORDER_TOPIC_CONFIG":{"orders":"broker-a:4;broker-b:4"}}}
"""

import logging
from pathlib import Path
from typing import Final

from msgspec import field
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import StoreError

from ..errors import Refusal
from ..state.table_saver import TableSaver
from ..tables.json_table import JsonTable

_log = logging.getLogger("pocketmq.name_server")

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"
"""Namespace of ordered topics: topic -> `broker:queues;broker:queues`."""
MAX_CHARACTERS: Final = 2 * 1024 * 1024
"""Of all settings, each counting as 200 more: 10,000 of them. To write as many as text takes about 10 ms."""
_ENTRY_CHARACTERS: Final = 200


class _File(Body, frozen=True):
    """Official KVConfigSerializeWrapper."""

    config_table: dict[str, dict[str, str]] = field(default_factory=dict)


class KvConfig(JsonTable):
    """The settings; with an empty `path` they have no file. The official name server writes the file once for each
    change; here those made while it is written go into the next one."""

    state_fields = ("_characters", "_namespaces")
    body_type = _File

    def __init__(self, path: str, files: TableSaver) -> None:
        self._has_file = bool(path)
        super().__init__(Path(path or "kvConfig.json"), lambda: 0)
        self.on_change = self._save
        self._files = files
        self._namespaces: dict[str, dict[str, str]] = {}
        self._characters = 0

    def load(self) -> bool:
        return self._has_file and super().load()

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
        self._changed()

    def delete(self, namespace: str, key: str) -> None:
        """Remove a key if it exists; the namespace stays."""
        value = self._namespaces.get(namespace, {}).pop(key, None)
        if value is not None:
            self._characters -= _size(key, value)
        self._changed()

    async def wait_until_saved(self) -> None:
        """Wait until the changes made so far are on disk. Raises `Refusal` if they cannot be written."""
        if self._has_file:
            await self._files.wait_until_saved(self)

    def close(self) -> None:
        """Write what was changed while the thread that writes was busy."""
        try:
            if self._has_file:
                self.persist()
        except StoreError as error:
            _log.error("%s", error)

    def _save(self) -> None:
        if self._has_file:
            self._files.save(self)

    def to_json(self) -> bytes:
        return _File(config_table=self._namespaces).encode()

    def _read(self, stored: _File) -> None:
        self._namespaces = stored.config_table
        self._characters = sum(
            _size(key, value) for table in self._namespaces.values() for key, value in table.items()
        )


def _size(key: str, value: str) -> int:
    return len(key) + len(value) + _ENTRY_CHARACTERS
