"""Property texts in pieces: cut, put together, and the memory of what is made of each shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.storing import text_shapes
from pocketmq.broker.storing.text_shapes import (
    LOOK_AT_ONE_OF,
    STRANGERS_BEFORE_PAUSE,
    Shape,
    ShapePlans,
    TextCutter,
    TextForm,
    form_of,
    probes_of,
    text_of,
    values_of,
)

CUT = TextCutter("ID", "KEYS", "__x__")
WORDS = st.sampled_from(("ID", "KEYS", "__x__", "MYID", "a", "\1", "\2", "", "7", "IDX"))


def text(**properties: str) -> bytes:
    return "".join(f"{name}\1{value}\2" for name, value in properties.items()).encode()


@given(st.lists(WORDS).map("".join).map(str.encode) | st.binary(max_size=40))
def test_what_is_cut_can_be_put_together(data: bytes) -> None:
    cut = CUT.cut(data)
    if cut is not None:
        assert text_of(*cut) == data


def test_values_are_cut_wherever_they_are() -> None:
    cut = CUT.cut(text(ID="7", colour="red", __x__="8", MYID="9", KEYS="a b"))
    assert cut is not None
    shape, values = cut
    assert (values_of(shape), values) == (("ID", "__x__", "KEYS"), [b"7", b"8", b"a b"])
    other = CUT.cut(text(ID="70", colour="red", __x__="80", MYID="9", KEYS="c"))
    assert other is not None
    assert other[0] == shape
    for different in (text(ID="7", colour="blue", __x__="8", MYID="9", KEYS="k"), text(ID="7")):
        cut = CUT.cut(different)
        assert cut is not None
        assert cut[0] != shape


@pytest.mark.parametrize("data", [text(ID=""), text(ID="é"), text(ID="7", a="x" * 5000)])
def test_odd_texts_are_left_alone(data: bytes) -> None:
    assert CUT.cut(data) is None


@given(st.lists(st.integers(0, 2), max_size=5), st.lists(st.text("ab", max_size=3), min_size=6, max_size=6))
def test_a_form_is_filled_with_other_values(numbers: list[int], pieces: list[str]) -> None:
    form = TextForm([piece.encode() for piece in pieces[: len(numbers) + 1]], numbers)
    probes = [b"<0>", b"<1>", b"<2>"]
    found = form_of(form.fill(probes), probes)
    assert found == form
    values = [b"one", b"two", b"three"]
    assert found.fill(values) == form.fill(values)


def test_probes_differ_from_the_text_and_from_each_other() -> None:
    cut = CUT.cut(text(ID="7", a="b", KEYS="k"))
    assert cut is not None
    one, two = probes_of(cut[0], numbers=("ID",))
    assert one[0].isdigit()
    assert two[0].isdigit()
    assert len({*one, *two}) == 4
    taken = CUT.cut(text(ID="7", a=one[0].decode(), KEYS="k"))
    twice = CUT.cut(text(ID="7") + text(ID="8"))
    assert taken is not None
    assert twice is not None
    assert probes_of(taken[0], numbers=("ID",)) == probes_of(twice[0]) == []


def shape(number: int) -> Shape:
    return (str(number).encode(),)


def test_a_shape_has_a_plan_from_the_second_time_on() -> None:
    made: list[Shape] = []

    def make(shape: Shape) -> str | None:
        made.append(shape)
        return None if shape == (b"1",) else "plan"

    plans = ShapePlans(make)
    assert [plans.find(shape(0)) for _ in range(3)] == [None, "plan", "plan"]
    assert [plans.find(shape(1)) for _ in range(3)] == [None, None, None]
    assert made == [shape(0), shape(1)]


def test_memory_of_shapes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_shapes, "MAX_SHAPES", 4)
    plans = ShapePlans(lambda shape: "plan")
    for number in range(30):
        plans.find(shape(number))
        assert 0 < len(plans) <= 4


def test_few_texts_are_looked_at_while_each_has_a_shape_of_its_own() -> None:
    plans = ShapePlans(lambda shape: "plan")
    looked = 0
    for number in range(1000):
        if not plans.skips():
            looked += 1
            plans.find(shape(number))
    assert looked <= STRANGERS_BEFORE_PAUSE + 1000 / LOOK_AT_ONE_OF
    found = [plans.find(shape(-1)) for _ in range(3 * LOOK_AT_ONE_OF) if not plans.skips()]
    assert found[-1] == "plan"
    assert not plans.skips(), "shapes are seen again"
