"""Is a store whole? Reads everything, changes nothing, says what is wrong, where, and what a start would do.

    log          every record: length, CRC, its own position, the filler at a file's end, numbers without gaps
    queues       every unit against the record it points to, every record against its unit
    index        headers, and every entry points to a record
    checkpoint   no mark ahead of the log
    config       tables are JSON (or their backups); no stored offset is ahead of its queue
    timer        its log is as long as its mark says

`check_store` returns a `Report`; a finding is damage (a start repairs or refuses it, or readers would miss something)
or a remark. Not here: the words and the exit code, which are the command's (`pocketmq store check`).
"""

from collections.abc import Callable
from pathlib import Path

from .. import layout
from ..durability.foreign_parts import refuse_foreign_parts
from ..errors import StoreDamagedError, StoreError
from ..timer.timer_checkpoint import read_timer_checkpoint
from .check_index import check_checkpoint, check_index
from .check_log import LogCheck
from .check_queues import QueueCheck
from .check_tables import TableCheck
from .findings import Findings, Report
from .segments import Segments, refuse_open_store


def check_store(
    root: Path, progress: Callable[[int], None] | None = None, *, commit_log: Path | None = None
) -> Report:
    """Read the store; `progress` is called with the log position reached, every 65,536 records.

    `commit_log` is the folder of the log if storePathCommitLog names another than the default. Raises StoreError if
    there is no store, or if another process has it open.
    """
    refuse_open_store(root)
    findings = Findings(Report(str(root), clean=not (root / layout.ABORT).exists()))
    try:
        refuse_foreign_parts(root)
    except StoreDamagedError as error:
        findings.damage(root, str(error), "it would refuse")
        return findings.report
    log = Segments(commit_log or root / layout.COMMIT_LOG)
    log_check = LogCheck(log, findings, progress)
    log_check.run()
    tables = TableCheck(root, findings)
    queue_check = QueueCheck(root, log, findings, log_check.records, tables.topics)
    queue_check.run()
    check_index(root, findings)
    check_checkpoint(root, findings)
    tables.run(log_check.records, queue_check.ends)
    _check_timer(root, findings)
    if not findings.report.clean:
        findings.remark(
            root / layout.ABORT,
            "the last stop was not clean",
            "it would read the log again and mend the rest",
        )
    return findings.report


def _check_timer(root: Path, findings: Findings) -> None:
    """Can the timer's files be read, and do they hold all that `timercheck` speaks of?"""
    log = Segments(root / layout.TIMER_LOG)
    findings.segments(log, refuses=True)
    wheel = root / layout.TIMER_WHEEL
    if wheel.is_dir():
        findings.damage(wheel, "is a folder", "it would refuse")
    path = root / layout.CONFIG / layout.TIMER_CHECKPOINT
    try:
        checkpoint = read_timer_checkpoint(path)
    except StoreError as error:
        findings.damage(path, str(error), "it would refuse")
        return
    end = log.files[-1].end if log.files else 0
    if checkpoint is not None and end < checkpoint.last_timer_log_flush_position:
        findings.damage(
            log.directory,
            f"ends at {end}, {path.name} says {checkpoint.last_timer_log_flush_position}",
            "it would not deliver the timed messages in between",
        )
