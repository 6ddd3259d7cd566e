"""Are the queues whole? Every unit against the record it points to, every record against its unit."""

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
from pocketmq.protocol.message.topics import is_lmq

from .. import layout
from ..config import QUEUE_UNIT_BYTES
from ..lookup.queue_unit import BLANK_UNIT, UNIT
from .findings import MOST_OF_A_KIND, Findings, Place
from .queue_records import QueueRecords
from .segments import Segment, Segments, count_units, queue_directories

OF_FORMER_TOPIC = "{} messages in the log are from before its topic was deleted and created again"


class QueueCheck(msgspec.Struct):
    """Run it after the log."""

    _root: Path
    _log: Segments
    _findings: Findings
    _records: Mapping[Place, QueueRecords]
    _topics: Collection[str] | None
    """Those that exist; None if that is not known."""
    ends: dict[Place, int] = {}
    """The max offsets of the queues as a start would make them."""

    def run(self) -> None:
        known: set[Place] = set()
        for topic, queue_id, directory in queue_directories(self._root):
            known.add((topic, queue_id))
            self._queue((topic, queue_id), Segments(directory))
        created_again = self._created_again(known)
        for place, records in self._records.items():
            if place not in known:
                self._missing(place, records, created_again.get(place[0], 0))

    def _missing(self, place: Place, records: QueueRecords, created_again: int) -> None:
        directory = self._root / layout.CONSUME_QUEUE / place[0] / str(place[1])
        if self._topics is not None and place[0] not in self._topics:
            self._findings.remark(
                directory, f"the log still holds {len(records)} messages of this deleted topic"
            )
            return
        position, _ = records.place_of(len(records) - 1)
        if position < created_again:
            self._findings.remark(directory, OF_FORMER_TOPIC.format(len(records)))
            return
        self._findings.damage(
            directory,
            f"is missing; the log holds {len(records)} messages of it",
            "after an unclean stop it would make the queue again from where its scan of the log begins",
        )
        self.ends[place] = records.end

    def _created_again(self, known: Collection[Place]) -> dict[str, int]:
        """A log position by which a topic had last been deleted and created again, for each whose queues show that. A
        queue that is missing may have ended at an earlier deletion."""
        again: dict[str, int] = {}
        for place in known:
            records = self._records.get(place)
            if records is not None and records.older:
                topic, (position, _) = place[0], records.place_of(0)
                again[topic] = min(again.get(topic, position), position)
        return again

    def _queue(self, place: Place, queue: Segments) -> None:
        self._findings.segments(queue, refuses=False)
        self._findings.report.queues += 1
        records = self._records.get(place) or QueueRecords()
        found = bytearray(len(records))
        """1 for each record that has its unit."""
        end = 0
        for file in queue.files:
            count = count_units(file)
            end = file.base // QUEUE_UNIT_BYTES + count
            self._findings.report.units += count
            self._units(place, file, count, records, found)
            if count * QUEUE_UNIT_BYTES < len(file.view) and file is not queue.files[-1]:
                self._findings.damage(
                    file.path,
                    f"ends after unit {end - 1}, yet later files exist",
                    "it would fill it again",
                )
        missing = [records.number(index) for index, has_unit in enumerate(found) if not has_unit]
        self.ends[place] = max(end, max(missing, default=-1) + 1)
        first = queue.start // QUEUE_UNIT_BYTES
        older = sum(number < first for number in missing)
        if older:
            # Queue files go after log files; a power loss may bring back the one without the other.
            self._findings.remark(
                queue.directory, f"{older} older messages still in the log are not in it any more"
            )
        if records.older:
            self._findings.remark(queue.directory, OF_FORMER_TOPIC.format(records.older))
        for number in sorted(number for number in missing if number >= first)[:MOST_OF_A_KIND]:
            position, _ = records.place_of(records.index(number))
            self._findings.damage(
                queue.directory,
                f"has no unit {number}; the record is at position {position}",
                "after an unclean stop it would add the unit, if its scan of the log begins before the record",
            )

    def _units(
        self, place: Place, file: Segment, count: int, records: QueueRecords, found: bytearray
    ) -> None:
        is_light = is_lmq(place[0])
        first = file.base // QUEUE_UNIT_BYTES
        units = UNIT.iter_unpack(file.view[: count * QUEUE_UNIT_BYTES])
        for number, unit in enumerate(units, first):
            position, size, _ = unit
            if unit == BLANK_UNIT or position < self._log.start or is_light:
                continue
            index = records.index(number)
            if index >= 0 and records.place_of(index) == (position, size):
                found[index] = 1
            elif position >= self._findings.report.log_end:
                self._findings.damage(
                    file.path, f"unit {number} points behind the log's end", "it would drop the unit"
                )
            else:
                if index >= 0:
                    found[index] = 1
                self._findings.damage(
                    file.path,
                    f"unit {number} points to position {position}, where its message does not begin",
                    "it would keep the unit: readers would get another message or none",
                )
