"""Can the timer's files be read, and do they hold all that `timercheck` speaks of?"""

from pathlib import Path

from .. import layout
from ..errors import StoreError
from ..timer.timer_checkpoint import read_timer_checkpoint
from .findings import Findings
from .segments import Segments


def check_timer(root: Path, findings: Findings) -> None:
    """Add what is wrong to the findings."""
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
