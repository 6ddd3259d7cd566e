"""A slave's store that gets a master's log: the same bytes and queues, however the log is split into parts."""

from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.store import MessageStore
from pocketmq.store.errors import DiskFailedError
from pocketmq.store.log.replicated_log import DivergedError
from pocketmq.store.message_store import DISPATCH_AT_ONCE

from store_batches import leave_as_killed, new_message

from ..conftest import OpenStore

LOG_FILE_BYTES = 4096


def copy(master: MessageStore, slave: MessageStore, part_bytes: int = 700) -> None:
    """The rest of the log, in parts of at most that many bytes."""
    position = slave.replication.end or master.replication.first_position(0)
    while (part := master.replication.read(position, part_bytes)) is not None:
        slave.append_copied(position, part)
        position += len(part)
    while slave.dispatch_copied():
        pass


def log_bytes(store: MessageStore) -> dict[str, bytes]:
    return {file.path.name: bytes(file.view[: file.written]) for file in store.log.files}


def bodies(store: MessageStore, topic: str = "orders", queue_id: int = 0) -> list[bytes]:
    found = store.get_message(topic, queue_id, store.min_offset(topic, queue_id), 1000)
    return [bytes(view) for view in found.views]


@pytest.fixture
def master(open_store: OpenStore, tmp_path: Path) -> MessageStore:
    return open_store(tmp_path / "master")


@pytest.fixture
def slave(open_store: OpenStore, tmp_path: Path) -> MessageStore:
    return open_store(tmp_path / "slave", broker_role="SLAVE")


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 1500), min_size=1, max_size=30),
    part_bytes=st.integers(1, 3000),
)
def test_any_split_gives_the_same_bytes_and_queues(
    open_store: OpenStore, tmp_path: Path, sizes: list[int], part_bytes: int
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))  # a folder for each example: hypothesis tries some twice
    master = open_store(folder / "master")
    slave = open_store(folder / "slave", broker_role="SLAVE")
    master.append(new_message(body=b"first"))
    copy(
        master, slave, part_bytes
    )  # before the log has a second file: later ones are copied from their start
    for size in sizes:
        master.append(new_message(body=b"x" * size, KEYS="k"))
    copy(master, slave, part_bytes)
    assert log_bytes(slave) == log_bytes(master)
    assert slave.max_offset("orders", 0) == master.max_offset("orders", 0) == len(sizes) + 1
    assert bodies(slave) == bodies(master)
    master.close()
    slave.close()


def test_part_of_a_record_waits_for_its_rest(master: MessageStore, slave: MessageStore) -> None:
    master.append(new_message(body=b"a"))
    end = master.replication.end
    part = master.replication.read(0, end)
    assert part is not None
    slave.append_copied(0, part[:50])
    slave.dispatch_copied()
    assert slave.max_offset("orders", 0) == 0
    slave.append_copied(50, part[50:])
    slave.dispatch_copied()
    assert slave.max_offset("orders", 0) == 1


@pytest.mark.parametrize(("emulate", "visible"), [(4, 1), (5, 0)])
def test_a_slave_with_sync_flush_shows_in_5x_what_its_own_disk_has(
    master: MessageStore, open_store: OpenStore, tmp_path: Path, emulate: int, visible: int
) -> None:
    """ReputMessageService goes up to CommitLog.getConfirmOffset, which is then the flushed position."""
    master.append(new_message(body=b"a"))
    part = master.replication.read(0, 10_000)
    assert part is not None
    slave = open_store(tmp_path / "slave", broker_role="SLAVE", flush_disk_type="SYNC_FLUSH", emulate=emulate)
    slave.append_copied(0, part)
    assert not slave.dispatch_copied()
    assert slave.max_offset("orders", 0) == visible
    slave.flush_pass()
    slave.dispatch_copied()
    assert slave.max_offset("orders", 0) == 1


def test_a_slave_stopped_within_a_record_continues_at_its_start(
    master: MessageStore, open_store: OpenStore, tmp_path: Path
) -> None:
    for number in range(3):
        master.append(new_message(body=b"%d" % number * 100))
    part = master.replication.read(0, 10_000)
    assert part is not None
    slave = open_store(tmp_path / "slave", broker_role="SLAVE")
    slave.append_copied(0, part[: len(part) - 10])
    slave.dispatch_copied()
    slave.close()
    reopened = open_store(tmp_path / "slave", broker_role="SLAVE")
    assert reopened.replication.end == len(part) // 3 * 2
    copy(master, reopened)
    assert log_bytes(reopened) == log_bytes(master)
    assert bodies(reopened) == bodies(master)


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_slave_that_ends_anywhere_in_a_record_copies_it_anew(
    master: MessageStore, open_store: OpenStore, tmp_path: Path, is_killed: bool
) -> None:
    """The CRC of a record is that of its body: one without the rest of its properties looks whole."""
    for number in range(2):
        master.append(new_message(body=b"%d" % number * 30, KEYS="k" * 20, TAGS="paid"))
    end = master.replication.end
    part = master.replication.read(0, end)
    assert part is not None
    for cut in range(end // 2 + 1, end + 1):
        folder = tmp_path / f"slave-{cut}"
        slave = open_store(folder, broker_role="SLAVE")
        slave.append_copied(0, part[: cut - 2])
        slave.append_copied(cut - 2, part[cut - 2 : cut])
        assert slave.replication.end == cut
        if is_killed:
            leave_as_killed(slave)
        else:
            slave.close()
        reopened = open_store(folder, broker_role="SLAVE")
        assert reopened.replication.end == (end if cut == end else end // 2)
        copy(master, reopened)
        assert log_bytes(reopened) == log_bytes(master)
        assert bodies(reopened) == bodies(master)
        reopened.close()


def test_what_is_no_record_is_copied_as_it_is(slave: MessageStore) -> None:
    """What a master has skipped to the end of its file."""
    garbage = bytes(range(256)) * (LOG_FILE_BYTES // 256)
    for at in range(0, LOG_FILE_BYTES, 100):
        slave.append_copied(at, memoryview(garbage)[at : at + 100])
    assert log_bytes(slave) == {f"{0:020}": garbage}


def test_an_empty_slave_gets_the_newest_file_only(master: MessageStore, slave: MessageStore) -> None:
    for _ in range(10):
        master.append(new_message(body=b"x" * 1000))
    newest = master.log.files[-1]
    assert newest.base > 0
    assert master.replication.first_position(0) == newest.base
    copy(master, slave)
    assert list(log_bytes(slave)) == [newest.path.name]
    assert slave.min_offset("orders", 0) > 0
    assert slave.max_offset("orders", 0) == master.max_offset("orders", 0) == 10


def test_an_empty_part_opens_the_first_file_of_an_empty_slave(slave: MessageStore) -> None:
    slave.append_copied(3 * LOG_FILE_BYTES + 100, memoryview(b""))
    assert slave.replication.end == 3 * LOG_FILE_BYTES + 100
    assert slave.log.files[0].base == 3 * LOG_FILE_BYTES


def test_a_different_log_is_refused_and_the_slaves_own_kept(
    master: MessageStore, slave: MessageStore
) -> None:
    master.append(new_message())
    copy(master, slave)
    before = log_bytes(slave)
    for position in (0, slave.replication.end + 1):
        with pytest.raises(DivergedError):
            slave.append_copied(position, memoryview(b"other"))
    assert log_bytes(slave) == before


def test_part_beyond_the_end_of_a_file_is_an_error_that_names_the_file_size(slave: MessageStore) -> None:
    with pytest.raises(DivergedError, match="mappedFileSizeCommitLog=4096"):
        slave.append_copied(LOG_FILE_BYTES - 4, memoryview(b"12345"))


def test_many_records_at_once_become_visible_in_slices(open_store: OpenStore, tmp_path: Path) -> None:
    big = open_store(tmp_path / "big", mapped_file_size_commit_log=1 << 20)
    slave = open_store(tmp_path / "big-slave", mapped_file_size_commit_log=1 << 20, broker_role="SLAVE")
    for _ in range(DISPATCH_AT_ONCE + 1):
        big.append(new_message(body=b""))
    part = big.replication.read(0, 1 << 20)
    assert part is not None
    slave.append_copied(0, part)
    assert slave.dispatch_copied()
    assert slave.max_offset("orders", 0) == DISPATCH_AT_ONCE
    assert not slave.dispatch_copied()
    assert slave.max_offset("orders", 0) == DISPATCH_AT_ONCE + 1


def test_a_promoted_slave_continues_the_queue_offsets(
    open_store: OpenStore, tmp_path: Path, master: MessageStore
) -> None:
    slave = open_store(tmp_path / "slave", broker_role="SLAVE")
    for _ in range(4):
        master.append(new_message())
    copy(master, slave)
    slave.close()
    promoted = open_store(tmp_path / "slave")
    assert promoted.append(new_message()).queue_offset == 4


def test_a_slave_with_a_failed_disk_refuses_more_parts(master: MessageStore, slave: MessageStore) -> None:
    master.append(new_message())
    part = master.replication.read(0, 1000)
    assert part is not None
    slave.admission.record_disk_failure(DiskFailedError("EIO"))
    with pytest.raises(DiskFailedError):
        slave.append_copied(0, part)
    assert slave.replication.end == 0
