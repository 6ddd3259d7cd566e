"""Messages become records: C does what Python does, byte for byte, and writes nothing before it has checked all."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.records import Head, Stop
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.record import decode_record

from property_texts import TEXTS

STARTS = st.integers(-1, 2**32 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
HEADS = st.builds(
    lambda magic, rest, born, host, times, topic, keys, tags: Head(
        magic + rest, born, host + times, topic, keys, tags, "t", is_in_queue=True
    ),
    st.sampled_from([b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab"]),
    st.binary(min_size=8, max_size=8),
    st.sampled_from([bytes(range(8)), bytes(range(20))]),
    st.sampled_from([bytes(range(8)), bytes(range(20))]),
    st.binary(min_size=4, max_size=4),
    st.sampled_from([b"\1t", b"\0\2tt", b"\x7f" + b"t" * 127, b"\x00\xff" + b"t" * 255]),
    STARTS,
    STARTS,
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
QUEUE_IDS = st.integers(-(2**31), 2**31 - 1)
LONG_TEXTS = st.sampled_from([b"a\x01" + b"x" * 32_765, b"a\x01" + b"x" * 32_766])
MESSAGES = st.one_of(
    st.tuples(HEADS, QUEUE_IDS, st.binary(max_size=60), TEXTS | TEXTS | LONG_TEXTS, LONGS, LONGS, CODES),
    st.tuples(HEADS, QUEUE_IDS, BATCHES | BATCHES.map(memoryview), st.none(), LONGS, LONGS, CODES),
)


SOUND_TEXTS = st.lists(
    st.tuples(
        st.sampled_from([b"UNIQ_KEY", b"KEYS", b"TAGS", b"own"]),
        st.sampled_from(
            [
                b"a",
                b"order 17",
                b"  ",
                "ü".encode(),
                b"\xf0\x9f\x98\x80 b",
                b"7F0000010001000000010000000A0001",
            ]
        ),
    ).map(b"\x01".join),
    max_size=5,
).map(b"\x02".join)
SOUND_BATCHES = st.lists(
    st.builds(BatchElement, st.integers(-9, 9), st.binary(max_size=9), SOUND_TEXTS), min_size=1, max_size=4
).map(encode_batch)
SOUND_MESSAGES = st.one_of(
    st.tuples(HEADS, QUEUE_IDS, st.binary(max_size=20), SOUND_TEXTS, LONGS, LONGS, CODES),
    st.tuples(HEADS, QUEUE_IDS, SOUND_BATCHES, st.none(), LONGS, LONGS, CODES),
)


@given(
    messages=st.lists(SOUND_MESSAGES, max_size=4), at=st.integers(0, 9), first_offset=st.integers(0, 2**40)
)
def test_sound_messages_are_all_packed_alike(native, messages, at, first_offset) -> None:
    maps = bytearray(16_000), bytearray(16_000)
    offsets = [first_offset + 100 * number for number in range(len(messages))]
    arguments = (at, 16_000, 1 << 40, 1_700_000_000_000, 20, messages, offsets)
    packed = native.pack_records(maps[1], *arguments)
    assert packed[:2] == (len(messages), Stop.NO_MORE)
    assert in_python["pack_records"](maps[0], *arguments) == packed
    assert maps[0] == maps[1]


@given(
    messages=st.lists(MESSAGES, max_size=5),
    at=st.integers(0, 20),
    room=st.sampled_from([4096, 4096, 40_000, 700, 130]),
    numbers=st.tuples(st.integers(0, 2**62), st.integers(-5, 2**62), st.integers(0, 2**62)),
    most_body_bytes=st.sampled_from([40, 60, 20]),
    old=st.sampled_from([0, 255]),
)
def test_messages_are_packed_alike(native, messages, at, room, numbers, most_body_bytes, old) -> None:
    base, store_timestamp, first_offset = numbers
    offsets = [first_offset + 100 * number for number in range(len(messages))]
    maps = bytearray([old]) * (room + 30), bytearray([old]) * (room + 30)
    arguments = (at, at + room, base, store_timestamp, most_body_bytes)
    packed = native.pack_records(maps[1], *arguments, messages, offsets)
    done, stop, sizes, entries, keys = packed
    if stop == Stop.NOT_UTF8:
        _, _, body, text, *_ = messages[done]
        assert not is_utf8(bytes(body) if text is None else text)
        messages, offsets, packed = messages[:done], offsets[:done], (done, 0, sizes, entries, keys)
    assert in_python["pack_records"](maps[0], *arguments, messages, offsets) == packed
    assert maps[0] == maps[1]
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


HEAD = Head(b"\xda\xa3\x20\xa7" + bytes(8), bytes(8), bytes(12), b"\1t", 0, 0, "t", is_in_queue=True)
MESSAGE = (HEAD, 3, b"body", b"KEYS\x01a\x02TAGS\x01b", 5, 6, None)


def test_a_record_has_what_its_message_says(native) -> None:
    for pack in (native.pack_records, in_python["pack_records"]):
        memory = bytearray(600)
        done, stop, sizes, entries, keys = pack(memory, 7, 600, 1000, 44, 10, [MESSAGE], [9])
        record = decode_record(memoryview(memory)[7 : 7 + sizes[0]])
        assert (done, stop) == (1, Stop.NO_MORE)
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
        (
            (HEAD, 3, encode_batch([BatchElement(0, b"x" * 11, b"")]) + b"cut", None, 5, 6, None),
            10,
            Stop.UNREADABLE,
        ),
    ],
)
@pytest.mark.parametrize("form", ["python", "c"])
def test_it_stops_before_a_message_that_cannot_be_packed(native, form, message, most, stop) -> None:
    pack = in_python["pack_records"] if form == "python" else native.pack_records
    memory = bytearray(600)
    packed = pack(memory, 0, 600, 0, 0, most, [MESSAGE, message, MESSAGE], [0, 1, 2])
    assert packed[:2] == (1, stop)
    assert len(packed[2]) == 1
    assert not any(memory[packed[2][0] :])


@pytest.mark.parametrize(
    "text", [b"KEYS\x01\xff", b"UNIQ_KEY\x01\xed\xa0\x80", b"TAGS\x01\xc0\x80", b"KEYS\x01a \xe2\x82"]
)
def test_c_leaves_keys_and_tags_that_are_not_utf8_to_python(native, text) -> None:
    memory = bytearray(600)
    odd = (HEAD, 3, b"", text, 5, 6, None)
    assert native.pack_records(memory, 0, 600, 0, 0, 10, [odd], [0]) == (0, Stop.NOT_UTF8, [], b"", b"")
    assert not any(memory)
    assert in_python["pack_records"](memory, 0, 600, 0, 0, 10, [odd], [0])[:2] == (1, Stop.NO_MORE)


def test_the_smallest_int_of_java_has_the_hash_0(native) -> None:
    """Its absolute value is itself."""
    start = (2**31 - ord("0")) * pow(31, -1, 2**32) % 2**32
    head = HEAD._replace(keys_start=start, tags_start=-1)
    for pack in (native.pack_records, in_python["pack_records"]):
        *_, keys = pack(bytearray(600), 0, 600, 0, 0, 10, [(head, 0, b"", b"KEYS\x010", 0, 0, None)], [0])
        assert struct.unpack(">Iq", keys) == (0, 0)


def with_head(**changes: Any) -> list[Any]:
    return [(HEAD._replace(**changes), 3, b"body", b"", 5, 6, None)]


def with_item(place: int, value: Any) -> list[Any]:
    return [(*MESSAGE[:place], value, *MESSAGE[place + 1 :])]


@pytest.mark.parametrize(
    "change",
    [
        {"memory": bytes(1000)},
        {"memory": None},
        {"at": -1},
        {"at": 700},
        {"end": 1001},
        {"end": 2**62},
        {"base": 2**63},
        {"base": 2**63 - 1},
        {"base": -1},
        {"store_timestamp": 2**63},
        {"messages": ()},
        {"messages": [None]},
        {"messages": [()]},
        {"messages": [list(MESSAGE)]},
        {"messages": [MESSAGE[:-1]]},
        {"messages": with_item(0, None)},
        {"messages": with_item(0, tuple(HEAD)[:5])},
        {"messages": with_item(1, "3")},
        {"messages": with_item(1, 2**31)},
        {"messages": with_item(2, "body")},
        {"messages": with_item(2, None)},
        {"messages": with_item(3, "text")},
        {"messages": with_item(3, 7)},
        {"messages": with_item(4, 2**63)},
        {"messages": with_item(5, None)},
        {"messages": with_item(6, 2**63)},
        {"messages": with_head(constants=b"short")},
        {"messages": with_head(born_host=b"")},
        {"messages": with_head(store_host=bytes(40))},
        {"messages": with_head(topic_bytes="t")},
        {"messages": with_head(keys_start=2**64)},
        {"messages": with_head(tags_start=None)},
        {"offsets": []},
        {"offsets": [None]},
        {"offsets": [2**63]},
        {"offsets": (0,)},
    ],
    ids=str,
)
def test_other_arguments_are_refused_before_a_byte_is_written(native, change) -> None:
    values = {
        "memory": bytearray(1000),
        "at": 0,
        "end": 600,
        "base": 0,
        "store_timestamp": 0,
        "most_body_bytes": 10,
        "messages": [MESSAGE],
        "offsets": [0],
    }
    assert native.pack_records(*values.values())[0] == 1
    values |= {"memory": bytearray(1000)} | change
    if values["messages"] and isinstance(values["messages"], list) and values["offsets"] == [0]:
        # What is wrong about the second message is found before the first one is written.
        values |= {"messages": [MESSAGE, *values["messages"]], "offsets": [0, 0]}
    with pytest.raises((struct.error, ValueError, IndexError, OverflowError, TypeError, BufferError)):
        native.pack_records(*values.values())
    assert not any(values["memory"] or b"")


def test_a_batch_whose_numbers_would_overflow_is_refused(native) -> None:
    batch = encode_batch([BatchElement(0, b"", b"")] * 3)
    for pack in (native.pack_records, in_python["pack_records"]):
        memory = bytearray(1000)
        with pytest.raises((struct.error, OverflowError, ValueError)):
            pack(memory, 0, 600, 0, 0, 10, [(HEAD, 0, batch, None, 0, 0, None)], [2**63 - 2])
        assert not any(memory)
