"""Records and units are compared both ways: each planted fault is found, and nothing in a sound or live store."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.tables.files.aggregates import scan_runs
from pocketmq.pipeline.tables.files.consume_queues import known_log_end, queue_splits
from pocketmq.pipeline.tables.files.queue_check import check_units
from pocketmq.pipeline.tables.files.run_statuses import (
    DELETED_TOPIC,
    NO_QUEUE,
    NO_RECORD,
    NO_UNIT,
    OTHER_RECORD,
    OTHER_SIZE,
)
from pocketmq.pipeline.tables.files.scan import ScanOptions

from pipeline.store_files import Message, units_of, whole_log, write_log, write_queues, write_topics

OPTIONS = ScanOptions(on_corrupt="report", decode_rows=7)
SOUND = [Message(topic, queue_id, offset) for offset in range(12) for topic in "AB" for queue_id in range(2)]


def findings(root: Path, known_end: int | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """Status -> (topic, queue id, first offset, last offset) of everything that is not a run."""
    queues = queue_splits(root / "consumequeue", frozenset())
    end = known_log_end(queues) if known_end is None else known_end
    batches = list(scan_runs(whole_log(root, end or 1), OPTIONS, root=str(root)))
    for split in queues:
        batches += check_units(split, str(root / "commitlog"))
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in (row for batch in batches for row in batch.to_pylist()):
        if row["status"] != "ok":
            place = (row["topic"], row["queueId"], row["firstOffset"], row["lastOffset"])
            found.setdefault(row["status"], []).append(place)
    return found


@settings(max_examples=30)
@given(st.permutations(SOUND))
def test_nothing_is_found_in_a_store_whose_units_are_right(messages: list[Message]) -> None:
    """Even if its records lie in any order."""
    with tempfile.TemporaryDirectory() as folder:
        write_queues(Path(folder), units_of(write_log(Path(folder), messages)))
        assert findings(Path(folder)) == {}


@settings(max_examples=40)
@example(SOUND[-1], SOUND[0], "lost")
@given(st.sampled_from(SOUND), st.sampled_from(SOUND), st.sampled_from(["lost", "size", "swapped", "wild"]))
def test_a_wrong_unit_is_found_from_both_sides(one: Message, other: Message, fault: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        units = units_of(write_log(root, SOUND))
        of_one, of_other = units[one[:2]], units[other[:2]]
        position, size = of_one[one.offset]
        place, other_place = (*one[:3], one.offset), (*other[:3], other.offset)
        if fault == "lost":
            of_one[one.offset] = (0, 0)
            expected = {NO_UNIT: [place]}
        elif fault == "size":
            of_one[one.offset] = (position, size + 1)
            expected = {OTHER_SIZE: [place, place]}
        elif fault == "wild":
            of_one[one.offset] = (position + 1, size)
            expected = {NO_UNIT: [place], NO_RECORD: [place]}
        else:
            of_one[one.offset], of_other[other.offset] = of_other[other.offset], of_one[one.offset]
            pair = [] if one == other else [place, other_place]
            expected = {NO_UNIT: pair, OTHER_RECORD: pair if one.topic == other.topic else []}
        write_queues(root, units)
        found = findings(root, known_end=1 << 40)
    # A wrong first unit behind its record leaves that as records of an earlier topic are.
    told = {status: sorted(_places(rows)) for status, rows in found.items() if status != DELETED_TOPIC}
    is_first = fault in ("swapped", "wild") and 0 in (one.offset, other.offset)
    if not is_first:
        assert told == {status: sorted(rows) for status, rows in expected.items() if rows}


def _places(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """One place for each offset of the rows."""
    return [
        (topic, queue_id, offset, offset)
        for topic, queue_id, first, last in rows
        for offset in range(first, last + 1)
    ]


def test_what_a_broker_has_not_dispatched_yet_is_no_finding(tmp_path: Path) -> None:
    written = write_log(tmp_path, SOUND)
    write_queues(tmp_path, units_of(written[:30]))
    assert findings(tmp_path) == {}


def test_units_of_deleted_log_files_are_no_finding(tmp_path: Path) -> None:
    written = write_log(tmp_path, SOUND)
    units = units_of(written)
    log = tmp_path / "commitlog" / f"{0:020}"
    raw = log.read_bytes()
    begin = written[20].position
    log.unlink()
    (tmp_path / "commitlog" / f"{begin:020}").write_bytes(raw[begin:])
    write_queues(tmp_path, units)
    assert findings(tmp_path) == {}


def test_records_of_a_deleted_topic_are_counted_on_their_own(tmp_path: Path) -> None:
    units = units_of(write_log(tmp_path, SOUND))
    write_queues(tmp_path, {queue: of_queue for queue, of_queue in units.items() if queue[0] == "A"})
    write_topics(tmp_path, ["A"])
    found = findings(tmp_path)
    assert found.keys() == {DELETED_TOPIC}
    assert {row[0] for row in found[DELETED_TOPIC]} == {"B"}
    assert len(_places(found[DELETED_TOPIC])) == 24 - 2  # two records are behind the last unit


def test_a_known_topic_without_its_queues_is_a_finding(tmp_path: Path) -> None:
    units = units_of(write_log(tmp_path, SOUND))
    write_queues(tmp_path, {queue: of_queue for queue, of_queue in units.items() if queue[0] == "A"})
    assert findings(tmp_path).keys() == {NO_UNIT}, "no table says that the topic was deleted"
    write_topics(tmp_path, ["B"])
    assert findings(tmp_path).keys() == {NO_UNIT}


def test_a_lost_queue_is_a_finding_wherever_its_records_are(tmp_path: Path) -> None:
    """As a producer that fills one queue after another leaves them."""
    messages = [Message("A", queue_id, offset) for queue_id in range(3) for offset in range(6)]
    units = units_of(write_log(tmp_path, messages))
    write_queues(tmp_path, {queue: of_queue for queue, of_queue in units.items() if queue[1] != 0})
    write_topics(tmp_path, ["A"])
    assert findings(tmp_path) == {NO_QUEUE: [("A", 0, 0, 5)]}


def test_a_lost_first_file_of_a_queue_is_a_finding(tmp_path: Path) -> None:
    units = units_of(write_log(tmp_path, [Message("A", 0, offset) for offset in range(12)]))
    write_queues(tmp_path, units)
    path = tmp_path / "consumequeue" / "A" / "0" / f"{0:020}"
    raw = path.read_bytes()
    path.unlink()
    (path.parent / f"{5 * 20:020}").write_bytes(raw[5 * 20 :])
    assert findings(tmp_path) == {NO_UNIT: [("A", 0, 0, 4)]}


def test_records_of_the_first_life_of_a_recreated_topic_are_deleted_not_repeated(tmp_path: Path) -> None:
    messages = [Message("A", 0, offset) for offset in range(9)] + [
        Message("A", 0, offset) for offset in range(5)
    ]
    written = write_log(tmp_path, messages)
    write_queues(tmp_path, units_of(written[9:]))
    assert findings(tmp_path) == {DELETED_TOPIC: [("A", 0, 0, 8)]}
    (run,) = [
        row
        for batch in scan_runs(whole_log(tmp_path), OPTIONS, root=str(tmp_path))
        for row in batch.to_pylist()
        if row["status"] == "ok"
    ]
    assert (run["firstOffset"], run["lastOffset"]) == (0, 4)


def test_a_damaged_topic_or_offset_leads_to_no_file_outside_the_store(tmp_path: Path) -> None:
    messages = [
        Message("../../etc", 0, 0),
        Message("A", 0, 1 << 60),
        Message("A", 0, 0),
        Message("A", 1 << 30, 3),
    ]
    written = write_log(tmp_path, messages)
    write_queues(tmp_path, units_of(written[2:3]))
    write_topics(tmp_path, ["A"])
    found = findings(tmp_path, known_end=1 << 40)
    assert found == {
        DELETED_TOPIC: [("../../etc", 0, 0, 0), ("A", 0, 1 << 60, 1 << 60)],
        NO_UNIT: [("A", 1 << 30, 3, 3)],
    }


def test_a_store_that_lost_all_queues_has_no_deleted_topics(tmp_path: Path) -> None:
    write_log(tmp_path, SOUND)
    assert findings(tmp_path, known_end=1 << 40).keys() == {NO_UNIT}
