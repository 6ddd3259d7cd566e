"""A batch is written and dispatched at once: all of it or nothing. Its files are compared in `test_append.py`."""

import itertools
from types import SimpleNamespace

import pytest
from pocketmq.core import records
from pocketmq.core.records import pack_in_python
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import decode_records
from pocketmq.store import PutStatus
from pocketmq.store.log import commit_log

from store_batches import append_batch, batch_of, leave_as_killed, new_message, put, queue_offsets


@pytest.mark.parametrize("step", range(1, 4))
def test_a_process_killed_during_a_batch_leaves_none_of_it(open_store, monkeypatch, step) -> None:
    """It is killed before the write of that number. C writes in the same order."""
    store = open_store()
    first = put(store)
    monkeypatch.setattr(commit_log, "pack_records", killed_before(step))
    with pytest.raises(KeyboardInterrupt):
        append_batch(store, [new_message(body=b"%d" % count) for count in range(5)])
    leave_as_killed(store)
    store = open_store()
    assert store.log_end == first.size
    assert store.max_offset("orders", 0) == 1


def killed_before(step: int):
    """`pack_records` in Python, into memory whose write of that number never happens."""

    class Memory:
        def __init__(self, memory) -> None:
            self.memory, self.writes = memory, itertools.count(1)

        def __len__(self) -> int:
            return len(self.memory)

        def __setitem__(self, place: slice, value: bytes) -> None:
            if next(self.writes) == step:
                raise KeyboardInterrupt
            self.memory[place] = value

    return lambda memory, *rest: pack_in_python(Memory(memory), *rest)


def test_the_first_length_of_a_batch_is_written_last() -> None:
    memory = bytearray(4096)
    head = records.Head(bytes(12), bytes(8), bytes(12), b"\1t", 0, 0, "t", is_queued=True)
    elements = encode_batch([BatchElement(0, b"first", b""), BatchElement(0, b"second", b"")])
    topics = {"t": {0: SimpleNamespace(next_offset=0)}}
    with pytest.raises(KeyboardInterrupt):
        killed_before(3)(memory, 0, 4096, 0, 0, 9, [(head, 0, elements, None, 0, 0, None)], topics)
    assert not any(memory[:4])
    assert b"first" in memory
    assert b"second" in memory


def test_one_check_decides_whether_arrivals_of_a_batch_are_announced(open_store):
    asked, announced = [], []

    def is_awaited(topic, queue_id):
        asked.append((topic, queue_id))
        return len(asked) > 1

    store = open_store(is_awaited=is_awaited, on_arrivals=lambda *place: announced.extend(place[2]))
    put(store)
    for _ in range(2):
        append_batch(store, [new_message() for _ in range(3)])
    assert asked == [("orders", 0)] * 3
    assert [arrival[0] for arrival in announced] == [1, 2, 3, 4, 5, 6]
    assert sum(announced[-1][-2:]) == store.log_end


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ({"INNER_MULTI_DISPATCH": "%LMQ%c"}, PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED),
        # With the numbers of its light queues, which are added here, it is too long.
        ({"INNER_MULTI_DISPATCH": "%LMQ%a", "big": "x" * 32_730}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
    ],
)
def test_a_batch_is_stored_all_or_none_if_its_last_message_asks_too_much_of_light_queues(
    open_store, last, status
) -> None:
    store = open_store(
        enable_lmq=True,
        enable_multi_dispatch=True,
        max_lmq_consume_queue_num=2,
        mapped_file_size_commit_log=1 << 17,
    )
    messages = [
        new_message(INNER_MULTI_DISPATCH="%LMQ%a"),
        new_message(INNER_MULTI_DISPATCH="%LMQ%b,%LMQ%a"),
    ]
    placed = append_batch(store, [*messages, new_message(**last)])
    assert (placed.refusal, placed.sizes) == (status, [])
    assert store.log_end <= 0
    placed = append_batch(store, [*messages, new_message(INNER_MULTI_DISPATCH="%LMQ%b,x")])
    assert placed.refusal is None
    assert [store.max_offset("%LMQ%a", 0), store.max_offset("%LMQ%b", 0)] == [2, 2]
    assert [store.max_offset("orders", 0), queue_offsets(placed)] == [3, [0, 1, 2]]
    (view,) = store.get_message("orders", 0, 0, 9).views
    texts = [decode_properties(record.properties) for record in decode_records(view)]
    assert [text["INNER_MULTI_QUEUE_OFFSET"] for text in texts] == ["0", "0,1", "1,"]


@pytest.mark.parametrize("crc", [False, True])
@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("cut", [1, 20, 30])
def test_a_batch_that_is_cut_off_is_refused_and_leaves_nothing(open_store, crc, light, cut):
    store = open_store(enabled_append_prop_crc=crc, enable_lmq=light, enable_multi_dispatch=light)
    put(store)
    end = store.log_end
    head, queue_id, elements, *rest = batch_of(store, [new_message(body=b"%d" % n) for n in range(3)])
    placed = store.append_all([(head, queue_id, elements[:-cut], *rest)])
    assert (placed.refusal, placed.sizes) == (PutStatus.MESSAGE_ILLEGAL, [])
    assert (store.log_end, store.max_offset("orders", 0)) == (end, 1)
    assert not any(store.log.files[-1].view[end:])
    assert store.append_all([(head, queue_id, elements, *rest)]).refusal is None
    assert store.max_offset("orders", 0) == 4


def test_a_batch_that_has_no_room_for_its_checksum_is_refused(open_store):
    store = open_store(enabled_append_prop_crc=True, mapped_file_size_commit_log=1 << 17)
    placed = append_batch(store, [new_message(), new_message(big="x" * 32_750)])
    assert (placed.refusal, placed.sizes) == (PutStatus.PROPERTIES_SIZE_EXCEEDED, [])
    assert store.append(new_message(big="x" * 32_750)).status is PutStatus.PROPERTIES_SIZE_EXCEEDED


def test_a_batch_for_the_topic_of_delayed_messages_is_refused(open_store):
    """Its messages would need a delivery time each."""
    store = open_store()
    messages = [new_message("SCHEDULE_TOPIC_XXXX", DELAY="1"), new_message("SCHEDULE_TOPIC_XXXX", DELAY="2")]
    assert append_batch(store, messages).refusal is PutStatus.MESSAGE_ILLEGAL
    assert store.append(messages[0]).status is PutStatus.PUT_OK
