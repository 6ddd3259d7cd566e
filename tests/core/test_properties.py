"""The text that a record stores: C does what Python does."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.properties import encode_stored, read_properties, read_values, stored_text

from property_texts import MANY_PAIRS, TEXTS

CHANGE = st.tuples(
    st.sampled_from(["KEYS", "TAGS", "WAIT", "AaAa", "BBBB", "ü", "7919", "CLUSTER", "\ud800"]),
    st.none() | st.text(st.characters(exclude_characters="\x01\x02"), max_size=4),
)
CHANGES = st.lists(CHANGE, max_size=6).map(lambda pairs: tuple(item for pair in pairs for item in pair))


@given(
    text=TEXTS | MANY_PAIRS | st.binary(max_size=30),
    changes=CHANGES,
    buckets=st.sampled_from([16, 128]),
    has_final_separator=st.booleans(),
)
def test_texts_are_restated_alike(native, text, changes, buckets, has_final_separator) -> None:
    wanted = in_python["stored_text"](text, changes, buckets, has_final_separator)
    found = native.stored_text(text, changes, buckets, has_final_separator)
    if found is None:
        assert is_odd(text, changes)
    else:
        assert found == wanted
    assert stored_text(text, changes, buckets, has_final_separator) == wanted


def is_odd(text: bytes, changes: tuple[str | None, ...]) -> bool:
    """Whether the function in C may leave it to the one in Python."""
    has_half_pair = any("\ud800" <= char <= "\udfff" for item in changes for char in item or "")
    return has_half_pair or text.count(b"\x01") > 90 or text.decode("utf-8", "replace").encode() != text


@given(text=TEXTS | MANY_PAIRS | st.binary(max_size=30), changes=CHANGES)
def test_values_are_read_alike(native, text, changes) -> None:
    wanted = ("KEYS", "TAGS", "AaAa", "BBBB", "ü", "none")
    found, values = native.read_values(text, changes, wanted), in_python["read_values"](text, changes, wanted)
    if found is None:
        assert is_odd(text, changes)
    else:
        assert found == values
    assert read_values(memoryview(text), changes, wanted) == values


@given(text=TEXTS | MANY_PAIRS | st.binary(max_size=30))
def test_texts_are_read_alike(native, text) -> None:
    found, wanted = native.read_properties(text), in_python["read_properties"](text)
    if found is None:
        assert text.decode("utf-8", "replace").encode() != text
    else:
        assert list(found.items()) == list(wanted.items())
    assert list(read_properties(memoryview(text)).items()) == list(wanted.items())


@given(
    properties=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=110),
    buckets=st.sampled_from([16, 128]),
    has_final_separator=st.booleans(),
)
def test_maps_become_the_same_texts(native, properties, buckets, has_final_separator) -> None:
    changes = tuple(chain.from_iterable(properties.items()))
    found = native.stored_text(b"", changes, buckets, has_final_separator)
    if found is None:
        has_half_pair = any("\ud800" <= char <= "\udfff" for text in changes for char in text)
        assert len(properties) > 96 or has_half_pair
    else:
        assert found == encode_stored(properties, buckets, has_final_separator)


def test_the_order_is_that_of_a_map_of_java() -> None:
    """By bucket of the name's hash, which for one letter is its code; names of one bucket by age."""
    text = b"b\x011\x02a\x012\x02AaAa\x013\x02BBBB\x014\x02AaAa\x015"
    assert stored_text(text, ("b", None, "c", "6"), 128, True).count(b"\x02") == 4
    assert stored_text(b"c\x011\x02a\x012\x02b\x013", ("a", None), 16, False) == b"b\x013\x02c\x011"
    both = stored_text(b"BBBB\x011\x02AaAa\x012\x02BBBB\x013", (), 16, True)
    assert both == b"BBBB\x013\x02AaAa\x012\x02"
