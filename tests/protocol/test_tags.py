"""Java string hashes; the expected numbers come from a JDK."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.message.tags import extend_hash, java_hash, tags_code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TagA", 2598919),
        ("order-paid", 710106603),
        ("订单", 1129459),
        ("", 0),
        ("demo-topic#key-1", 345990917),
    ],
)
def test_hash_is_javas(text: str, expected: int):
    assert java_hash(text) == expected


def test_characters_beyond_the_basic_plane_count_as_two_units():
    assert java_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_known_colliding_strings_have_one_hash():
    assert java_hash("Aa") == java_hash("BB") == 2112
    assert java_hash("polygenelubricants") == -(2**31)


def test_no_tag_has_code_zero():
    assert tags_code(None) == tags_code("") == 0


@given(st.text(), st.text())
def test_hash_can_be_continued_over_pieces(left: str, right: str):
    assert extend_hash(extend_hash(0, left), right) == java_hash(left + right) & 0xFFFFFFFF
