"""The JSON header: the exact text of the official writer, and texts that only the lenient reader accepts.

`test_frame.py` compares how the official readers treat unusual headers.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.errors import FrameError
from pocketmq.protocol.wire.command import JSON, Command
from pocketmq.protocol.wire.json_header import decode_json_header, encode_json_header


def read(text: str | bytes, body: bytes | None = None) -> Command:
    data = text.encode() if isinstance(text, str) else text
    return decode_json_header(memoryview(data), None if body is None else memoryview(body))


def test_a_request_is_written_as_the_official_writer_writes_it() -> None:
    command = Command(30, 7, 0, None, {"queueId": "0", "topic": "T"}, None, "JAVA", 513)
    assert encode_json_header(command) == (
        b'{"code":30,"extFields":{"queueId":"0","topic":"T"},"flag":0,"language":"JAVA","opaque":7,'
        b'"serializeTypeCurrentRPC":"JSON","version":513}'
    )


def test_none_is_left_out_but_zero_and_empty_text_are_written() -> None:
    assert encode_json_header(Command(0, 0, 0, "", None, None, "JAVA", 0)) == (
        b'{"code":0,"flag":0,"language":"JAVA","opaque":0,"remark":"","serializeTypeCurrentRPC":"JSON","version":0}'
    )
    assert b'"extFields":{}' in encode_json_header(Command(0, fields={}))


def test_separators_of_properties_are_escaped_and_other_text_is_raw() -> None:
    written = encode_json_header(Command(310, fields={"i": "KEYS\x01käse\x02"}))
    assert b'"i":"KEYS\\u0001k\xc3\xa4se\\u0002"' in written
    assert read(written).fields == {"i": "KEYS\x01käse\x02"}


def test_absent_members_take_the_values_of_a_new_command() -> None:
    assert read('{"code":3}') == Command(3, 0, 0, None, None, None, "JAVA", 0, JSON)


@pytest.mark.parametrize("number", [-1, -(1 << 31), (1 << 31) - 1, 200050])
def test_numbers_of_32_bits_are_read(number: int) -> None:
    assert read(json.dumps({"code": number, "opaque": 1})).code == number


REFUSED: list[tuple[dict[str, Any], str]] = [
    *(
        ({"code": 1} | {key: value}, key)
        for key in ("code", "opaque", "flag", "version")
        for value in (1 << 31, -(1 << 31) - 1, "2147483648", 1e300)
    ),
    *(({"code": 1, "opaque": value}, "opaque") for value in ("x", [1], {"a": 1}, "")),
    *(({"code": 1, "extFields": value}, "extFields") for value in ("x", [1], 7)),
    ({"code": 1, "extFields": {str(number): "" for number in range(6000)}}, "quotes"),
    ({"code": 1, "extFields": {"i": "x" * 70_000, "n": 1}}, "not standard"),
]


@pytest.mark.parametrize(("members", "words"), REFUSED)
def test_a_member_that_cannot_be_is_named(members: dict[str, Any], words: str) -> None:
    with pytest.raises(FrameError, match=words):
        read(json.dumps(members))


NESTED = '{"code":1,"extFields":' + '{"a":' * 5000 + "1" + "}" * 5001


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "7", '"x"', "{", '{"code":1}x', '{"code":1,,"opaque"}', "\x00", NESTED]
)
def test_header_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(FrameError):
        read(text)


def test_field_values_become_text() -> None:
    seen = read(
        '{"code":1,"extFields":{"n":7,"big":9007199254740993,"t":true,"f":false,"none":null,"s":"x"}}'
    )
    assert seen.fields == {"n": "7", "big": "9007199254740993", "t": "true", "f": "false", "s": "x"}


def test_references_in_a_header_are_not_resolved() -> None:
    """Ten references to ten references to ...: 2 KB would be written out as gigabytes."""
    levels = [
        f'"{level}":[' + ",".join(['{"$ref":"$.extFields.' + str(level - 1) + '"}'] * 10) + "]"
        for level in range(1, 8)
    ]
    seen = read('{"code":34,"extFields":{"0":["x"],' + ",".join(levels) + "}}")
    assert seen.fields is not None
    assert seen.fields["7"] == "[" + ",".join(['{"$ref":"$.extFields.6"}'] * 10) + "]"


def test_long_fields_are_read() -> None:
    long = read(json.dumps({"code": 1, "extFields": {"i": "x" * 3_000_000}}))
    assert long.fields is not None
    assert len(long.fields["i"]) == 3_000_000


@pytest.mark.parametrize(
    ("language", "seen"),
    [
        ("GO", "GO"),
        ("go", "GO"),
        ("Node_js", "NODE_JS"),
        (12, "RUST"),
        ("12", "RUST"),
        (99, "JAVA"),
        ("", "JAVA"),
        ("--5", "JAVA"),
        ("\u00b2", "JAVA"),
        ("9" * 5000, "JAVA"),
        ("GO" * 5000, "JAVA"),
    ],
)
def test_a_language_may_be_in_any_case_or_a_number(language: object, seen: str) -> None:
    assert read(json.dumps({"code": 1, "language": language})).language == seen


def lax(value: Any) -> str:
    """The same object from a sloppy writer: unquoted names, blanks, numbers as text."""
    if isinstance(value, dict):
        return "{ " + " , ".join(f"{key} : {lax(item)}" for key, item in value.items()) + " , }"
    return json.dumps(str(value), ensure_ascii=False)


names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,10}", fullmatch=True)


@given(
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.integers(0, (1 << 31) - 1),
    st.dictionaries(names, st.text(max_size=20)),
)
def test_the_lenient_reader_and_the_fast_one_agree(code: int, opaque: int, fields: dict[str, str]) -> None:
    members = {"opaque": opaque, "extFields": fields, "code": code, "language": "GO", "unknown": 1}
    assert read(lax(members)) == read(json.dumps(members))
