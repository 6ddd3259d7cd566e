"""What waits for the disk is dispatched from what was deferred; what was not is read from the log."""

import pytest
from pocketmq.store.lookup import deferred_dispatch
from pocketmq.store.lookup.log_dispatch import LogDispatch

from store_batches import append_batch, bodies, new_message, put

ID = "7F0000010001000000010000000A0001"
SYNC = {"flush_disk_type": "SYNC_FLUSH", "mapped_file_size_commit_log": 1 << 16}


@pytest.fixture
def counted(monkeypatch):
    """The records that are read back from the log."""
    read = []
    add_all = LogDispatch.add_all

    def counting(self, records, base):
        read.extend(records)
        add_all(self, records, base)

    monkeypatch.setattr(LogDispatch, "add_all", counting)
    return read


def flush(store) -> None:
    store.flush_pass()
    store.dispatch_flushed()


def put_all_kinds(store) -> int:
    """One message, a batch and several messages in one append; returns how many messages."""
    put(store, UNIQ_KEY=ID)
    append_batch(store, [new_message(UNIQ_KEY=ID), new_message(UNIQ_KEY=ID)])
    store.append_all([store.pack_message(new_message(UNIQ_KEY=ID)) for _ in range(3)])
    return 6


def test_messages_on_disk_are_visible_without_being_read_back(open_store, counted):
    arrived = []
    store = open_store(
        on_arrivals=lambda topic, queue, arrivals: arrived.extend(each[0] for each in arrivals),
        **SYNC,
    )
    count = put_all_kinds(store)
    store.dispatch_flushed()
    assert bodies(store) == arrived == []
    flush(store)
    assert arrived == list(range(count))
    assert len(bodies(store)) == len(store.query("orders", ID, 9, 0, 1 << 62).views) == count
    assert counted == []


def test_too_much_that_is_deferred_is_read_from_the_log(open_store, counted, monkeypatch):
    monkeypatch.setattr(deferred_dispatch, "MAX_DEFERRED", 2)
    store = open_store(**SYNC)
    count = put_all_kinds(store)
    flush(store)
    assert len(bodies(store)) == count
    assert counted
    counted.clear()
    put(store)
    flush(store)
    assert (len(bodies(store)), counted) == (count + 1, [])


def test_messages_of_a_deleted_queue_begin_it_again(open_store):
    store = open_store(**SYNC)
    put(store, body=b"first")
    flush(store)
    put(store, body=b"second")
    store.delete_topic_queues("orders")
    flush(store)
    assert bodies(store) == [b"second"]
