"""Messages become records: C does what Python does, byte for byte, and writes nothing before it has checked all."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.records import MOST_ODD, Head, Stop
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.record import decode_record

from property_texts import TEXTS


class Queue:
    """A queue that only counts."""

    def __init__(self, next_offset: int = 0) -> None:
        self.next_offset = next_offset

    def __repr__(self) -> str:
        return f"Queue({self.next_offset!r})"


Topics = dict[str, dict[int, Queue]]


def queues_for(messages: list[Any], first_offset: int = 0, *, missing: int = -1) -> Topics:
    """A queue for each place that messages name, but for that of message number `missing`."""
    topics: Topics = {}
    for head, queue_id, *_ in messages:
        topics.setdefault(head.topic, {}).setdefault(queue_id, Queue(first_offset))
    if 0 <= missing < len(messages):
        del topics[messages[missing][0].topic][messages[missing][1]]
    return topics


def numbers_of(topics: Topics) -> dict[tuple[str, int], int]:
    return {
        (topic, queue_id): queue.next_offset
        for topic, queues in topics.items()
        for queue_id, queue in queues.items()
    }


def named(packed: Any, topics: Topics) -> Any:
    """What was packed, with the places of queues instead of the queues."""
    names = {
        queue: (topic, queue_id) for topic, queues in topics.items() for queue_id, queue in queues.items()
    }
    stop, runs, positions, sizes, entries, keys, texts, added = packed
    return (
        *(stop, positions, sizes, entries, keys, texts),
        [(names.get(queue), *rest) for queue, *rest in runs],
        [(names[queue], *rest) for queue, *rest in added],
    )


STARTS = st.integers(-1, 2**32 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
HEADS = st.builds(
    lambda magic, rest, born, host, times, topic, keys, tags, name, is_queued, delays: Head(
        magic + rest, born, host + times, topic, keys, tags, name, is_queued, delays
    ),
    st.sampled_from([b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab"]),
    st.binary(min_size=8, max_size=8),
    st.sampled_from([bytes(range(8)), bytes(range(20))]),
    st.sampled_from([bytes(range(8)), bytes(range(20))]),
    st.binary(min_size=4, max_size=4),
    st.sampled_from([b"\1t", b"\0\2tt", b"\x7f" + b"t" * 127, b"\x00\xff" + b"t" * 255]),
    STARTS,
    STARTS,
    st.sampled_from(["t", "t", "other"]),
    st.sampled_from([True, True, False]),
    st.sampled_from([(), (), (), (1000, 5000)]),
)
ELEMENTS = st.builds(BatchElement, st.integers(-(2**31), 2**31 - 1), st.binary(max_size=40), TEXTS)


def damaged(elements: list[BatchElement], damage: list[tuple[int, int]], tail: bytes) -> bytes:
    data = bytearray(encode_batch(elements))
    for byte, value in damage:
        if byte < len(data):
            data[byte] = value
    return bytes(data) + tail


BATCHES = st.builds(
    damaged,
    st.lists(ELEMENTS, max_size=4),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=1),
    st.just(b"") | st.binary(max_size=3),
)
CODES = st.none() | LONGS
QUEUE_IDS = st.sampled_from([0, 0, 1, -(2**31), 2**31 - 1])
LONG_TEXTS = st.sampled_from([b"a\x01" + b"x" * 32_765, b"a\x01" + b"x" * 32_766])
MESSAGES = st.one_of(
    st.tuples(HEADS, QUEUE_IDS, st.binary(max_size=60), TEXTS | TEXTS | LONG_TEXTS, LONGS, LONGS, CODES),
    st.tuples(HEADS, QUEUE_IDS, BATCHES | BATCHES.map(memoryview), st.none(), LONGS, LONGS, CODES),
)


SOUND_TEXTS = st.lists(
    st.tuples(
        st.sampled_from([b"UNIQ_KEY", b"KEYS", b"TAGS", b"own"]),
        st.sampled_from([b"a", b"order 17", b"  ", "ü".encode(), b"\xf0\x9f\x98\x80 b"])
        | st.just(b"7F0000010001000000010000000A0001"),
    ).map(b"\x01".join)
    | st.sampled_from([b"DELAY\x01" + level for level in (b"0", b"1", b"2", b"17", b"x", b"00000000002")]),
    max_size=5,
).map(b"\x02".join)
SOUND_BATCHES = st.lists(
    st.builds(BatchElement, st.integers(-9, 9), st.binary(max_size=9), SOUND_TEXTS), min_size=1, max_size=4
).map(encode_batch)
SOUND_MESSAGES = st.one_of(
    st.tuples(HEADS, QUEUE_IDS, st.binary(max_size=20), SOUND_TEXTS, LONGS, LONGS, CODES),
    st.tuples(
        HEADS.map(lambda head: head._replace(delays_ms=())),
        *(QUEUE_IDS, SOUND_BATCHES, st.none(), LONGS, LONGS, CODES),
    ),
)


ODD = [BatchElement(0, b"", b"TAGS\x01\xff")]


@pytest.mark.parametrize(
    ("elements", "keys_start", "expected"),
    [
        (ODD, 7, Stop.NOT_UTF8),
        ([BatchElement(0, b"", b"KEYS\x01a \xff")], 7, Stop.NOT_UTF8),
        ([BatchElement(0, b"", b"UNIQ_KEY\x01\xff")], 7, Stop.NOT_UTF8),
        ([BatchElement(0, b"", b"KEYS\x01\xff\x02UNIQ_KEY\x01\xff")], -1, Stop.NO_MORE),
        ([BatchElement(0, b"", b"own\x01\xff")], 7, Stop.NO_MORE),
        ([BatchElement(0, b"", b"TAGS\x01\xff\x02TAGS\x01a")], 7, Stop.NO_MORE),
        ([BatchElement(0, b"", b"TAGS\x01\xef\xbf\xbd\x02own\x01\xff")], 7, Stop.NO_MORE),
        ([*ODD, BatchElement(0, bytes(10), b"")], 7, Stop.NOT_UTF8),
        ([BatchElement(0, bytes(10), b""), *ODD], 7, Stop.BODY_TOO_LONG),
    ],
)
def test_long_batches_have_tags_and_keys_in_utf_8(core, elements, keys_start, expected) -> None:
    """What ends a batch is the first thing that does."""
    head = Head(bytes(12), bytes(8), bytes(12), b"\1t", keys_start, keys_start, "t", True)
    body = encode_batch(elements + [BatchElement(0, b"", b"")] * MOST_ODD)
    messages = [(head, 0, body, None, 0, 0, None)]
    packed = core.pack_records(bytearray(200_000), 0, 200_000, 0, 0, 9, messages, queues_for(messages))
    assert packed[0] == expected


@given(
    messages=st.lists(SOUND_MESSAGES, max_size=4), at=st.integers(0, 9), first_offset=st.integers(0, 2**40)
)
def test_sound_messages_are_all_packed_alike(native, messages, at, first_offset) -> None:
    maps = bytearray(16_000), bytearray(16_000)
    topics = queues_for(messages, first_offset), queues_for(messages, first_offset)
    arguments = (at, 16_000, 1 << 40, 1_700_000_000_000, 20, messages)
    packed = native.pack_records(maps[1], *arguments, topics[1])
    assert (packed[0], len(packed[1])) == (Stop.NO_MORE, len(messages))
    found = in_python["pack_records"](maps[0], *arguments, topics[0])
    assert named(found, topics[0]) == named(packed, topics[1])
    assert numbers_of(topics[0]) == numbers_of(topics[1])
    assert maps[0] == maps[1]


@given(
    messages=st.lists(MESSAGES, max_size=5),
    at=st.integers(0, 20),
    room=st.sampled_from([4096, 4096, 40_000, 700, 130]),
    numbers=st.tuples(st.integers(0, 2**62), st.integers(-5, 2**62), st.integers(0, 2**62)),
    max_body_bytes=st.sampled_from([40, 60, 20]),
    old=st.sampled_from([0, 255]),
    missing=st.integers(-9, 4),
)
def test_messages_are_packed_alike(native, messages, at, room, numbers, max_body_bytes, old, missing) -> None:
    base, store_timestamp, first_offset = numbers
    topics = [queues_for(messages, first_offset, missing=missing) for _ in range(2)]
    maps = bytearray([old]) * (room + 30), bytearray([old]) * (room + 30)
    arguments = (at, at + room, base, store_timestamp, max_body_bytes)
    packed = native.pack_records(maps[1], *arguments, messages, topics[1])
    stop, runs, positions, sizes, entries, keys, _, added = packed
    if stop == Stop.NOT_UTF8:
        _, _, body, text, *_ = messages[len(runs)]
        assert not is_utf8(bytes(body) if text is None else text)
        messages, packed = messages[: len(runs)], (0, *packed[1:])
    found = in_python["pack_records"](maps[0], *arguments, messages, topics[0])
    assert named(found, topics[0]) == named(packed, topics[1])
    assert numbers_of(topics[0]) == numbers_of(topics[1])
    assert maps[0] == maps[1]
    assert len(positions) == len(sizes) == sum(count for *_, count in runs)
    in_queues = [count for queue, _, count in runs if queue is not None]
    assert sum(len(part) for _, _, part, *_ in added) == 20 * sum(in_queues)
    assert sum(sizes) <= room
    assert len(entries) == 20 * len(sizes)
    assert len(keys) % 12 == 0
    assert maps[1][at + sum(sizes) :] == bytearray([old]) * (room + 30 - at - sum(sizes))


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


HEAD = Head(b"\xda\xa3\x20\xa7" + bytes(8), bytes(8), bytes(12), b"\1t", 0, 0, "t", is_queued=True)
MESSAGE = (HEAD, 3, b"body", b"KEYS\x01a\x02TAGS\x01b", 5, 6, None)
LONG_AND_CUT = encode_batch([BatchElement(0, b"x" * 11, b"")]) + b"cut"


def test_a_record_has_what_its_message_says(core) -> None:
    memory = bytearray(600)
    queue = Queue(9)
    stop, runs, positions, sizes, entries, keys, texts, added = core.pack_records(
        memory, 7, 600, 1000, 44, 10, [MESSAGE], {"t": {3: queue}}
    )
    record = decode_record(memoryview(memory)[7 : 7 + sizes[0]])
    assert (stop, runs, positions, texts) == (Stop.NO_MORE, [(queue, 9, 1)], [1007], [MESSAGE[3]])
    assert added == [(queue, 9, entries, 1007, 1007 + sizes[0])]
    assert queue.next_offset == 10
    assert (record.topic, record.queue_id, record.queue_offset, record.position) == ("t", 3, 9, 1007)
    assert (bytes(record.body), bytes(record.properties)) == (b"body", MESSAGE[3])
    assert (record.born_timestamp, record.store_timestamp) == (5, 44)
    assert record.prepared_transaction_offset == 6
    assert struct.unpack(">qiq", entries) == (1007, sizes[0], ord("b"))
    assert struct.unpack(">IqIq", keys) == (ord("a"), 1007, ord("b"), 1007)


@pytest.mark.parametrize(
    ("message", "most", "stop"),
    [
        ((HEAD, 3, b"x" * 11, b"", 5, 6, None), 10, Stop.BODY_TOO_LONG),
        ((HEAD, 3, b"", b"x" * 32_768, 5, 6, None), 10, Stop.TEXT_TOO_LONG),
        ((HEAD, 3, b"", b"x" * 32_767, 5, 6, None), 10, Stop.NO_ROOM),
        ((HEAD, 3, b"", None, 5, 6, None), 10, Stop.UNREADABLE),
        ((HEAD, 3, b"cut", None, 5, 6, None), 10, Stop.UNREADABLE),
        ((HEAD, 3, LONG_AND_CUT, None, 5, 6, None), 10, Stop.UNREADABLE),
    ],
)
def test_it_stops_before_a_message_that_cannot_be_packed(core, message, most, stop) -> None:
    pack = core.pack_records
    memory = bytearray(600)
    topics = queues_for([MESSAGE])
    found, runs, _, sizes, *_ = pack(memory, 0, 600, 0, 0, most, [MESSAGE, message, MESSAGE], topics)
    assert (found, len(runs), len(sizes)) == (stop, 1, 1)
    assert not any(memory[sizes[0] :])
    assert numbers_of(topics) == {("t", 3): 1}


ODD = b"KEYS\x01\xff", b"UNIQ_KEY\x01\xed\xa0\x80", b"TAGS\x01\xc0\x80", b"KEYS\x01a \xe2\x82"


@pytest.mark.parametrize("text", [*ODD, "DELAY\x01\u0663".encode()])
def test_c_leaves_odd_keys_tags_and_levels_to_python(native, text) -> None:
    memory = bytearray(600)
    odd = (HEAD._replace(delays_ms=(1000,)), 3, b"", text, 5, 6, None)
    packed = native.pack_records(memory, 0, 600, 0, 0, 10, [odd], queues_for([odd]))
    assert packed == (Stop.NOT_UTF8, [], [], [], b"", b"", [], [])
    assert not any(memory)
    stop, runs, *_ = in_python["pack_records"](memory, 0, 600, 0, 0, 10, [odd], queues_for([odd]))
    assert (stop, len(runs)) == (Stop.NO_MORE, 1)


@pytest.mark.parametrize(
    ("text", "due_ms"),
    [
        (b"DELAY\x012", 5044),
        (b"DELAY\x0199", 5044),
        (b"DELAY\x010\x02TAGS\x01b", ord("b")),
        (b"DELAY\x01x", 0),
        (b"DELAY\x01-1", 0),
        (b"DELAY\x0100000000001", 0),
        (b"TAGS\x01b", ord("b")),
    ],
)
def test_messages_of_the_schedule_topic_have_the_time_when_they_are_due(core, text, due_ms) -> None:
    message = (HEAD._replace(delays_ms=(1000, 5000)), 3, b"", text, 5, 6, None)
    _, _, _, _, entries, *_ = core.pack_records(
        bytearray(600), 0, 600, 0, 44, 10, [message], queues_for([message])
    )
    assert struct.unpack(">qiq", entries)[2] == due_ms


def test_a_batch_of_the_schedule_topic_is_refused(core) -> None:
    batch = encode_batch([BatchElement(0, b"a", b"")])
    message = (HEAD._replace(delays_ms=(1000,)), 3, batch, None, 5, 6, None)
    packed = core.pack_records(bytearray(600), 0, 600, 0, 44, 10, [message], queues_for([message]))
    assert packed[:2] == (Stop.UNREADABLE, [])


def test_the_smallest_int_of_java_has_the_hash_0(core) -> None:
    """Its absolute value is itself."""
    start = (2**31 - ord("0")) * pow(31, -1, 2**32) % 2**32
    head = HEAD._replace(keys_start=start, tags_start=-1)
    messages = [(head, 0, b"", b"KEYS\x010", 0, 0, None)]
    *_, keys, _, _ = core.pack_records(bytearray(600), 0, 600, 0, 0, 10, messages, queues_for(messages))
    assert struct.unpack(">Iq", keys) == (0, 0)


def with_head(**changes: Any) -> list[Any]:
    return [(HEAD._replace(**changes), 3, b"body", b"", 5, 6, None)]


def with_item(place: int, value: Any) -> list[Any]:
    return [(*MESSAGE[:place], value, *MESSAGE[place + 1 :])]


WRONG_ITEMS = [
    *((0, None), (0, tuple(HEAD)[:5]), (0, tuple(HEAD)[:8]), (1, "3"), (1, 2**31), (2, "body"), (2, None)),
    *((3, "text"), (3, 7), (4, 2**63), (5, None), (6, 2**63)),
]
WRONG_HEADS: list[dict[str, Any]] = [
    *({"constants": b"short"}, {"born_host": b""}, {"store_host": bytes(40)}, {"topic_bytes": "t"}),
    *({"keys_start": 2**64}, {"tags_start": None}, {"topic": []}, {"delays_ms": None}),
]
WRONG_VALUES: list[dict[str, Any]] = [
    *({"memory": bytes(1000)}, {"memory": None}, {"at": -1}, {"at": 700}, {"end": 1001}, {"end": 2**62}),
    *({"base": 2**63}, {"base": 2**63 - 1}, {"base": -1}, {"store_timestamp": 2**63}),
    *({"messages": ()}, {"messages": [None]}, {"messages": [()]}, {"messages": [list(MESSAGE)]}),
    *({"messages": [MESSAGE[:-1]]}, {"topics": []}, {"topics": {"t": []}}, {"topics": {"t": {3: 7}}}),
    *({"messages": with_item(*item)} for item in WRONG_ITEMS),
    *({"messages": with_head(**head)} for head in WRONG_HEADS),
    *({"topics": {"t": {3: Queue(number)}}} for number in ("1", 2**63, 2**63 - 1, -1)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("change", WRONG_VALUES, ids=str)
def test_other_arguments_are_refused_before_a_byte_is_written(native, change) -> None:
    values = {"memory": bytearray(1000), "at": 0, "end": 600, "base": 0, "store_timestamp": 0}
    values |= {"max_body_bytes": 10, "messages": [MESSAGE], "topics": queues_for([MESSAGE])}
    assert len(native.pack_records(*values.values())[1]) == 1
    queue = Queue(7)
    values |= {"memory": bytearray(1000), "topics": {"t": {3: queue}}} | change
    if values["messages"] and isinstance(values["messages"], list) and "topics" not in change:
        # What is wrong about the second message is found before the first one is written.
        values |= {"messages": [MESSAGE, *values["messages"]]}
    with pytest.raises(
        (struct.error, ValueError, IndexError, OverflowError, TypeError, BufferError, AttributeError)
    ):
        native.pack_records(*values.values())
    assert not any(values["memory"] or b"")
    assert queue.next_offset == 7


def test_a_batch_whose_numbers_would_overflow_is_refused(core) -> None:
    batch = encode_batch([BatchElement(0, b"", b"")] * 3)
    memory = bytearray(1000)
    with pytest.raises((struct.error, OverflowError, ValueError)):
        core.pack_records(
            memory, 0, 600, 0, 0, 10, [(HEAD, 0, batch, None, 0, 0, None)], {"t": {0: Queue(2**63 - 2)}}
        )
    assert not any(memory)
