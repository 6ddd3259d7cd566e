"""Snapshot: topics, groups, offsets, messages and timers of a server as one value, and as a file.

    {"format": "pocketmq snapshot", "version": 1, "crc32": number, "state": bytes}     MessagePack
    state, MessagePack again: {"tables": {name: JSON bytes}, "records": [bytes, ...], ...}

The records are those of the log that a queue still has, system queues included: what waits for a delay level, a time, a
transaction or an ack is in it. Members, locks, settings and statistics are not. A bad file is a
`SnapshotError` that names it.

A restore first checks everything that can be checked, then rewinds the server to nothing and stores the records again:
each gets a new place in the log and its old one in its queue. If the disk refuses that, the former state returns.
Both run in the server's thread.
"""

import shutil
import zlib
from pathlib import Path
from typing import Any, Final

import msgspec
from pocketmq.broker.node import Node
from pocketmq.protocol.errors import ProtocolError
from pocketmq.store import StoreError
from pocketmq.store.timer.timer_checkpoint import decode_timer_checkpoint

from ..errors import SnapshotError
from .parts import replace_content, restore_part, save_part, tables_of
from .reset import at_rest, follow_queues, forget_clients, stop_clock
from .rewinding import StoreMark, rewinding_of

FORMAT: Final = "pocketmq snapshot"
VERSION: Final = 1
_MAX_BYTES: Final = 1 << 31
_LEAST_RECORD: Final = 91
_MAGICS: Final = (b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab")


class State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a snapshot."""

    emulate: int
    tables: dict[str, bytes]
    """JSON of each table by its name in `parts.tables_of`."""
    records: list[bytes]
    """In the order of the log."""
    timer: bytes
    """The 56 bytes of timercheck; empty if no message was timed."""
    unwritten_ends: dict[int, list[int]]
    """Half messages that have ended and that no op message names yet, by half queue."""
    ended_behind: list[tuple[int, int]]
    """Half messages that ended after they were put back: half queue and offset."""


class Snapshot:
    """An immutable value; `rocketmq.restore` takes it as often as wanted, on any server."""

    __slots__ = ("_data", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self._data: bytes | None = None

    def __repr__(self) -> str:
        return f"<Snapshot of {len(self.state.records)} messages>"

    def to_bytes(self) -> bytes:
        """The content of a .pocketmq file."""
        if self._data is None:
            import msgpack

            state = msgpack.packb(msgspec.to_builtins(self.state, builtin_types=(bytes,)), use_bin_type=True)
            head = {"format": FORMAT, "version": VERSION, "crc32": zlib.crc32(state), "state": state}
            self._data = msgpack.packb(head, use_bin_type=True)
        return self._data

    def save(self, path: str | Path) -> None:
        """Write a .pocketmq file, whole or not at all. Raises `SnapshotError`."""
        target = Path(path)
        temporary = target.with_name(target.name + ".tmp")
        try:
            if target.exists():
                temporary.touch(0o600)
                shutil.copymode(target, temporary)
            temporary.write_bytes(self.to_bytes())
            temporary.replace(target)
        except OSError as error:
            raise SnapshotError(f"cannot write {target}: {error.strerror or error}") from error


def read_snapshot(path: str | Path) -> Snapshot:
    """Read a .pocketmq file. Raises `SnapshotError` that names it."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SnapshotError(f"cannot read {path}: {error.strerror or error}") from error
    return snapshot_of(data, str(path))


def snapshot_of(data: bytes, where: str = "the snapshot") -> Snapshot:
    """The snapshot with these bytes. Raises `SnapshotError` for any others; nothing else is ever raised."""
    if len(data) > _MAX_BYTES:
        raise SnapshotError(f"{where} must have at most {_MAX_BYTES >> 20} MiB")
    head = _unpacked(data, where)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise SnapshotError(f"{where} is not a snapshot of PocketMQ")
    if head.get("version") != VERSION:
        raise SnapshotError(
            f"{where} has version {head.get('version')!r}, this program reads version {VERSION} only"
        )
    state = head.get("state")
    if not isinstance(state, bytes) or zlib.crc32(state) != head.get("crc32"):
        raise SnapshotError(f"{where} is damaged: its checksum is not that of its content")
    try:
        decoded = msgspec.convert(_unpacked(state, where), State, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise SnapshotError(f"{where} is damaged: {error}") from error
    for number, record in enumerate(decoded.records):
        if (
            len(record) < _LEAST_RECORD
            or int.from_bytes(record[:4], "big") != len(record)
            or record[4:8] not in _MAGICS
        ):
            raise SnapshotError(f"{where} is damaged: record {number} is not a stored message")
    return Snapshot(decoded)


def _unpacked(data: bytes, where: str) -> Any:
    import msgpack

    try:
        return msgpack.unpackb(data, raw=False, strict_map_key=False)
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException, RecursionError) as error:
        raise SnapshotError(
            f"{where} is cut short or damaged: {str(error) or type(error).__name__}"
        ) from error


ACCESS_TABLES: Final = frozenset(("users", "acls"))
"""A snapshot may lack these: then they stay as they are."""
_NOTHING: Final = StoreMark({}, (0, None))


async def take_snapshot(node: Node) -> Snapshot:
    """The present state; changes nothing."""
    broker = node.broker
    mark = broker.delayed.timer.mark()
    half, check = broker.transactions.half_messages, broker.transactions.check
    return Snapshot(
        State(
            emulate=broker.config.emulate,
            tables={name: table.to_json() for name, table in tables_of(broker)},
            records=rewinding_of(broker.store).records(),
            timer=b"" if mark is None else mark.encode(),
            unwritten_ends={queue: list(ends) for queue, ends in save_part(half)["_unwritten"].items()},
            ended_behind=list(save_part(check)["_ended_behind"]),
        )
    )


async def restore_snapshot(node: Node, snapshot: Snapshot) -> None:
    """Have the state of the snapshot, and nothing else; virtual time stands still. Raises `SnapshotError`, and then
    nothing has changed."""
    await stop_clock(node)
    state = snapshot.state
    former = await take_snapshot(node)
    try:
        await _become(node, state)
    except (SnapshotError, StoreError, ProtocolError, OSError, KeyError) as error:
        await _become(node, former.state)
        raise SnapshotError(f"the snapshot cannot be restored, nothing was changed: {error}") from error


async def _become(node: Node, state: State) -> None:
    broker = node.broker
    async with at_rest(broker):
        rewinding_of(broker.store).rewind(_NOTHING)
        for name, table in tables_of(broker):
            if name in state.tables or name not in ACCESS_TABLES:
                replace_content(table, state.tables[name])
        restore_part(
            broker.transactions.half_messages,
            {
                "_unwritten": {queue: dict.fromkeys(ends) for queue, ends in state.unwritten_ends.items()},
                "_unwritten_bytes": sum(
                    len(str(end)) + 1 for ends in state.unwritten_ends.values() for end in ends
                ),
            },
        )
        restore_part(
            broker.transactions.check, {"_ended_behind": dict.fromkeys(map(tuple, state.ended_behind))}
        )
        broker.delayed.levels.stop()
        broker.delayed.timer.rewind(None)
        rewinding_of(broker.store).append_records(state.records)
        forget_clients(broker, broker.groups.groups.keys())
        follow_queues(broker, decode_timer_checkpoint(state.timer) if state.timer else None)
    if node.name_server is not None:
        routes = node.name_server.routes.topics
        for topic in [topic for topic in routes if topic not in broker.topics]:
            routes[topic].pop(broker.config.broker_name, None)
            if not routes[topic]:
                del routes[topic]
