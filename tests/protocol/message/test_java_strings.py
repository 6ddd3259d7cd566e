"""Java's string hashes and orders: the numbers come from a JDK, the orders from the stores of 4.9.7 and 5.5.0."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.message.java_strings import extend_hash, hash_map_order, java_hash, java_sort_key
from pocketmq.protocol.message.properties import tags_code

SENT_BACK_4 = "ORIGIN_MESSAGE_ID RETRY_TOPIC KEYS UNIQ_KEY CLUSTER WAIT DELAY TAGS"
SENT_BACK_AND_DELAYED_4 = (
    "REAL_TOPIC ORIGIN_MESSAGE_ID RETRY_TOPIC KEYS UNIQ_KEY CLUSTER WAIT DELAY TAGS REAL_QID"
)
DELAYED_4 = "REAL_TOPIC TIMER_DELAY_SEC KEYS CLUSTER DELAY WAIT REAL_QID"
SENT_BACK_AND_DELAYED_5 = (
    "ORIGIN_MESSAGE_ID RETRY_TOPIC MSG_REGION UNIQ_KEY CLUSTER DELAY TAGS KEYS WAIT TRACE_ON "
    "REAL_TOPIC REAL_QID"
)
DELAYED_5 = "MSG_REGION UNIQ_KEY CLUSTER DELAY KEYS WAIT TRACE_ON REAL_TOPIC REAL_QID"


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


@pytest.mark.parametrize(
    ("stored", "emulate", "put"),
    [
        (SENT_BACK_4, 4, "KEYS UNIQ_KEY CLUSTER TAGS RETRY_TOPIC WAIT DELAY ORIGIN_MESSAGE_ID"),
        (
            SENT_BACK_AND_DELAYED_4,
            4,
            "KEYS UNIQ_KEY CLUSTER TAGS RETRY_TOPIC WAIT DELAY ORIGIN_MESSAGE_ID REAL_TOPIC REAL_QID",
        ),
        (DELAYED_4, 4, "KEYS DELAY TIMER_DELAY_SEC CLUSTER WAIT REAL_TOPIC REAL_QID"),
        (
            SENT_BACK_AND_DELAYED_5,
            5,
            "MSG_REGION UNIQ_KEY CLUSTER TAGS KEYS TRACE_ON RETRY_TOPIC WAIT DELAY ORIGIN_MESSAGE_ID "
            "REAL_TOPIC REAL_QID",
        ),
        (DELAYED_5, 5, "KEYS DELAY WAIT MSG_REGION TRACE_ON UNIQ_KEY CLUSTER REAL_TOPIC REAL_QID"),
    ],
)
def test_keys_have_the_order_in_which_official_brokers_store_properties(
    stored: str, emulate: int, put: str
) -> None:
    assert hash_map_order(put.split(), {4: 16, 5: 128}[emulate]) == stored.split()


def test_a_growing_map_orders_its_keys_by_more_buckets():
    keys = [chr(code) for code in range(0x30, 0x30 + 13)]
    assert hash_map_order(reversed(keys[:12])) == keys[:12]  # '0' to ';' are the 16 buckets' own order
    assert hash_map_order(["P", "@", "0"]) == ["P", "@", "0"]  # one bucket of 16: in insertion order
    assert (
        hash_map_order([*keys, "P", "@"])[0] == "@"
    )  # with 32 buckets, '@' is in the first, and 'P' and '0' share one


def test_strings_compare_by_utf_16_unit():
    beyond, last = "\U0001f600", "\uffe0"
    assert sorted([last, beyond]) == [last, beyond]
    assert sorted([last, beyond], key=java_sort_key) == [beyond, last]
