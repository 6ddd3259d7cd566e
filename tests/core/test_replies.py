"""The replies of a pass: C does what Python does, or leaves it to Python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.replies import reply_frames
from pocketmq.core.sends import Send

FORM = b'{"position":"7F00%016X","queue":%d,"offset":%d,"id":"%b","handle":"%b","rate":"100%%","opaque":%d}'
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
IDS = st.from_regex(rb"[0-9A-Za-z]+", fullmatch=True) | st.none() | st.binary(max_size=9)
HANDLES = st.binary(max_size=40) | st.binary(min_size=2020)
ROWS = st.lists(
    st.tuples(st.integers(0, (1 << 63) - 1), NUMBERS, NUMBERS, IDS, HANDLES, NUMBERS),
    max_size=4,
)


def a_send(queue_id: object = 1, unique_id: object = b"a", opaque: object = 2) -> Send:
    return Send(b"", opaque, queue_id, 0, b"", unique_id, memoryview(b""), 0, 0, 0)  # type: ignore[arg-type]


@given(rows=ROWS, before=st.integers(0, 2))
def test_replies_are_filled_alike(native, rows, before) -> None:
    sends = [a_send(queue_id, unique_id, opaque) for _, queue_id, _, unique_id, _, opaque in rows]
    positions = [7] * before + [row[0] for row in rows]
    runs = [(None, 7, 1)] * before + [(None, row[2], 1) for row in rows]
    handles = [row[4] for row in rows]
    arguments = FORM, sends, positions, before, [(None, 9, 1), *runs], before + 1, True, handles
    wanted, found = in_python["fill_replies"](*arguments), native.fill_replies(*arguments)
    assert (wanted is None) is any(row[3] is None or not row[3].isalnum() for row in rows)
    if found is None and wanted is not None:
        assert any(len(text) > 1900 for *_, text, _ in rows)
    else:
        assert found == wanted


def test_a_reply_has_both_lengths_before_its_header() -> None:
    frames = reply_frames(b"%016X %d %d %d", [a_send(3, None, 5)], [255], 0, [(None, -7, 1)], 0, False, None)
    assert frames == [b"\0\0\0\x1b\0\0\0\x17" + b"00000000000000FF 3 -7 5"]


@pytest.mark.parametrize(
    ("form", "send", "position"),
    [
        (b"%016X %d %d", a_send(), 1),
        (b"%016X %d %d %d %d", a_send(), 1),
        (b"%016X %d %d %d", a_send(1 << 63), 1),
        (b"%016X %d %d %d", a_send(b"1"), 1),
        (b"%016X %d %d %d", a_send(), -1),
        (b"%016X %d %d %b", a_send(), 1),
        (b"%016X %d %d %s", a_send(), 1),
        (b"%", a_send(), 1),
        (b"x" * 2050, a_send(), 1),
        (b"%016X %d %d %d", (1, 2), 1),
        (b"%016X %d %d %d", 7, 1),
    ],
)
def test_what_does_not_fit_is_left_to_python(native, form, send, position) -> None:
    assert native.fill_replies(form, [send], [position], 0, [(None, 1, 1)], 0, False, None) is None
    assert native.fill_replies(form, [send], [position], 0, [7], 0, False, None) is None
