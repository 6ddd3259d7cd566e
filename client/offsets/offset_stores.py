"""How far a group has come in each of its queues: kept in memory, persisted at the broker or in a file.

A clustering consumer shares its offsets through the broker (`RemoteBrokerOffsetStore`), a broadcasting one keeps its
own in a file that the Java client reads and writes as well (`LocalFileOffsetStore`):

    ~/.rocketmq_offsets/<client id>/<group>/offsets.json         and offsets.json.bak, the content before
    { "offsetTable":{ {"brokerName":"b","queueId":0,"topic":"T"}:12 } }

The offset stored is the next one to read. Owned by the event loop.
"""

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import field
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import QueryConsumerOffset
from pocketmq.protocol.text.fastjson import dumps

from ..errors import ClientError, RequestRefused
from ..rebalancing.first_position import NO_OFFSET, OFFSET_UNREADABLE, stored_offset_of_refusal
from .offset_memory import OffsetMemory
from .offset_reports import CALL_TIMEOUT_SECONDS, OffsetReports

if TYPE_CHECKING:
    from ..instance.instance import ClientInstance

_log = logging.getLogger("pocketmq.client")

OFFSETS_DIR: Final = ".rocketmq_offsets"


class OffsetStore(Protocol):
    """Official OffsetStore. Reads give an offset, NO_OFFSET, or OFFSET_UNREADABLE."""

    async def load(self) -> None: ...
    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None: ...
    def update_and_freeze(self, queue: MessageQueue, offset: int) -> None: ...
    def read(self, queue: MessageQueue) -> int: ...
    async def in_store(self, queue: MessageQueue) -> int: ...
    async def persist(self, queue: MessageQueue) -> None: ...
    async def persist_all(self, queues: Iterable[MessageQueue]) -> None: ...
    def remove(self, queue: MessageQueue) -> None: ...
    def of_topic(self, topic: str = "") -> dict[MessageQueue, int]: ...


async def read_offset(store: OffsetStore, queue: MessageQueue) -> int:
    """From memory, else from the store (MEMORY_FIRST_THEN_STORE)."""
    offset = store.read(queue)
    return offset if offset >= 0 else await store.in_store(queue)


class RemoteBrokerOffsetStore(OffsetMemory):
    """Offsets of a group, kept by the master of each queue. Regular updates are one-way: a lost one comes again in
    5 s. How they are told, and why the first ones one by one, is `offset_reports.py`."""

    def __init__(self, instance: "ClientInstance", group: str) -> None:
        super().__init__()
        self._instance = instance
        self._group = group
        self._reports = OffsetReports(instance, group, self.read)

    async def load(self) -> None:
        """Nothing: each queue is asked for when it is assigned."""

    async def in_store(self, queue: MessageQueue) -> int:
        """Ask the master (after a route refresh, any member) of the queue's broker; success is remembered."""
        request = QueryConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            broker_name=queue.broker_name,
        )
        try:
            address = self._instance.vip(await self._address_to_ask(queue))
            reply = await self._instance.connections.call(
                address, request, timeout_seconds=CALL_TIMEOUT_SECONDS
            )
        except RequestRefused as refusal:
            offset = stored_offset_of_refusal(refusal.code)
            if offset == OFFSET_UNREADABLE:
                _log.warning("offset of %s in %s: %s", self._group, queue, refusal)
            return offset
        except (ClientError, ProtocolError) as error:
            _log.warning("offset of %s in %s: %s", self._group, queue, error)
            return OFFSET_UNREADABLE
        self.update(queue, reply.offset)
        return reply.offset

    async def persist(self, queue: MessageQueue) -> None:
        """Tell the broker one queue's offset, if there is one, and wait until it knows: who takes the queue next
        asks for it."""
        await self._tell(queue, waits=True)

    async def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Tell the brokers the offsets of these queues, changed or not; forget all other queues.

        No queues at all: nothing happens, as in Java.
        """
        by_broker: defaultdict[str, list[MessageQueue]] = defaultdict(list)
        for queue in self.to_persist(set(queues)):
            by_broker[queue.broker_name].append(queue)
        await asyncio.gather(*(self._tell_one_broker(some) for some in by_broker.values()))

    async def persist_last(self, queues: Iterable[MessageQueue]) -> None:
        """As `persist_all`, and wait until the brokers know, at most 5 s: for a consumer that leaves its group."""
        last = self.to_persist(set(queues))
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                await asyncio.gather(*map(self.persist, last))
        except TimeoutError:
            _log.warning("the last offsets of %s are not persisted in time", self._group)

    def may_ride(self, queue: MessageQueue) -> bool:
        """Whether a pull may carry the queue's offset. If not yet, the broker is told in the way first offsets are."""
        if self._reports.is_told(queue):
            return True
        if not self._reports.is_telling(queue):
            self._instance.spawn(self.persist(queue), f"first offset of {queue}")
        return False

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Tell the broker an offset and wait for its answer."""
        self.update(queue, offset)
        await self._reports.tell(queue, waits=True, offset=offset)

    async def _tell_one_broker(self, queues: list[MessageQueue]) -> None:
        """One after the other; a broker that does not answer is left alone until the next report."""
        for queue in queues:
            if not await self._tell(queue, waits=False):
                return

    async def _tell(self, queue: MessageQueue, *, waits: bool) -> bool:
        """False where the broker cannot be reached."""
        if self.read(queue) == NO_OFFSET:
            return True
        try:
            await self._reports.tell(queue, waits=waits)
        except ClientError as error:
            offset = self.read(queue)
            _log.warning("offset %d of %s in %s is not persisted: %s", offset, self._group, queue, error)
            return isinstance(error, RequestRefused)
        return True

    async def _address_to_ask(self, queue: MessageQueue) -> str:
        address = self._instance.brokers.master(queue.broker_name)
        return address or await self._reports.address(queue)


async def persist_last(store: OffsetStore, queues: Iterable[MessageQueue]) -> None:
    """Persist for the last time: what is not stored when this returns cannot be."""
    if isinstance(store, RemoteBrokerOffsetStore):
        await store.persist_last(queues)
    else:
        await store.persist_all(queues)


class _OffsetsFile(Body, frozen=True):
    """Official OffsetSerializeWrapper."""

    offset_table: dict[MessageQueue, int] = field(default_factory=dict)


class LocalFileOffsetStore(OffsetMemory):
    """Offsets of a broadcasting group on this machine. The path holds the client id: keep instance name and address.

    Environment ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR stands for the Java property
    rocketmq.client.localOffsetStoreDir.
    """

    def __init__(self, client_id: str, group: str, folder: Path | None = None) -> None:
        super().__init__()
        self.path = (folder or default_offsets_dir()) / client_id / group / "offsets.json"
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        """Read the file into memory. ClientError where neither it nor its backup can be read."""
        for queue, offset in (await asyncio.to_thread(self._read)).items():
            self.update(queue, offset)

    async def in_store(self, queue: MessageQueue) -> int:
        """The file's offset, remembered; NO_OFFSET where it has none or cannot be read."""
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
        temporary.write_bytes(content)
        if self.path.exists():
            os.replace(self.path, self._backup)
        os.replace(temporary, self.path)

    def _read(self) -> dict[MessageQueue, int]:
        """The file's table; its backup's where the file is empty, absent or damaged."""
        try:
            content = self.path.read_bytes()
            if content.strip():
                return dict(_OffsetsFile.decode(content).offset_table)
        except OSError:
            pass
        except ProtocolError as error:
            _log.warning("%s cannot be read, trying its backup: %s", self.path, error)
        try:
            content = self._backup.read_bytes()
        except OSError:
            return {}
        if not content.strip():
            return {}
        try:
            return dict(_OffsetsFile.decode(content).offset_table)
        except ProtocolError as error:
            raise ClientError(f"{self._backup}: cannot be read: {error}") from error

    @property
    def _backup(self) -> Path:
        return self.path.with_name("offsets.json.bak")


def default_offsets_dir() -> Path:
    """Where local offsets are kept unless told otherwise."""
    told = os.environ.get("ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR")
    return Path(told) if told else Path.home() / OFFSETS_DIR
