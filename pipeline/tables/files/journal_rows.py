"""Journal files to rows and columns: one row for each entry. No Spark.

A file that ends inside a frame was cut off by a kill: it is read up to that frame, with a warning. A file of a newer
version is an error. The bytes are drawn in `pocketmq.protocol.journal_frames`.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pocketmq.protocol.journal_frames import (
    SUFFIX,
    Closed,
    Connected,
    Dropped,
    Entry,
    Exchange,
    FrameReader,
    JournalFormatError,
    Pushed,
    decode_about,
    decode_entries,
)
from pocketmq.protocol.requests.names import request_name

from ...errors import PATH, JournalError, OptionError, PathError
from ..records.columns import JOURNAL_COLUMNS, STRING_MAP, TIMESTAMP
from .log_files import map_file

_log = logging.getLogger("pocketmq.pipeline")

_SHORT_NAMED: Final = frozenset((310, 320, 325))
"""Sends whose fields have one-letter names: group a, topic b, queue id e."""


def journal_files(path: Path) -> list[Path]:
    """The files of a journal folder, oldest first, or the one file that `path` names.

    `PathError` if there is none.
    """
    if path.is_file():
        return [path]
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else []
    if not files:
        raise PathError(PATH, f"{path} is not a journal: it is neither a {SUFFIX} file nor a folder of them")
    return files


def journal_paths(paths: Sequence[str], option: str = "JOURNALS") -> dict[str, str]:
    """Journal name -> the path that holds it; `option` is the name under which the paths were given.

    `OptionError` for a path without a journal, and for two paths with parts of one journal, because paths are compared
    with each other. `JournalError` for a file that cannot be read.
    """
    found: dict[str, str] = {}
    for text in paths:
        try:
            files = journal_files(Path(text))
        except PathError as error:
            raise error.named(option) from error
        for file in files:
            with _readable(file):
                about = next(iter(FrameReader(map_file(str(file)))), None)
                journal = None if about is None else journal_name(decode_about(about))
            if journal is not None and found.setdefault(journal, text) != text:
                raise OptionError(
                    option,
                    f": {found[journal]} and {text} are parts of one journal, {journal}: name its folder once",
                )
    return found


def journal_name(about: dict[str, Any]) -> str:
    """The name of a journal, which is one run of one broker."""
    return f"{about.get('brokerName', '?')}@{about.get('startedNs', 0)}"


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    """Turns `JournalFormatError` into `JournalError` with the file's name."""
    try:
        yield
    except JournalFormatError as error:
        raise JournalError(f"{path}: {error}") from error


def read_journal(path: str | Path, data: bytes | memoryview | None = None) -> Iterator[list[dict[str, Any]]]:
    """The rows of one file, frame by frame; of its bytes, if they are given. `JournalError` for a newer version."""
    data = map_file(str(path)) if data is None else data
    with _readable(path):
        frames = FrameReader(data)
        about: dict[str, Any] | None = None
        for payload in frames:
            if about is None:
                about = decode_about(payload)
                journal = journal_name(about)
                continue
            yield [
                {**row, "journal": journal, "file": str(path)} for row in map(_row, decode_entries(payload))
            ]
    if frames.torn_at is not None:
        left = len(data) - frames.torn_at
        _log.warning("%s ends in an incomplete or damaged frame: its last %d bytes are skipped", path, left)


def _row(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Exchange):
        return _exchange(entry)
    if isinstance(entry, Connected):
        row = {"kind": "connected", "time": entry.at_ns, "server": entry.server, "peer": entry.peer}
        return {**row, "connection": entry.connection}
    if isinstance(entry, Closed):
        return {"kind": "closed", "time": entry.at_ns, "connection": entry.connection}
    if isinstance(entry, Pushed):
        row = {"kind": "pushed", "time": entry.at_ns, "connection": entry.connection, "code": entry.code}
        row |= {"request": request_name(entry.code), "clientId": entry.client_id, "fields": entry.fields}
        return {**row, "bodyBytes": entry.body_bytes, **_group_topic_queue(entry.code, entry.fields or {})}
    assert isinstance(entry, Dropped)
    return {"kind": "dropped", "time": entry.at_ns, "count": entry.count}


def _exchange(entry: Exchange) -> dict[str, Any]:
    is_answered = entry.answered_ns > 0
    return {
        "kind": "exchange",
        "time": entry.received_ns,
        "answered": entry.answered_ns if is_answered else None,
        "tookMicros": (entry.answered_ns - entry.received_ns) // 1000 if is_answered else None,
        "connection": entry.connection,
        "clientId": entry.client_id,
        "code": entry.code,
        "request": request_name(entry.code),
        "language": entry.language,
        "version": entry.version,
        "oneway": entry.is_oneway,
        "fields": entry.fields,
        "bodyBytes": entry.body_bytes,
        "bodyCRC": entry.body_crc,
        "replyCode": entry.reply_code,
        "replyRemark": entry.reply_remark,
        "replyFields": entry.reply_fields,
        "replyBytes": entry.reply_bytes,
        "replyCRC": entry.reply_crc,
        "detail": entry.detail,
        **_group_topic_queue(entry.code, entry.fields or {}),
    }


def _group_topic_queue(code: int, fields: dict[str, str]) -> dict[str, Any]:
    """Group, topic and queue id, whatever their names in the request."""
    if code in _SHORT_NAMED:
        group, topic, queue = fields.get("a"), fields.get("b"), fields.get("e")
    else:
        group = fields.get("consumerGroup") or fields.get("producerGroup") or fields.get("group")
        topic, queue = fields.get("topic") or fields.get("originTopic"), fields.get("queueId")
    is_number = queue is not None and queue.lstrip("-").isdigit() and len(queue) < 11
    return {
        "group": group,
        "topic": topic,
        "queueId": int(queue) if is_number and queue is not None else None,
    }


def column(rows: list[dict[str, Any]], name: str) -> Any:
    """One Arrow column of rows."""
    kind = JOURNAL_COLUMNS[name][1]
    values: list[Any] = [row.get(name) for row in rows]
    if kind == TIMESTAMP:
        return pa.array([None if value is None else value // 1000 for value in values], pa.int64()).cast(
            TIMESTAMP
        )
    if kind == STRING_MAP:
        values = [None if value is None else list(value.items()) for value in values]
    return pa.array(values, type=kind)
