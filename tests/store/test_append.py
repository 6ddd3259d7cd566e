"""Several messages or a batch in one append: the same files, numbers and arrivals as one append after the other."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pocketmq.protocol.message.flags import TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.store import AppendResult, MessageStore, NewMessage, PutStatus, VirtualClock

from store_batches import (
    Arrivals,
    append_batch,
    batch_of,
    bodies,
    dispatch_flushed,
    leave_as_killed,
    new_message,
    open_small,
    queue_offsets,
)
from stored_files import stored_files

PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "UNIQ_KEY": st.text("0123456789ABCDEF", min_size=1, max_size=34),
        "TAGS": st.sampled_from(["red", "blue", ""]),
        "KEYS": st.sampled_from(["a", "b c", "  "]),
        "DELAY": st.sampled_from(["3", "x"]),
        "colour": st.text(
            st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=5
        ),
    },
)
ODD_TEXTS = st.sampled_from(
    [b"KEYS\x01\xff\x02", b"TAGS\x01\xed\xa0\x80", b"UNIQ_KEY\x01\xf0\x9f", b"\xff\x01\xff", b"\x02"]
)
MESSAGES = st.builds(
    lambda topic, queue_id, text, host, final, flag, sys_flag, times, body: NewMessage(
        topic,
        queue_id,
        body,
        text if isinstance(text, bytes) else encode_properties(text, final_separator=final),
        None,
        flag,
        sys_flag,
        times,
        host,
        bytes(8),
        3,
        times * 2,
    ),
    st.sampled_from(["orders", "%RETRY%g", "SCHEDULE_TOPIC_XXXX", "t" * 127, "%RETRY%" + "t" * 121]),
    st.integers(0, 2) | st.sampled_from([0, 0, 0, -1]),
    PROPERTIES | ODD_TEXTS,
    st.sampled_from([bytes(range(8)), bytes(20)]),
    st.booleans(),
    st.sampled_from([0, -1, 7]),
    st.sampled_from([0, 1, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK]),
    st.integers(0, 1 << 40),
    st.binary(max_size=30) | st.sampled_from([b"." * 200, b"." * 201]),
)


class Batch(list[NewMessage]):
    """Messages that are sent as one."""


BATCHES = st.builds(
    lambda queue_id, host, parts: Batch(
        NewMessage("orders", queue_id, body, encode_properties(pairs), born_host=host)
        for pairs, body in parts
    ),
    st.integers(0, 1),
    st.sampled_from([bytes(range(8)), bytes(20)]),
    st.lists(st.tuples(PROPERTIES, st.binary(max_size=30)), min_size=1, max_size=3),
)
CALLS = st.lists(st.lists(MESSAGES, min_size=1, max_size=7) | BATCHES, max_size=5)


@settings(
    max_examples=40,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    calls=CALLS,
    emulate=st.sampled_from([4, 5]),
    crc=st.booleans(),
    index=st.booleans(),
    sync=st.booleans(),
    long_topics=st.booleans(),
    flushes=st.integers(0, 1 << 9),
)
def test_files_and_arrivals_equal_those_of_one_message_at_a_time(
    tmp_path_factory: pytest.TempPathFactory, calls, emulate, crc, index, sync, long_topics, flushes
) -> None:
    folder = tmp_path_factory.mktemp("appends")
    options = {"enabled_append_prop_crc": crc, "message_index_enable": index, "emulate": emulate}
    options |= {"auto_message_version_on_topic_len": long_topics}
    options |= {"flush_disk_type": "SYNC_FLUSH" if sync else "ASYNC_FLUSH"}
    sizes = {"mapped_file_size_commit_log": 1024, "max_message_size": 200}

    def outcome(way: str) -> tuple[object, ...]:
        clock, seen = VirtualClock(1_700_000_000_000), Arrivals()
        store = open_small(
            folder / way, clock, on_arrivals=seen, max_hash_slot_num=8, max_index_num=40, **sizes, **options
        )
        places: list[object] = []
        for number, messages in enumerate(calls):
            if isinstance(messages, Batch):
                places += places_of(store, messages, together=way == "together")
            elif way == "together":
                append_together(store, messages, places)
            else:
                places += [place_of(store.append(message)) for message in messages]
            clock.advance(700)
            if flushes >> number & 1:
                dispatch_flushed(store, from_log=way == "single")
        dispatch_flushed(store, from_log=way == "single")
        counted = store.statistics.messages, store.statistics.bytes, store.statistics.failed
        leave_as_killed(store)  # closing would wait for the disk
        return seen.all, places, counted, stored_files(folder / way)

    assert outcome("together") == outcome("single")


def place_of(result: AppendResult) -> object:
    is_stored = result.status is PutStatus.PUT_OK
    return (result.position, result.size, result.queue_offset) if is_stored else result.status


def places_of(store: MessageStore, batch: Batch, *, together: bool) -> list[object]:
    """A batch is not divided between two files, so there is room for all of it before the first of its messages."""
    if together:
        placed = append_batch(store, batch)
        assert placed.refusal is None
        return list(zip(placed.positions, placed.sizes, queue_offsets(placed), strict=True))
    store.log.make_room(batch_of(store, batch))
    return [place_of(store.append(message)) for message in batch]


def append_together(store: MessageStore, messages: list[NewMessage], places: list[object]) -> None:
    """All messages; behind one that is refused by another call, as a caller does."""
    packed = []
    for message in messages:
        try:
            packed.append(store.pack_message(message))
        except Exception:
            if packed:
                append_packed(store, packed, places)
                packed = []
            places.append(store.append(message).status)
    if packed:
        append_packed(store, packed, places)


def append_packed(store: MessageStore, packed: list, places: list[object]) -> None:
    while packed:
        placed = store.append_all(list(packed))
        places += zip(placed.positions, placed.sizes, queue_offsets(placed), strict=True)
        assert len(placed.runs) == len(placed.sizes)
        if placed.sizes:
            assert placed.end == placed.positions[-1] + placed.sizes[-1]
            # Room for a message is made before it is refused for its length: that may have begun a file.
            has_begun_file = placed.refusal is not None and store.log_end % store.log.file_bytes == 0
            assert placed.end == store.log_end or has_begun_file
        packed = packed[len(placed.runs) :]
        if packed:
            assert placed.refusal is not None
            places.append(placed.refusal)
            packed = packed[1:]
        else:
            assert placed.refusal is None


def packed(store, *queue_ids: int, **settings):
    return [
        store.pack_message(new_message(queue_id=queue_id, body=b"%d" % number, **settings))
        for number, queue_id in enumerate(queue_ids)
    ]


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"body": bytes(101)}, PutStatus.MESSAGE_ILLEGAL),
        ({"big": "x" * 40_000}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ({"queue_id": -1}, PutStatus.MESSAGE_ILLEGAL),
        ({"topic": "a/b"}, PutStatus.MESSAGE_ILLEGAL),
        ({"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b"}, PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED),
    ],
)
def test_it_stops_at_the_first_message_that_is_refused(open_store, wrong, status):
    store = open_store(
        max_message_size=100, enable_lmq=True, enable_multi_dispatch=True, max_lmq_consume_queue_num=1
    )
    before = packed(store, 0, 1)
    behind = packed(store, 0, 1, 0)
    placed = store.append_all([*before, store.pack_message(new_message(**wrong)), *behind])
    assert (placed.refusal, queue_offsets(placed)) == (status, [0, 0])
    assert placed.end == store.log_end
    assert store.statistics.failed == 1
    assert [store.max_offset("orders", number) for number in range(2)] == [1, 1]
    placed = store.append_all(behind)
    assert (placed.refusal, queue_offsets(placed)) == (None, [1, 1, 2]), "numbers of the first call went back"
    assert bodies(store) == [b"0", b"0", b"2"]


def test_light_queues_number_the_messages_that_are_stored_only(open_store):
    store = open_store(max_message_size=100, enable_lmq=True, enable_multi_dispatch=True)
    light = {"INNER_MULTI_DISPATCH": "%LMQ%a"}
    stored, wrong = new_message(**light), new_message(body=bytes(101), **light)
    placed = store.append_all([store.pack_message(message) for message in (stored, wrong, stored)])
    assert (placed.refusal, len(placed.sizes)) == (PutStatus.MESSAGE_ILLEGAL, 1)
    assert store.append_all([store.pack_message(stored), store.pack_message(stored)]).refusal is None
    assert bodies(store, "%LMQ%a") == [b"body"] * 3


def test_messages_that_wait_for_the_disk_appear_once_it_has_them(open_store):
    arrived = []
    store = open_store(
        flush_disk_type="SYNC_FLUSH",
        on_arrivals=lambda topic, queue, arrivals: arrived.extend((queue, each[0]) for each in arrivals),
    )
    store.append_all(packed(store, 0, 1, 0))
    store.dispatch_flushed()
    assert bodies(store) == arrived == []
    store.flush_pass()
    store.dispatch_flushed()
    assert arrived == [(0, 0), (1, 0), (0, 1)]
    assert bodies(store) == [b"0", b"2"]
