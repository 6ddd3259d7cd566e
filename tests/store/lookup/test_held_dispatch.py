"""What waits for the disk is dispatched from the hand; what is not in the hand is read from the log."""

import pytest
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.store import appending
from pocketmq.store.lookup import held_dispatch
from pocketmq.store.lookup.log_dispatch import LogDispatch
from pocketmq.store.put_values import AlikeBatch, ElementBatch

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


@pytest.fixture(autouse=True)
def takes_elements(monkeypatch):
    monkeypatch.setattr(appending, "is_native", True)


def put_all_kinds(store, put, new_message) -> int:
    """Messages of each kind of append; returns how many."""
    put(store, UNIQ_KEY=ID)
    store.append_batch([new_message(UNIQ_KEY=ID), new_message(UNIQ_KEY=ID)])
    template = store.template(new_message(UNIQ_KEY=ID))
    assert store.append_alike(template, [(0, b"alike", ID.encode(), 0, 0)] * 2) is not None
    batch = AlikeBatch(0, 0, [b"a", b"b"], [ID.encode()] * 2)
    assert store.append_alike_batch(template, batch) is not None
    elements = encode_batch([BatchElement(0, b"c", f"UNIQ_KEY\1{ID}".encode())])
    assert store.append_elements(ElementBatch("orders", 0, elements, 0, 0, bytes(8), bytes(8), 0)) is not None
    return 8


def test_messages_on_disk_are_visible_without_being_read_back(open_store, put, new_message, bodies, counted):
    arrived = []
    store = open_store(on_arrival=lambda topic, queue, offset, *_: arrived.append(offset), **SYNC)
    count = put_all_kinds(store, put, new_message)
    store.dispatch_flushed()
    assert bodies(store) == arrived == []
    flush(store)
    assert arrived == list(range(count))
    assert len(bodies(store)) == len(store.query("orders", ID, 9, 0, 1 << 62).views) == count
    assert counted == []


def test_too_much_in_the_hand_is_read_from_the_log(
    open_store, put, new_message, bodies, counted, monkeypatch
):
    monkeypatch.setattr(held_dispatch, "MOST_HELD", 2)
    store = open_store(**SYNC)
    count = put_all_kinds(store, put, new_message)
    flush(store)
    assert len(bodies(store)) == count
    assert counted
    counted.clear()
    put(store)
    flush(store)
    assert (len(bodies(store)), counted) == (count + 1, [])


def test_messages_of_a_deleted_queue_begin_it_again(open_store, put, bodies):
    store = open_store(**SYNC)
    put(store, body=b"first")
    flush(store)
    put(store, body=b"second")
    store.delete_topic_queues("orders")
    flush(store)
    assert bodies(store) == [b"second"]


def test_a_sender_may_change_properties_once_they_are_stored(open_store, new_message):
    store = open_store(**SYNC)
    message = new_message(UNIQ_KEY=ID, TAGS="red")
    store.append(message)
    message.property_map.clear()
    flush(store)
    assert len(store.query("orders", ID, 9, 0, 1 << 62).views) == 1
