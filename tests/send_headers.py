"""Frames of sends with headers as clients write them, and odd ones, for tests of what reads them."""

import itertools
import struct

from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.sends import SPECIAL, End, Send
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import MAX_FRAME_BYTES, FrameCutter, encode_frame

from property_texts import MANY_PAIRS, TEXTS

LETTERS = {"queueId": "e", "bornTimestamp": "g", "properties": "i"}
ENDING = {
    "queueId": "tranStateTableOffset",
    "bornTimestamp": "commitLogOffset",
    "properties": "msgId",
    "long": "transactionId",
}
"""Fields of an end of a transaction in the places of those of a send."""
ODD_NUMBERS = [
    *("03", "+1", "-1", "-0", " 2", "٣", "", "1.0", "9" * 18, "9" * 19),
    *("1e3", "2147483648", "-2147483649", "null"),
]


def read(function, data: bytes, newest: object = None) -> tuple[int, list]:
    found: list = []
    position = function(memoryview(data), 0, MAX_FRAME_BYTES, Send, End, place_of, found, newest)
    return position, found


def place_of(view: memoryview, *place: int) -> tuple[int, ...]:
    """Of a frame that is neither a send nor an end: its second word, and where header and body lie."""
    return place


def same_sends(native, data: bytes) -> None:
    """Both cut the same frames, and what C recognises Python does, with the same values."""
    position, in_c = read(native.read_sends, data)
    python_position, plain = read(in_python["read_sends"], data)
    assert position == python_position
    assert len(in_c) == len(plain)
    both = []
    for frame, other in zip(in_c, plain, strict=True):
        if isinstance(frame, Send | End):
            assert type(other) is type(frame), "in C only"
            assert frame[1:] == other[1:]
            both.append((frame, other))
        elif isinstance(other, Send | End):
            word, *places = frame
            assert word & 0xFFFFFF == other.body_start - other.header_start
            assert places[:2] == [other.header_start, other.body_start]
        else:
            assert frame == other
    for (frame, other), (next_frame, next_other) in itertools.combinations(both, 2):
        if frame.kind == next_frame.kind:
            assert other.kind == next_other.kind, "one kind in C, two in Python"
    for frame, _ in both:
        start = frame.header_start - 8
        whole = data[start : start + 4 + int.from_bytes(data[start : start + 4], "big")]
        [command] = FrameCutter().feed(whole)
        if isinstance(frame, End):
            command.body = None
        assert decoded(frame.decode()) == decoded(command)


def decoded(command: Command) -> tuple:
    body = None if command.body is None else bytes(command.body)
    return (
        *(command.code, command.opaque, command.flag, command.remark, command.fields, body),
        *(command.language, command.version, command.header_type),
    )


def framed(form: int, header: bytes, body: bytes) -> bytes:
    return struct.pack(">iI", 4 + len(header) + len(body), form << 24 | len(header)) + header + body


NUMBERS = st.integers(-(2**33), 2**62).map(str) | st.integers(0, 9).map(str) | st.sampled_from(ODD_NUMBERS)
TEXT = st.one_of(
    TEXTS.map(lambda text: text.decode("utf-8", "replace")),
    MANY_PAIRS.map(bytes.decode),
    st.builds(
        lambda names, value: encode_properties_text(dict.fromkeys(names, value)),
        st.lists(st.sampled_from([*SPECIAL, "own", "é"]), max_size=4),
        st.sampled_from(["true", "7", "", 'a"\\/\b\n', "\x7f\x00", "ü\U0001f600"]),
    ),
)
SEND_FIELDS = st.fixed_dictionaries(
    {
        "topic": st.sampled_from(["orders", "other", 'odd"\\é']),
        "queueId": NUMBERS,
        "bornTimestamp": NUMBERS,
        "properties": TEXT,
    },
    optional={
        "flag": st.just("0"),
        "bname": st.text(min_size=1, max_size=3),
        "long": st.just("x" * 4090),
        "e": st.just("1"),
    },
)


def shaped(fields: dict, code: int, missing: str | None, order: int) -> dict[str, str]:
    if code == 37:
        fields = {ENDING.get(name, name): value for name, value in fields.items()}
        missing = ENDING.get(missing, missing)
    names = sorted(name for name in fields if name != missing)
    names = list(next(itertools.islice(itertools.permutations(names), order, None), names))
    return {(name if code in (10, 37) else LETTERS.get(name, name)): fields[name] for name in names}


def commands(
    order: int | None = None, remarks: tuple[str | None, ...] = (None, None, "remark")
) -> st.SearchStrategy[bytes]:
    """Frames; their fields are in any order, or in that of the number."""
    return st.builds(
        lambda fields, code, missing, order, opaque, flag, remark, body, language, form: encode_frame(
            Command(
                code, opaque, flag, remark, shaped(fields, code, missing, order), body, language, 401, form
            )
        ),
        SEND_FIELDS,
        st.sampled_from([10, 310, 320, 37, 37, 310, 11, 324]),
        st.sampled_from([None, None, None, "queueId", "properties", "topic"]),
        st.integers(0, 23) if order is None else st.just(order),
        st.integers(-(2**31), 2**31 - 1),
        st.sampled_from([0, 0, 2, 1, 3]),
        st.sampled_from(remarks),
        st.binary(max_size=5),
        st.sampled_from(["JAVA", "GO", "PYTHON"]),
        st.sampled_from([0, 1]),
    )


COMMANDS = commands()
