"""The name server's key-value settings: texts by namespace and key, in one JSON file.

Tools put them there and brokers and clients read them; the name server itself looks only at `ORDER_TOPIC_CONFIG`.
The file is the official one. Mirrors `KVConfigManager`; touched by the event loop's thread only.

    {"configTable":{"ORDER_TOPIC_CONFIG":{"orders":"broker-a:4;broker-b:4"}}}
"""

import logging
from pathlib import Path
from typing import Final

from msgspec import field
from pocketmq.protocol.bodies.body import Body
from pocketmq.store.errors import StoreError
from pocketmq.store.files.json_file import JsonFile

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"
"""Namespace of ordered topics: topic -> `broker:queues;broker:queues`."""

_log = logging.getLogger("pocketmq.kv_config")


class _File(Body, frozen=True):
    """Official KVConfigSerializeWrapper."""

    config_table: dict[str, dict[str, str]] = field(default_factory=dict)


class KvConfig:
    """The settings and their file; without a path they live in memory."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else JsonFile(path)
        self._namespaces: dict[str, dict[str, str]] = {}

    def load(self) -> None:
        """Read the file, if there is one. `StoreError` where it and its backup are damaged."""
        content = self._file.load(_File.decode) if self._file is not None else None
        if content is not None:
            self._namespaces = content.config_table

    def get(self, namespace: str, key: str) -> str | None:
        return self._namespaces.get(namespace, {}).get(key)

    def list(self, namespace: str) -> dict[str, str] | None:
        """Everything in a namespace; None where nothing was ever put there."""
        return self._namespaces.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        self._namespaces.setdefault(namespace, {})[key] = value
        self._save()

    def delete(self, namespace: str, key: str) -> None:
        """Remove a key, there or not; the namespace stays."""
        self._namespaces.get(namespace, {}).pop(key, None)
        self._save()

    def _save(self) -> None:
        """Written at once and in place, as officially: a tool that was answered has its setting on disk."""
        if self._file is None:
            return
        try:
            self._file.save(_File(config_table=self._namespaces).encode())
        except (OSError, StoreError) as error:
            _log.error("cannot write %s: %s", self._file.path, error)
