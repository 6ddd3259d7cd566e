"""A batch is written and dispatched at once: the same files as one message at a time, and all of it or nothing."""

import itertools
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.flags import HOSTS_IPV6
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import decode_records
from pocketmq.store import (
    AppendResult,
    MessageStore,
    NewMessage,
    PutStatus,
    StoreConfig,
    VirtualClock,
    appending,
)
from pocketmq.store.accelerated import batch_records
from pocketmq.store.accelerated.choice import in_python
from pocketmq.store.errors import DiskFullError
from pocketmq.store.log import record_packing, record_template
from pocketmq.store.put_values import AlikeBatch, ElementBatch

MESSAGES = st.fixed_dictionaries(
    {"body": st.binary(max_size=40)},
    optional={
        "TAGS": st.sampled_from(["red", "blue"]),
        "KEYS": st.sampled_from(["a", "b c", "  "]),
        "UNIQ_KEY": st.text("0123456789ABCDEF", min_size=32, max_size=32),
        "DELAY": st.sampled_from(["1", "x"]),
        "own": st.just("ü \U0001f511"),
    },
)
BATCHES = st.lists(st.tuples(st.integers(0, 1), st.lists(MESSAGES, min_size=1, max_size=9)), max_size=12)


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for part in ("commitlog", "consumequeue", "index")
        for path in sorted((directory / part).rglob("*"))
        if path.is_file()
    }


def elements_of(messages: list[NewMessage]) -> ElementBatch:
    """The messages as they lie in the body of a request."""
    first = messages[0]
    elements = [BatchElement(message.flag, message.body, message.properties) for message in messages]
    return ElementBatch(
        first.topic,
        first.queue_id,
        encode_batch(elements),
        first.sys_flag,
        first.born_timestamp,
        first.born_host,
        first.store_host,
        first.reconsume_times,
    )


def append_unopened(store: MessageStore, messages: list[NewMessage]) -> list[AppendResult]:
    stored = store.append_elements(elements_of(messages))
    if stored is None:
        return store.append_batch(messages)
    assert stored.end == store.log_end
    places = zip(stored.positions, stored.sizes, stored.queue_offsets, strict=True)
    return [AppendResult(PutStatus.PUT_OK, *place, stored.store_timestamp) for place in places]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=BATCHES,
    emulate=st.sampled_from([4, 5]),
    topic=st.sampled_from(["orders", "SCHEDULE_TOPIC_XXXX"]),
    crc=st.booleans(),
    host=st.sampled_from([bytes(8), bytes(20)]),
    sync=st.booleans(),
)
def test_files_equal_those_of_one_message_at_a_time(
    tmp_path_factory: pytest.TempPathFactory, new_message, batches, emulate, topic, crc, host, sync
) -> None:
    folder = tmp_path_factory.mktemp("batches")
    arrivals: dict[str, list[object]] = {"unopened": [], "together": [], "single": []}
    files = {}
    for way, seen in arrivals.items():
        config = StoreConfig(
            store_path_root_dir=str(folder / way),
            emulate=emulate,
            mapped_file_size_commit_log=4096,
            mapped_file_size_consume_queue=200,
            max_hash_slot_num=8,
            max_index_num=20,
            enabled_append_prop_crc=crc and not sync,  # arrivals read from the log have it, others do not
            flush_disk_type="SYNC_FLUSH" if sync else "ASYNC_FLUSH",
        )
        clock = VirtualClock(1_700_000_000_000)
        store = MessageStore(
            config, clock, on_arrival=lambda *it, to=seen: to.append(it), flush_in_background=False
        )
        store.open()
        for queue_id, batch in batches:
            messages = [new_message(topic, queue_id, **each) for each in batch]
            for message in messages:
                message.born_host = host
            if way == "unopened":
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(appending, "is_native", True)
                    seen.append(append_unopened(store, messages))
            elif way == "together":
                seen.append(store.append_batch(messages))
            else:
                store.log.make_room(messages)
                seen.append([store.append(message) for message in messages])
            clock.advance(700)
            if way == "single":
                store._appending.forget_held()  # read from the log
            store.log.files.flushed = store.log_end
            store.dispatch_flushed()
        store.close()
        files[way] = files_of(folder / way)
    assert arrivals["unopened"] == arrivals["together"] == arrivals["single"]
    assert files["unopened"] == files["together"] == files["single"]


@pytest.mark.parametrize(
    ("changes", "is_stored"),
    [
        ({}, True),
        ({"born_host": bytes(20)}, False),
        ({"store_host": bytes(20)}, False),
        ({"sys_flag": HOSTS_IPV6}, False),
    ],
)
def test_a_batch_is_stored_as_it_arrived_only_with_ipv4_hosts(
    open_store, put, new_message, monkeypatch, changes, is_stored
) -> None:
    """The flags of a record say how long its hosts are: others are packed message by message."""
    monkeypatch.setattr(appending, "is_native", True)
    store = open_store()
    end = put(store).size
    batch = elements_of([new_message(body=b"a"), new_message(body=b"b")])
    batch = msgspec.structs.replace(batch, **changes)
    assert (store.append_elements(batch) is not None) == is_stored
    assert (store.log_end > end) == is_stored


@pytest.mark.parametrize("head", [1, 2, 3, 4, 5])
def test_a_process_killed_during_a_batch_leaves_none_of_it(
    open_store, put, new_message, crash, monkeypatch, head
) -> None:
    """It is killed before the head of that number is written; the bytes after a head are written before the head."""
    store = open_store()
    first = put(store)
    heads = itertools.count(1)
    pack_head = record_packing._HEAD_V4

    def die(*arguments: object) -> None:
        if next(heads) == head:
            raise KeyboardInterrupt
        pack_head(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(record_packing, "_HEAD_V4", die)
        with pytest.raises(KeyboardInterrupt):
            store.append_batch([new_message(body=b"%d" % count) for count in range(5)])
    crash(store)
    store = open_store()
    assert store.log_end == first.size
    assert store.max_offset("orders", 0) == 1


def test_a_batch_without_room_in_the_index_is_found_once_it_has_room(
    open_store, put, new_message, monkeypatch
):
    store = open_store()
    put(store, KEYS="first")
    with monkeypatch.context() as patch:
        patch.setattr(store._index, "put", _no_room)
        results = store.append_batch([new_message(KEYS=f"k{number}") for number in range(3)])
    assert [result.queue_offset for result in results] == [1, 2, 3]
    assert not store.query("orders", "k1", 9, 0, 1 << 62).views
    store.dispatch_flushed()
    assert len(store.query("orders", "k1", 9, 0, 1 << 62).views) == 1
    assert store.max_offset("orders", 0) == 4


def test_one_check_decides_whether_arrivals_of_a_batch_are_announced(open_store, put, new_message):
    asked, announced = [], []

    def is_awaited(topic, queue_id):
        asked.append((topic, queue_id))
        return len(asked) > 1

    store = open_store(is_awaited=is_awaited, on_arrival=lambda *arrival: announced.append(arrival[2]))
    put(store)
    for _ in range(2):
        store.append_batch([new_message() for _ in range(3)])
    assert asked == [("orders", 0)] * 2
    assert announced == [0, 4, 5, 6]
    position, size = store.newest_dispatched
    assert position + size == store.log_end


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ({"INNER_MULTI_DISPATCH": "%LMQ%c"}, PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED),
        # With the numbers of its light queues, which are added here, it is too long.
        ({"INNER_MULTI_DISPATCH": "%LMQ%a", "big": "x" * 32_730}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
    ],
)
def test_a_batch_is_stored_all_or_none_if_its_last_message_asks_too_much_of_light_queues(
    open_store, new_message, bodies, last, status
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
    results = store.append_batch([*messages, new_message(**last)])
    assert [result.status for result in results] == [status] * 3
    assert store.log_end <= 0
    results = store.append_batch([*messages, new_message(INNER_MULTI_DISPATCH="%LMQ%b,x")])
    assert [result.status for result in results] == [PutStatus.PUT_OK] * 3
    assert [store.max_offset("%LMQ%a", 0), store.max_offset("%LMQ%b", 0)] == [2, 2]
    (view,) = store.get_message("orders", 0, 0, 9).views
    texts = [decode_properties(record.properties) for record in decode_records(view)]
    assert [text["INNER_MULTI_QUEUE_OFFSET"] for text in texts] == ["0", "0,1", "1,"]


def _no_room(*_: object) -> None:
    raise DiskFullError("no room")


def test_a_process_killed_during_a_batch_of_a_template_leaves_none_of_it(
    open_store, put, new_message, crash, monkeypatch
) -> None:
    store = open_store()
    first = put(store, UNIQ_KEY="1" * 32)
    template = store.template(new_message(UNIQ_KEY="1" * 32))
    monkeypatch.setattr(record_template, "pack_batch", in_python["pack_batch"])
    monkeypatch.setattr(batch_records, "_PACK_INT", _die)  # what writes the first length
    with pytest.raises(KeyboardInterrupt):
        store.append_alike_batch(template, AlikeBatch(0, 0, [b"a", b"b"], [b"1" * 32, b"2" * 32]))
    monkeypatch.undo()
    crash(store)
    store = open_store()
    assert store.log_end == first.size
    assert store.max_offset("orders", 0) == 1
    assert not any(store.log.files[-1].view[first.size :])


def test_a_batch_of_a_template_has_the_bytes_of_ordinary_messages(
    open_store, put, new_message, tmp_path
) -> None:
    bodies, ids = [b"a", b"longer", b"b"], [b"%032d" % number for number in range(3)]
    logs = []
    for way in ("template", "ordinary"):
        store = open_store(tmp_path / way)
        messages = []
        for body, unique_id in zip(bodies, ids, strict=True):
            messages.append(new_message("orders", 1, body, UNIQ_KEY=unique_id.decode(), TAGS="red"))
            messages[-1].born_timestamp, messages[-1].born_host = 77, b"\1\2\3\4\0\0\0\5"
        first = put(store, queue_id=1)
        if way == "template":
            template = store.template(messages[0])
            assert template is not None
            assert store.append_alike_batch(template, AlikeBatch(1, 77, bodies, ids)) is not None
        else:
            for message in messages:
                store.append(message)
        logs.append(bytes(store.log.files[0].view[first.size : store.log_end]))
    assert logs[0] == logs[1]
    assert [bytes(record.body) for record in decode_records(logs[0])] == bodies


@pytest.mark.parametrize(
    "wrong",
    [
        {"born_timestamp": 1 << 63},
        {"bodies": [b"a", bytes(101)]},
        {"bodies": [b"a", memoryview(b"a")]},
        {"queue_id": 1},
        {"bodies": [bytes(100)] * 20, "unique_ids": [b"1" * 32] * 20},
    ],
)
def test_a_batch_of_a_template_that_cannot_be_stored_as_it_is_leaves_nothing(
    open_store, put, new_message, wrong
) -> None:
    store = open_store(max_message_size=100)
    put(store, UNIQ_KEY="1" * 32)
    end = store.log_end
    template = store.template(new_message(UNIQ_KEY="1" * 32))
    right = {"queue_id": 0, "born_timestamp": 0, "bodies": [b"a", b"b"], "unique_ids": [b"1" * 32] * 2}
    assert store.append_alike_batch(template, AlikeBatch(**{**right, **wrong})) is None
    assert store.log_end == end
    assert not any(store.log.files[-1].view[end:])
    assert store.append_alike_batch(template, AlikeBatch(**right)).queue_offsets == range(1, 3)


def test_the_first_length_of_a_batch_that_is_not_taken_apart_is_written_last(new_message) -> None:
    class Memory(bytearray):
        def __setitem__(self, place: slice, value: bytes) -> None:
            if place.stop - place.start == 4:
                raise KeyboardInterrupt
            super().__setitem__(place, value)

    memory = Memory(4096)
    batch = elements_of([new_message(body=b"first"), new_message(body=b"second")])
    head = bytes(4), bytes(4), bytes(48), b"\1t"
    with pytest.raises(KeyboardInterrupt):
        in_python["pack_elements"](memory, 0, 4096, 0, 0, *head, batch.elements, 9, 0, 0)
    assert not any(memory[:4])
    assert b"first" in memory
    assert b"second" in memory


def _die(*_: object) -> None:
    raise KeyboardInterrupt
