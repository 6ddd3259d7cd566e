"""Snapshot: topics, groups, offsets, messages and timers of a server as one value, and as a file.

    {"format": "pocketmq snapshot", "version": 1, "crc32": number, "state": bytes}     MessagePack
    state, MessagePack again: {"tables": {name: JSON bytes}, "records": [bytes, ...], ...}

The records are those of the log that a queue still has, system queues included: what waits for a delay level, a time, a
transaction or an ack is in it. Members, locks, settings and statistics are not. This file reads and checks; a bad file
is a `SnapshotError` that names it. `restoring.py` brings a snapshot to a server.
"""

import zlib
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import SnapshotError

FORMAT: Final = "pocketmq snapshot"
VERSION: Final = 1
_MAX_BYTES: Final = 1 << 31
_LEAST_RECORD: Final = 91
_MAGICS: Final = (b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab")


class State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a snapshot."""

    emulate: int
    tables: dict[str, bytes]
    """JSON of each table by its name in `restoring.TABLES`."""
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
        raise SnapshotError(f"{where} is cut short or damaged: {error or type(error).__name__}") from error
