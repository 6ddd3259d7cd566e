"""Is the log whole? Every record: length, CRC, its own position, the filler at the end of a file."""

from collections.abc import Callable
from pathlib import Path

import msgspec
from pocketmq.protocol.message.flags import is_queued
from pocketmq.protocol.message.record import BLANK, Record, decode_record, measure_record

from ..lookup.queue_table import is_possible_place
from .findings import Findings, Place
from .queue_records import QueueRecords
from .segments import Segment, Segments


class LogCheck(msgspec.Struct):
    """`records` are those of each queue."""

    _log: Segments
    _findings: Findings
    _progress: Callable[[int], None] | None
    records: dict[Place, QueueRecords] = {}

    def run(self) -> None:
        log, report = self._log, self._findings.report
        self._findings.segments(log, refuses=True)
        report.log_files, report.log_start = len(log.files), log.start
        report.log_end = log.start
        broken: tuple[Path, int] | None = None
        for file in log.files:
            end, closed = self._records(file)
            if broken is not None and end > file.base:
                self._findings.damage(
                    broken[0],
                    f"no record at position {broken[1]}, yet later files hold some",
                    "a scan that begins before it would put placeholders there, or, if no mark covers it, cut the log",
                )
                broken = None
            if broken is None:
                report.log_end = end
            if closed or broken is not None:
                continue
            broken = file.path, end
            if any(file.view[end - file.base : end - file.base + 8]):
                self._findings.damage(
                    file.path,
                    f"no valid record at position {end}, though the file holds bytes there",
                    "it would put placeholders there, or cut the log, if its scan begins before it",
                )

    def _records(self, file: Segment) -> tuple[int, bool]:
        """Walk one file; (end of its records, whether the filler closes it)."""
        at = 0
        while (size := measure_record(file.view, at, len(file.view))) > 0:
            self._record(decode_record(file.view, at), file.base + at)
            at += size
        return (file.end, True) if size == BLANK else (file.base + at, False)

    def _record(self, record: Record, position: int) -> None:
        report = self._findings.report
        report.records += 1
        if report.first_store_time_ms < 0:
            report.first_store_time_ms = record.store_timestamp
        # A clock may be set back.
        report.last_store_time_ms = max(report.last_store_time_ms, record.store_timestamp)
        if self._progress is not None and not report.records & 0xFFFF:
            self._progress(position)
        if record.position != position:
            self._findings.damage(
                self._log.directory,
                f"the record at {position} says its position is {record.position}",
                "none",
            )
        if is_queued(record.sys_flag):
            number = record.queue_offset
            place = topic, queue_id = record.topic, record.queue_id
            if is_possible_place(topic, queue_id, number):
                records = self.records.get(place)
                if records is None:
                    records = self.records[place] = QueueRecords()
                records.add(number, position, record.size)
            else:
                self._findings.damage(
                    self._log.directory,
                    f"the record at {position} asks for offset {number} of {topic!r}, queue {queue_id}: "
                    "no queue has that",
                    "it would put the record into no queue",
                )
