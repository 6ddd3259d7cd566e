"""The replies of a pass: C does what Python does, or leaves it to Python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.replies import reply_frames

FORM = b'{"position":"7F00%016X","queue":%d,"id":"%b","rate":"100%%"}'
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = st.lists(
    st.tuples(st.integers(0, (1 << 63) - 1), NUMBERS, st.binary(max_size=40) | st.binary(min_size=2020)),
    max_size=4,
)


@given(rows=ROWS)
def test_replies_are_filled_alike(native, rows) -> None:
    wanted = in_python["fill_replies"](FORM, rows)
    found = native.fill_replies(FORM, rows)
    if found is None:
        assert any(len(text) > 1900 for *_, text in rows)
    else:
        assert found == wanted
    assert reply_frames(FORM, rows) == wanted


def test_a_reply_has_both_lengths_before_its_header() -> None:
    assert reply_frames(b"%d %016X", [(-7, 255)]) == [b"\0\0\0\x17\0\0\0\x13-7 00000000000000FF"]


@pytest.mark.parametrize(
    ("form", "row"),
    [
        (b"%d", ()),
        (b"%d", (1, 2)),
        (b"%d", (1 << 63,)),
        (b"%d", (b"1",)),
        (b"%016X", (-1,)),
        (b"%b", (1,)),
        (b"%s", (b"a",)),
        (b"%", ()),
        (b"x" * 2050, ()),
    ],
)
def test_what_does_not_fit_is_left_to_python(native, form, row) -> None:
    assert native.fill_replies(form, [row]) is None
    assert native.fill_replies(form, [list(row)]) is None


@pytest.mark.parametrize("arguments", [("%d", []), (b"%d", ()), (b"%d",)])
def test_other_arguments_are_refused(native, arguments) -> None:
    with pytest.raises(TypeError):
        native.fill_replies(*arguments)
