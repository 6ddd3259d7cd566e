"""Sends of a kind become messages: C does what Python does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.records import Head
from pocketmq.core.sends import QUEUE_ID, UNIQUE_ID, Send, messages_of_sends

from property_texts import MANY_PAIRS, TEXTS

HEAD = Head(b"", b"", b"", b"", -1, -1, "orders", True)
"""Messages only carry it."""


def of_kind(
    texts: list[bytes], kind: object = b"kind", queue_id: int = 3, unique_id: bytes | None = b"a"
) -> list[Send]:
    view = memoryview(bytes(range(100)))
    return [
        Send(kind, number, queue_id, 17, text, unique_id, view, 8, 10 + number, 20)
        for number, text in enumerate(texts)
    ]


@given(
    texts=st.lists(TEXTS | MANY_PAIRS, min_size=1, max_size=4),
    changes=st.sampled_from(
        [(), ("KEYS", None, "CLUSTER", "c"), ("KEYS", "\ud800"), ("REAL_QID", QUEUE_ID, "ID", UNIQUE_ID)]
    ),
    is_5=st.booleans(),
)
def test_sends_become_the_same_messages(native, texts, changes, is_5) -> None:
    sends = of_kind(texts)
    arguments = sends, 0, len(sends), 4, 1 << 20, (), HEAD, None, changes, 128 if is_5 else 16, is_5
    found, wanted = native.messages_of_sends(*arguments), in_python["messages_of_sends"](*arguments)
    assert len(wanted) == len(sends)
    assert found == wanted[: len(found)]
    if len(found) < len(sends):
        text = texts[len(found)]
        assert (
            "\ud800" in changes
            or text.count(b"\x01") > 90
            or text.decode("utf-8", "replace").encode() != text
        )
    together = messages_of_sends(*arguments)
    assert together
    assert together == wanted[: len(together)]
    assert [bytes(message[2]) for message in wanted] == [bytes(send.body) for send in sends]


@pytest.mark.parametrize(
    "other",
    [
        of_kind([b""], kind=b"other"),
        of_kind([b""], queue_id=4),
        of_kind([b""], queue_id=-1),
        of_kind([b""], unique_id=None),
        of_kind([b"x" * 11]),
    ],
)
def test_messages_end_before_a_send_that_is_not_alike(core, other) -> None:
    messages_of = core.messages_of_sends
    same = of_kind([b"a\x01b", b"c\x01d"], kind=bytes(bytearray(b"kind")))
    rest = 4, 10, (), HEAD, None, (), 16, True
    assert len(messages_of([*same, *other, *same], 0, 5, *rest)) == 2
    assert len(messages_of([*same, *other, *same], 1, 5, *rest)) == 1
    assert len(messages_of([*same, *same], 0, 3, *rest)) == 3
    assert len(messages_of([*other, *same], 0, 1, *rest)) == 1, "the first one is not looked at"


def test_messages_end_before_a_send_with_another_value(core) -> None:
    messages_of = core.messages_of_sends
    texts = [b"A\x011\x02B\x012", b"B\x012\x02A\x013\x02A\x011", b"B\x012", b"A\x011\x02B\x013"]
    rest = HEAD, None, (), 16, True
    assert len(messages_of(of_kind(texts), 0, 4, 4, 100, ("A",), *rest)) == 2
    assert len(messages_of(of_kind(texts), 0, 4, 4, 100, ("B",), *rest)) == 3
    assert len(messages_of(of_kind(texts), 0, 4, 4, 100, ("A", "B"), *rest)) == 2
    assert len(messages_of(of_kind(texts), 0, 4, 4, 100, ("C",), *rest)) == 4
    assert len(messages_of(of_kind(texts), 2, 4, 4, 100, ("A",), *rest)) == 1


def test_changes_name_values_of_the_send(core) -> None:
    messages_of = core.messages_of_sends
    sends = [*of_kind([b"A\x011"], unique_id=None), *of_kind([b"A\x011"], queue_id=2, unique_id="é".encode())]
    changes = "Q", QUEUE_ID, "I", UNIQUE_ID
    found = messages_of(sends, 0, 2, 4, 100, (), HEAD, 7, changes, 16, False)
    assert [queue_id for _, queue_id, *_ in found] == [7, 7]
    assert [set(text.split(b"\x02")) for _, _, _, text, *_ in found] == [
        {b"A\x011", b"Q\x013"},
        {b"A\x011", b"Q\x012", b"I\x01\xc3\xa9"},
    ]
