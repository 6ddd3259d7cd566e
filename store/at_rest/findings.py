"""What the checker finds: findings one by one, and the report that holds them with the figures of the store."""

from pathlib import Path
from typing import Final, Literal

import msgspec

from .segments import Segments

Place = tuple[str, int]
"""(topic, queue id)"""

MOST_OF_A_KIND: Final = 20
"""Findings of one kind about one file or queue; the rest is counted."""


class Finding(msgspec.Struct, frozen=True):
    """One finding: the file, what is wrong, and in `start` what a start would do about it."""

    severity: Literal["damage", "remark"]
    place: str
    what: str
    start: str = ""


class Report(msgspec.Struct):
    """Figures and findings of one store, as `pocketmq store check --json` prints them. Positions are bytes."""

    store: str
    clean: bool
    """Whether the last stop was clean."""
    log_start: int = 0
    log_end: int = 0
    log_files: int = 0
    records: int = 0
    first_store_time_ms: int = -1
    last_store_time_ms: int = -1
    queues: int = 0
    units: int = 0
    index_files: int = 0
    index_entries: int = 0
    findings: list[Finding] = msgspec.field(default_factory=list)

    @property
    def damaged(self) -> bool:
        return any(finding.severity == "damage" for finding in self.findings)


class Findings:
    """Adds findings to one report, at most MOST_OF_A_KIND of each kind."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._counts: dict[tuple[str, str], int] = {}

    def damage(self, place: Path, what: str, start: str) -> None:
        self._find(Finding("damage", str(place), what, start))

    def remark(self, place: Path, what: str, start: str = "") -> None:
        self._find(Finding("remark", str(place), what, start))

    def _find(self, finding: Finding) -> None:
        kind = finding.place, finding.start
        self._counts[kind] = count = self._counts.get(kind, 0) + 1
        if count < MOST_OF_A_KIND:
            self.report.findings.append(finding)
        elif count == MOST_OF_A_KIND:
            more = msgspec.structs.replace(finding, what="and more of this kind")
            self.report.findings.append(more)

    def segments(self, segments: Segments, *, refuses: bool) -> None:
        for path, what in segments.problems:
            is_last_and_empty = what == "is empty" and (
                not segments.files or path.name > segments.files[-1].path.name
            )
            if is_last_and_empty:
                self.remark(path, what, "it would delete the file")
            else:
                fills = not refuses and what == "is missing"
                self.damage(
                    path, what, "it would fill the queue again from the log" if fills else "it would refuse"
                )
