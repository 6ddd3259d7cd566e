"""Properties text: with and without the last separator, the pairs that are dropped, round trips."""

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.message.properties import decode_properties, encode_properties, encode_properties_text

plain = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(plain, plain), st.booleans())
def test_round_trip_in_both_forms(properties: dict[str, str], final_separator: bool):
    assert decode_properties(encode_properties(properties, final_separator=final_separator)) == properties


def test_last_separator_may_be_missing():
    assert decode_properties("TAGS\x01a\x02KEYS\x01k") == decode_properties(b"TAGS\x01a\x02KEYS\x01k\x02")
    assert encode_properties_text({"TAGS": "a"}, final_separator=False) == "TAGS\x01a"


def test_incomplete_pairs_are_dropped_and_the_last_of_equal_names_wins():
    assert decode_properties("\x01v\x02name\x01\x02alone\x02\x02a\x011\x02a\x012\x02") == {"a": "2"}


def test_a_separator_inside_a_value_is_part_of_the_value():
    assert decode_properties("a\x01b\x01c\x02") == {"a": "b\x01c"}


def test_undecodable_bytes_do_not_lose_the_message():
    assert decode_properties(b"a\x01\xff\x02") == {"a": "�"}
