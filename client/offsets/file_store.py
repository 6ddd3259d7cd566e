"""Offsets of a broadcasting group: kept in memory, persisted in a file that the Java client reads and writes as well.

    ~/.rocketmq_offsets/<client id>/<group>/offsets.json         and offsets.json.bak, the content before
    { "offsetTable":{ {"brokerName":"b","queueId":0,"topic":"T"}:12 } }

Owned by the event loop; the file is read and written in threads. Official class: LocalFileOffsetStore.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import field
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.text.fastjson import dumps

from ..errors import ClientError
from .offset_store import NO_OFFSET, OffsetMemory

_log = logging.getLogger(__name__)

OFFSETS_DIR: Final = ".rocketmq_offsets"


class _OffsetsFile(Body, frozen=True):
    """Official OffsetSerializeWrapper."""

    offset_table: dict[MessageQueue, int] = field(default_factory=dict)


class LocalFileOffsetStore(OffsetMemory):
    """Offsets of a broadcasting group on this machine. The path holds the client id: keep instance name and address.

    The environment variable ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR replaces the Java property
    rocketmq.client.localOffsetStoreDir.
    """

    def __init__(self, client_id: str, group: str, folder: Path | None = None) -> None:
        super().__init__()
        self.path = (folder or default_offsets_dir()) / client_id / group / "offsets.json"
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        """Read the file into memory. ClientError if neither it nor its backup can be read."""
        for queue, offset in (await asyncio.to_thread(self._read)).items():
            self.update(queue, offset)

    async def in_store(self, queue: MessageQueue) -> int:
        """The file's offset, remembered; NO_OFFSET if it has none or cannot be read."""
        try:
            offset = (await asyncio.to_thread(self._read)).get(queue, NO_OFFSET)
        except ClientError:
            return NO_OFFSET
        if offset >= 0:
            self.update(queue, offset)
        return offset

    async def persist(self, queue: MessageQueue) -> None:
        """Write one queue's offset into the file, if there is one."""
        offset = self.read(queue)
        if offset != NO_OFFSET:
            await self._write({queue: offset})

    async def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Write the offsets of these queues into the file; others in it stay."""
        known = self.of_topic()
        changed = {queue: known[queue] for queue in queues if queue in known}
        if changed:
            await self._write(changed)

    async def persist_last(self, queues: Iterable[MessageQueue]) -> None:
        await self.persist_all(queues)

    async def _write(self, changed: dict[MessageQueue, int]) -> None:
        async with self._writing:
            try:
                await asyncio.to_thread(self._overlay, changed)
            except (ClientError, OSError) as error:
                _log.error("offsets are not persisted to %s: %s", self.path, error)

    def _overlay(self, changed: dict[MessageQueue, int]) -> None:
        content = dumps(_OffsetsFile(offset_table={**self._read(), **changed}), pretty=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".json.tmp")
        if self.path.exists():
            temporary.touch(0o600)
            shutil.copymode(self.path, temporary)
        temporary.write_bytes(content)
        if self.path.exists():
            os.replace(self.path, self._backup)
        os.replace(temporary, self.path)

    def _read(self) -> dict[MessageQueue, int]:
        """The table in the file; that of its backup if the file is empty, absent or damaged."""
        try:
            if (table := _table_in(self.path)) is not None:
                return table
        except ProtocolError as error:
            _log.warning("%s cannot be read, trying its backup: %s", self.path, error)
        try:
            return _table_in(self._backup) or {}
        except ProtocolError as error:
            raise ClientError(f"{self._backup}: cannot be read: {error}") from error

    @property
    def _backup(self) -> Path:
        return self.path.with_name("offsets.json.bak")


def _table_in(path: Path) -> dict[MessageQueue, int] | None:
    """None if the file is empty or absent; `ProtocolError` if it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return (
        dict(_OffsetsFile.decode(content, max_bytes=len(content)).offset_table) if content.strip() else None
    )


def default_offsets_dir() -> Path:
    """The folder of local offsets."""
    folder = os.environ.get("ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR")
    return Path(folder) if folder else Path.home() / OFFSETS_DIR
