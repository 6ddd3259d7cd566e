"""Is the key index whole, and does the checkpoint promise no more than the log holds?"""

from pathlib import Path

from .. import layout
from ..durability.checkpoint import FIELDS
from ..files.fields_file import FIELDS_FILE_BYTES, decode_fields
from ..lookup.index_file import HEADER, INDEX_UNIT
from .findings import Findings
from .segments import map_file


def check_index(root: Path, findings: Findings) -> None:
    """Run it after the log: positions are compared with its end."""
    folder = root / layout.INDEX
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    paths = [path for path in paths if path.is_file() and path.name.isdecimal()]
    whole = max((path.stat().st_size for path in paths), default=0)
    for path in paths:
        _check_file(path, map_file(path), whole, findings)


def _check_file(path: Path, view: memoryview, whole: int, findings: Findings) -> None:
    again = "it would make the file again from the log"
    rebuilt = "it would keep the file after a clean stop, and make it again after any other"
    findings.report.index_files += 1
    if len(view) < max(HEADER.size, whole):
        findings.damage(path, f"is {len(view)} bytes long, its neighbours {whole}", again)
        return
    begin_ms, end_ms, begin, end, _, count = HEADER.unpack_from(view, 0)
    units_at = first_unit_at(len(view))
    if units_at is None:
        findings.remark(
            path, "is of no common size: its entries were not looked at", f"if it was cut short, {again}"
        )
        return
    if not 0 <= count <= (len(view) - units_at) // INDEX_UNIT.size or begin > end or begin_ms > end_ms:
        findings.damage(path, f"its head is impossible: {count} entries from {begin} to {end}", rebuilt)
        return
    findings.report.index_entries += max(count - 1, 0)
    for number in range(1, count):
        _, position, seconds, previous = INDEX_UNIT.unpack_from(view, units_at + INDEX_UNIT.size * number)
        if not begin <= position <= end or seconds < 0 or previous >= number:
            findings.damage(
                path, f"entry {number} is impossible (position {position}, before it {previous})", rebuilt
            )
        elif position >= findings.report.log_end:
            findings.damage(
                path, f"entry {number} points behind the log's end", "it would make the file again"
            )


def check_checkpoint(root: Path, findings: Findings) -> None:
    path = root / layout.CHECKPOINT
    if not path.exists():
        findings.remark(path, "is missing", "it would read the whole log after an unclean stop")
        return
    data = path.read_bytes()
    if len(data) != FIELDS_FILE_BYTES:
        findings.damage(
            path,
            f"is {len(data)} bytes long, not {FIELDS_FILE_BYTES}",
            "it would take zeros for the rest",
        )
    *times, _, confirm, logics = decode_fields(data, FIELDS)
    for name, position in (("confirmPhyOffset", confirm), ("logicsPhysicalOffset", logics)):
        if position > findings.report.log_end:
            findings.damage(
                path,
                f"{name} {position} is behind the log's end {findings.report.log_end}",
                "it would lower it",
            )
    for name, time_ms in zip(("physic", "logics", "index"), times, strict=False):
        if time_ms > findings.report.last_store_time_ms >= 0:
            findings.damage(path, f"{name}MsgTimestamp {time_ms} is newer than the newest message", "none")


def first_unit_at(file_bytes: int) -> int | None:
    """Where the units of an index file of this size begin, if it was made with four times as many units as slots,
    as by default; None otherwise."""
    slots, rest = divmod(file_bytes - HEADER.size, 4 + 4 * INDEX_UNIT.size)
    return HEADER.size + 4 * slots if not rest else None
