"""Properties text as `java.util.Properties` reads it: the pairs of the table were printed by Java 17."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.text.java_properties import (
    PropertiesError,
    decode_text,
    parse_properties,
    set_properties,
)

READ_BY_JAVA = [
    ("a=1", [("a", "1")]),
    ("a = 1 ", [("a", "1 ")]),
    ("a:1\rb 2\r\nc\t3\n\fd", [("a", "1"), ("b", "2"), ("c", "3"), ("d", "")]),
    ("# a=1\n  ! b=2\nc=#3", [("c", "#3")]),
    ("a = = 1", [("a", "= 1")]),
    ("a=1\\\n   2\\\n\n3", [("a", "12"), ("3", "")]),
    ("a=1\\\\\nb=2", [("a", "1\\"), ("b", "2")]),
    ("a=1\\\n#2", [("a", "1#2")]),
    ("# a\\\nb=2", [("b", "2")]),
    ("\\\n#a=1\nb=2", [("b", "2")]),
    ("a\\=b\\:c\\ d=1", [("a=b:c d", "1")]),
    ("a=\\t\\n\\r\\f\\q\\u0041", [("a", "\t\n\r\fqA")]),
    ("a=\\uD83D\\uDE00", [("a", "\U0001f600")]),
    ("a=1\na=2", [("a", "1"), ("a", "2")]),
    ("=1", [("", "1")]),
    ("end=1\\", [("end", "1")]),
    ("", []),
]


def pairs(text: str) -> list[tuple[str, str]]:
    return [(entry.key, entry.value) for entry in parse_properties(text)]


@pytest.mark.parametrize(("text", "expected"), READ_BY_JAVA)
def test_text_is_read_as_java_reads_it(text: str, expected: list[tuple[str, str]]) -> None:
    assert pairs(text) == expected


def test_unicode_escape_without_four_digits_is_refused_with_its_line() -> None:
    with pytest.raises(PropertiesError, match="line 2"):
        parse_properties("a=1\nb=\\u00g0")


def test_entry_has_its_line_numbers() -> None:
    (entry,) = parse_properties("# one\n\nkey=a\\\n  b\n")
    assert (entry.line, entry.last_line) == (3, 4)


def test_bytes_are_utf_8_or_else_latin_1() -> None:
    assert decode_text("é".encode()) == "é"
    assert decode_text("é".encode("latin-1")) == "é"


def test_changed_key_keeps_its_line_and_comments_stay() -> None:
    text = "# who\nbrokerName = a\\\n  b\n! ports\nlistenPort=1\n"
    changed = set_properties(text, {"brokerName": "c", "traceOn": "true"})
    assert changed == "# who\nbrokerName=c\n! ports\nlistenPort=1\ntraceOn=true\n"


def test_every_entry_of_a_repeated_key_is_changed() -> None:
    assert set_properties("a=1\nb=2\na=3\n", {"a": "4"}) == "a=4\nb=2\na=4\n"


def test_added_key_gets_its_own_line_after_an_unfinished_last_line() -> None:
    assert pairs(set_properties("a=1\\", {"b": "2"})) == [("a", "1"), ("b", "2")]


@given(st.text(max_size=60), st.dictionaries(st.sampled_from(["a", "b.c", "key"]), st.text(max_size=20)))
def test_a_set_key_is_read_back_and_the_rest_is_unchanged(text: str, values: dict[str, str]) -> None:
    try:
        before = dict(pairs(text))
    except PropertiesError:
        return
    after = dict(pairs(set_properties(text, values)))
    assert after == {**before, **values}
