"""Functions in C refuse arguments of another type or value, each in its place; `test_records.py` has `pack_records`."""

from typing import Any

import pytest
from pocketmq.core.records import Head
from pocketmq.core.sends import QUEUE_ID, End, Send
from pocketmq.protocol.message.record import Record, encode_record

from send_frames import a_send
from send_headers import framed, place_of

RECORD = encode_record(Record("half", 0, 5, 0, b"body", b"PGROUP\x01g\x02NUMBER\x013"))
FRAMES = memoryview(a_send() + framed(0, b"{}", b""))
SEND = Send(b"kind", 0, 3, 17, b"A\x011", b"a", memoryview(bytes(100)), 8, 10, 20)
HEAD = Head(b"", b"", b"", b"", -1, -1, "orders", True)
SOUND: dict[str, tuple[Any, ...]] = {
    "read_copies": (memoryview(RECORD), 0, [0], ("PGROUP",), "NUMBER", (), 128, True),
    "stored_text": (b"a\x01b", (), 16, True),
    "read_properties": (b"text",),
    "read_values": (b"", (), ()),
    "fill_replies": (b"%016X %d %d %d", [SEND], [1], 0, [(None, 1, 1)], 0, False, None),
    "messages_of_sends": ([SEND, SEND], 0, 2, 4, 100, (), HEAD, None, (), 16, True),
    "read_sends": (FRAMES, 0, 1000, Send, End, place_of, [], None),
}
NO_SENDS = (
    7,
    (1, 2),
    SEND._replace(properties="text"),
    SEND._replace(received=7),
    SEND._replace(body_start="0"),
)
OTHERS: dict[str, dict[int, list[Any]]] = {
    "read_copies": {0: ["text"], 1: [2**64], 2: [(), ["x"]], 3: [[1], (1,)], 4: [None], 6: [0]}
    | {5: [("x",), (1, 2)]},
    "stored_text": {0: ["text"], 1: [[], ("a",), ("a", 7), (b"a", "b"), (None, "a")], 2: [0, 1 << 40]},
    "read_properties": {0: ["text"]},
    "read_values": {0: [""], 1: [[], ("a",)], 2: [(b"a",)]},
    "fill_replies": {0: ["%d"], 1: [()], 2: [[]], 3: [1, -1], 4: [[]], 5: [1, -1], 7: [[], 7]},
    "messages_of_sends": {0: [(), *([one] * 2 for one in NO_SENDS)], 1: [-1], 2: [3], 5: [(7,), []]}
    | {8: [("Q", 3), ("Q", 1.5), (QUEUE_ID, "Q")]},
    "read_sends": {0: ["text"], 1: [-1, "0"], 3: [dict, None], 4: [dict], 5: [None], 6: [()]},
}
ROWS = [(name, *row) for name, places in OTHERS.items() for row in places.items()]


@pytest.mark.parametrize(("name", "place", "others"), ROWS)
def test_other_arguments_are_refused(native, name, place, others) -> None:
    function, sound = getattr(native, name), SOUND[name]
    function(*sound)
    for other in others:
        with pytest.raises((TypeError, ValueError, OverflowError)):
            function(*sound[:place], other, *sound[place + 1 :])
