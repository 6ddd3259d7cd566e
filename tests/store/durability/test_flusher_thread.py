"""The flusher's own thread: who waits for it, when it pauses, how it ends. What it forces is in `test_flusher.py`."""

import threading

import pytest
from pocketmq.store import PutStatus
from pocketmq.store.errors import DiskFailedError

from store_batches import put
from threads import begun_since, running_threads

BIG = {"mapped_file_size_commit_log": 1 << 20, "mapped_file_size_consume_queue": 60_000}


@pytest.mark.parametrize("background", [False, True])
def test_forcing_the_log_returns_once_a_single_byte_is_on_disk(open_store, disk, background):
    """With the flusher's thread and without it, as at the stop."""
    store = open_store(flush_in_background=background, **BIG)
    result = put(store)
    store.force_log(result.position + 1)
    assert store.flushed_position == store.log_end
    calls = disk.calls
    store.force_log(store.log_end)
    assert disk.calls == calls, "it is on disk already"
    put(store)
    disk.broken = True
    with pytest.raises(DiskFailedError):
        store.force_log(store.log_end)
    disk.broken = False


def test_background_thread_serves_a_waiter_and_ends_with_the_store(open_store):
    """Real thread, real disk; nothing sleeps here."""
    before = running_threads()
    store = open_store(flush_disk_type="SYNC_FLUSH", flush_in_background=True, **BIG)
    result = put(store)
    store.force_log(result.position + result.size)
    assert store.flushed_position >= result.position + result.size
    store.close()
    assert begun_since(before) == []


class Waits(threading.Condition):
    """Notes how long the flusher's thread would wait, and lets it go on at once."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return False


def test_background_thread_pauses_after_a_pass_that_failed(open_store, monkeypatch):
    """Else a lack of file descriptors would make it use a whole core and fill the program's log."""
    thread = open_store(**BIG)._flusher
    waits, passes = Waits(), []
    monkeypatch.setattr(thread, "_condition", waits)

    def run_pass() -> None:
        passes.append(len(waits.seconds))
        thread._wanted, thread._stopping = True, len(passes) == 3
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(thread, "run_pass", run_pass)
    thread._wanted = True
    thread._run()
    assert passes == [0, 1, 2]
    assert waits.seconds == [0.5, 0.5], "none after the store was closed"
    assert thread.failures == 3


def test_background_thread_answers_every_waiter_after_the_disk_failed(open_store, disk):
    store = open_store(flush_disk_type="SYNC_FLUSH", flush_in_background=True, **BIG)
    disk.broken = True
    assert put(store).status is PutStatus.PUT_OK
    for _ in range(2):
        with pytest.raises(DiskFailedError):
            store.force_log(store.log_end)
        disk.broken = False
