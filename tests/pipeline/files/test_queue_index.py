"""What the consume queues find is what a scan of the log finds, however many units they have lost."""

import logging
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.tables import open_store
from pocketmq.pipeline.tables.files import queue_index
from pocketmq.pipeline.tables.files.consume_queues import known_log_end, queue_splits
from pocketmq.pipeline.tables.files.log_files import log_files
from pocketmq.pipeline.tables.files.queue_index import find_by_queues, find_uncovered
from pocketmq.protocol.message.record import BLANK_MAGIC

from pipeline.store_files import Message, overwrite, units_of, write_log, write_queues

TOPICS = ("Bills", "Orders", "Prices")


@st.composite
def stores(draw: st.DrawFn) -> tuple[list[Message], set[int]]:
    """Messages of three topics, and the numbers of those whose unit is lost."""
    offsets: dict[tuple[str, int], int] = {}
    messages = []
    for _ in range(draw(st.integers(1, 40))):
        queue = draw(st.sampled_from(TOPICS)), draw(st.integers(0, 2))
        messages.append(Message(*queue, offsets.get(queue, 0)))
        offsets[queue] = messages[-1].offset + 1
    return messages, draw(st.sets(st.integers(0, len(messages) - 1)))


def positions(found: Any) -> list[int]:
    return [each.file.base + position for each in found for position in each.positions.tolist()]


@settings(max_examples=60, deadline=None)
@given(stores(), st.sets(st.sampled_from(TOPICS), min_size=1))
def test_records_are_found_whatever_units_are_lost(
    store: tuple[list[Message], set[int]], topics: set[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(queue_index, "SMALL_PART", 1)
        root, queues_root = Path(folder), Path(folder) / "consumequeue"
        written = write_log(root, store[0])
        kept = [message for number, message in enumerate(written) if number not in store[1]]
        write_queues(root, units_of(kept))
        queues, files = queue_splits(queues_root, frozenset()), log_files(root / "commitlog")
        known_end = known_log_end(queues)
        found = find_by_queues(queues_root, files, queues, frozenset(topics), known_end)
        assert found is not None
        assert positions(found) == [
            message.position
            for message in written
            if message.topic in topics and message.position < known_end
        ]
        rows = open_store(root, columns="physicalOffset", topics=sorted(topics)).read_all()
        assert rows.column(0).to_pylist() == [
            message.position for message in written if message.topic in topics
        ]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def small_store(root: Path) -> list[Message]:
    """Twenty messages, of which each fifth is of Bills."""
    numbers = range(20)
    messages = [Message("Orders" if number % 5 else "Bills", 0, number // 5) for number in numbers]
    offsets = iter(range(20))
    messages = [
        message if message.topic == "Bills" else message._replace(offset=next(offsets))
        for message in messages
    ]
    return write_log(root, messages)


def of_store(root: Path) -> Any:
    queues = queue_splits(root / "consumequeue", frozenset())
    return root / "consumequeue", log_files(root / "commitlog"), queues, frozenset(["Bills"])


def test_records_without_their_unit_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written = small_store(tmp_path)
    write_queues(tmp_path, units_of([*written[:5], *written[6:]]))
    of_bills = [message.position for message in written[::5]]
    with caplog.at_level(logging.WARNING, "pocketmq.pipeline"):
        assert positions(find_by_queues(*of_store(tmp_path), written[-1].position)) == of_bills
    (line,) = lines(caplog)
    assert f"{tmp_path}: 1 messages of Bills are not in its consume queues" in line


def test_units_that_were_written_since_planning_are_no_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written = small_store(tmp_path)
    write_queues(tmp_path, units_of(written))
    *first, queues, topics = of_store(tmp_path)
    early = [queue if queue.topic == "Orders" else type(queue)(*_fields(queue), 2) for queue in queues]
    with caplog.at_level(logging.WARNING, "pocketmq.pipeline"):
        found = find_by_queues(*first, early, topics, written[-1].position)
    assert positions(found) == [message.position for message in written[::5]]
    assert lines(caplog) == []


def _fields(queue: Any) -> tuple[Any, ...]:
    return queue.topic, queue.queue_id, queue.folder, queue.lo


def test_units_of_light_queues_cover_nothing(tmp_path: Path) -> None:
    written = small_store(tmp_path)
    write_queues(
        tmp_path,
        units_of([*written[:5], *written[6:]])
        | {("%LMQ%one", 0): {0: (written[5].position, written[5].size)}},
    )
    assert positions(find_by_queues(*of_store(tmp_path), written[-1].position)) == [
        message.position for message in written[::5]
    ]


def test_damage_in_what_no_unit_covers_needs_a_scan(tmp_path: Path) -> None:
    written = small_store(tmp_path)
    write_queues(tmp_path, units_of([*written[:5], *written[6:]]))
    overwrite(tmp_path / "commitlog" / f"{0:020}", written[5].position + 4)
    assert find_uncovered(*of_store(tmp_path), written[-1].position) is None


def test_units_that_overlap_need_a_scan(tmp_path: Path) -> None:
    written = small_store(tmp_path)
    too_large = written[4]._replace(size=written[4].size + written[5].size + 1)
    write_queues(tmp_path, units_of([*written[:4], too_large, *written[6:]]))
    assert find_uncovered(*of_store(tmp_path), written[-1].position) is None


@pytest.mark.parametrize("free", [8, 100, 3])
def test_the_filler_of_a_file_is_covered(tmp_path: Path, free: int) -> None:
    written = small_store(tmp_path)
    path = tmp_path / "commitlog" / f"{0:020}"
    size = path.stat().st_size
    filler = free.to_bytes(4, "big") + BLANK_MAGIC.to_bytes(4, "big", signed=True)
    path.write_bytes(path.read_bytes() + filler[:free].ljust(free, b"\0"))
    write_queues(tmp_path, units_of(written))
    assert find_uncovered(*of_store(tmp_path), size + free) == []
