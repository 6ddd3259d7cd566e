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
from pocketmq.store import StoreError
from pocketmq.store.files.json_file import JsonFile
from pocketmq.store.remembered import Memory, Remembered

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"
"""Namespace of ordered topics: topic -> `broker:queues;broker:queues`."""

_log = logging.getLogger("pocketmq.name_server")


class _File(Body, frozen=True):
    """Official KVConfigSerializeWrapper."""

    config_table: dict[str, dict[str, str]] = field(default_factory=dict)


class KvConfig(Remembered):
    """The settings and their file; without a path they are in memory only."""

    remembered = ("_namespaces",)

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else JsonFile(path)
        self._namespaces: dict[str, dict[str, str]] = {}

    def load(self) -> None:
        """Read the file, if it exists. Raises `StoreError` if it and its backup are damaged."""
        content = self._file.load(_File.decode) if self._file is not None else None
        if content is not None:
            self._namespaces = content.config_table

    def get(self, namespace: str, key: str) -> str | None:
        return self._namespaces.get(namespace, {}).get(key)

    def list(self, namespace: str) -> dict[str, str] | None:
        """All keys of a namespace; None for a namespace that was never written."""
        return self._namespaces.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        self._namespaces.setdefault(namespace, {})[key] = value
        self._save()

    def delete(self, namespace: str, key: str) -> None:
        """Remove a key if it exists; the namespace stays."""
        self._namespaces.get(namespace, {}).pop(key, None)
        self._save()

    def recall(self, memory: Memory) -> bool:
        """As in `Remembered`; a difference is written."""
        if not super().recall(memory):
            return False
        self._save()
        return True

    def _save(self) -> None:
        """Write at once, as the official name server does: when a tool gets its reply, the setting is on disk."""
        if self._file is None:
            return
        try:
            self._file.save(_File(config_table=self._namespaces).encode())
        except (OSError, StoreError) as error:
            _log.error("cannot write %s: %s", self._file.path, error)
