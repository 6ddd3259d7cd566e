"""Every declared request against `request_table.tsv` and the header classes of the official programs.

The table says for each code its official name, which line knows it (4.9, 5.x, both), the official header class of the
request and of the reply, and the fields that the official programs send without a header class. The fields of a class,
their types, which of them are mandatory and their default values are recorded from the jars (`vectors/`).
"""

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.bodies.body import decode_body, form_name
from pocketmq.protocol.errors import BodyError, FieldError
from pocketmq.protocol.requests.names import UNUSED, request_codes, request_name
from pocketmq.protocol.requests.offset import ExplainFirstPosition
from pocketmq.protocol.requests.send import (
    SendBatchMessage,
    SendMessage,
    SendMessageV2,
    SendReplyMessage,
    SendReplyMessageV2,
)
from pocketmq.protocol.wire.schema import REQUESTS, Int, Long, NoReply, Request, from_fields, to_fields

from official_vectors import rows

OLD, NEW = "4.9.8", "5.5.0"
OURS_ALONE = {ExplainFirstPosition.code}
NEW_IN_5_5 = {5001, *range(200070, 200080)}

Line = Literal["both", "4.9", "5.x"]
KINDS = {"String": str, "BoundaryType": str, "Integer": Int, "int": Int, "Long": Long, "long": Long}
KINDS |= {"Boolean": bool, "boolean": bool}
ABSENT_IN_OLDER_CALLERS = {"topicSeq", "groupSeq", "totalGroupNum"}
"""Marked mandatory, but callers of older releases leave the header away and get an answer all the same."""
ABSENT_IN_OTHER_LANGUAGES = {(11, "commitOffset"), (361, "commitOffset"), (35, "clientID")}
ABSENT_IN_OTHER_LANGUAGES |= {(53, "aclFileFullPath")}
"""Marked mandatory, and answered without."""
DEFAULTS_TO_NOW = "now"
"""The official class puts the present time; here the caller gives it."""


class Row(NamedTuple):
    code: int
    name: str
    line: str
    request_class: str
    extensions: set[str]
    reply_class: str
    reply_extensions: set[str]


class OfficialField(NamedTuple):
    kind: object
    mandatory: bool
    standing: str | None


def table() -> list[Row]:
    lines = (Path(__file__).parent / "request_table.tsv").read_text(encoding="utf-8").splitlines()
    found = []
    for line in lines:
        code, name, known, request, extensions, reply, reply_extensions = line.split("\t")
        found.append(Row(int(code), name, known, request, words(extensions), reply, words(reply_extensions)))
    return found


def words(column: str) -> set[str]:
    return set() if column == "-" else set(column.split())


TABLE = table()
DECLARED = [row for row in TABLE if row.code not in UNUSED]
EACH = pytest.mark.parametrize("row", DECLARED, ids=[f"{row.code}-{row.name}" for row in DECLARED])
LINES = {"both": None, "4.9": 4, "5.x": 5}


def official_codes(version: str) -> dict[int, str]:
    return {int(r[1]): r[2] for r in rows(f"request-classes-{version}.tsv") if r[0] == "RequestCode"}


def official_classes(version: str) -> dict[str, list[str]]:
    return {r[1]: r[2:6] for r in rows(f"request-classes-{version}.tsv") if r[0] == "header"}


CLASSES = {version: official_classes(version) for version in (OLD, NEW)}


def official_fields(name: str, version: str) -> dict[str, OfficialField]:
    fields = {}
    for column, part in enumerate(CLASSES[version].get(name, ["", "", "", ""])[:3]):
        for word in part.split():
            shown, _, standing = word.partition("=")
            field_name, _, kind = shown.partition(":")
            value = standing if "=" in word else None
            fields[field_name] = OfficialField(KINDS[kind], column < 2, value)
    return fields


def common_fields(name: str) -> set[str]:
    """Fields that any request of this class may carry (`RpcRequestHeader`, `TopicRequestHeader`)."""
    found = [CLASSES[version].get(name, ["", "", "", ""])[3] for version in (OLD, NEW)]
    return {word.partition(":")[0] for column in found for word in column.split()}


def merged_fields(name: str) -> dict[str, OfficialField]:
    """Both lines together; a field of both must be equal except for its default value."""
    return {**official_fields(name, OLD), **official_fields(name, NEW)}


def members(cls: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {member.encode_name: member for member in msgspec.structs.fields(cls)}


def without_none(kind: Any) -> object:
    options = [] if get_origin(kind) is not None and not get_args(kind) else list(get_args(kind))
    return next(option for option in options if option is not type(None)) if type(None) in options else kind


def shown(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower()


def assert_fields_agree(cls: type[msgspec.Struct], name: str, extensions: set[str]) -> None:
    official, declared = merged_fields(name), members(cls)
    assert set(official) - set(declared) == set()
    assert set(declared) - set(official) - extensions <= common_fields(name)
    for wire, field in official.items():
        assert without_none(declared[wire].type) == field.kind, wire


@EACH
def test_a_code_is_declared_under_its_official_name(row: Row) -> None:
    assert REQUESTS[row.code].name == row.name
    assert REQUESTS[row.code].code == row.code


def test_the_table_has_exactly_the_codes_of_both_lines() -> None:
    old, new = official_codes(OLD), official_codes(NEW)
    assert {row.code: row.name for row in TABLE} == old | new
    assert {row.code for row in TABLE if row.line == "both"} == old.keys() & new.keys()
    assert {row.code for row in TABLE if row.line == "4.9"} == old.keys() - new.keys() == {50, 51, 52, 53}


def test_every_official_code_is_declared_or_unused_and_nothing_else_but_our_own() -> None:
    assert REQUESTS.keys() - OURS_ALONE == {row.code for row in DECLARED}
    assert UNUSED.keys() <= {row.code for row in TABLE}
    assert len(TABLE) == 162 + len(NEW_IN_5_5)


def test_an_unused_request_has_the_official_name_and_line() -> None:
    official = {row.code: (row.name, LINES[row.line]) for row in TABLE if row.code in UNUSED}
    assert {code: (name, line) for code, (name, line, _) in UNUSED.items()} == official


def test_every_request_has_a_name_used_or_not() -> None:
    assert all(request_name(row.code) == row.name for row in TABLE)
    assert request_codes().items() >= {(row.name, row.code) for row in TABLE}
    assert [request_name(code) for code in (1_000_002, 9999)] == ["SendMessage", "9999"]


def test_our_own_codes_fit_both_header_forms() -> None:
    assert all(0 < code <= 0x7FFF for code in OURS_ALONE)


@EACH
def test_a_request_that_one_line_alone_knows_says_so(row: Row) -> None:
    assert REQUESTS[row.code].only_in == LINES[row.line]


@pytest.mark.parametrize("cls", REQUESTS.values(), ids=lambda cls: cls.__name__)
def test_a_body_has_a_form_that_can_be_read_and_written(cls: type[Request[Any]]) -> None:
    forms = [
        *(cls.body_form, *cls.body_variants.values()),
        *(cls.reply_body_form, *cls.reply_body_variants.values()),
    ]
    for form in forms:
        if form is None:
            continue
        if isinstance(form, type) and issubclass(form, bytes | str):
            assert form.__doc__
            assert decode_body(form, b"any") == form(b"any" if issubclass(form, bytes) else "any")
            continue
        assert decode_body(form, b"[]" if get_origin(form) is list else b"{}") is not None
        with pytest.raises(BodyError, match=re.escape(form_name(form))):
            decode_body(form, b"")


@EACH
def test_a_request_has_the_fields_of_the_official_class(row: Row) -> None:
    assert_fields_agree(REQUESTS[row.code], row.request_class, row.extensions)


@EACH
def test_a_reply_has_the_fields_of_the_official_class(row: Row) -> None:
    reply = REQUESTS[row.code].reply_type
    if row.reply_class == "-" and not row.reply_extensions:
        assert reply is NoReply
        return
    assert_fields_agree(reply, row.reply_class, row.reply_extensions)


@EACH
def test_a_request_requires_what_the_official_class_requires(row: Row) -> None:
    official = merged_fields(row.request_class)
    demanded = {name for name, field in official.items() if field.mandatory and field.standing is None}
    required = {name for name, member in members(REQUESTS[row.code]).items() if member.required}
    forgiven = {name for code, name in ABSENT_IN_OTHER_LANGUAGES if code == row.code}
    assert required == demanded - ABSENT_IN_OLDER_CALLERS - forgiven


@EACH
def test_a_reply_requires_what_the_official_class_marks_mandatory(row: Row) -> None:
    official = merged_fields(row.reply_class)
    marked = {name for name, field in official.items() if field.mandatory}
    without_value = {name for name in marked if official[name].standing is None}
    required = {name for name, member in members(REQUESTS[row.code].reply_type).items() if member.required}
    assert without_value - ABSENT_IN_OLDER_CALLERS <= required <= marked


@EACH
def test_an_absent_field_has_the_default_of_the_official_class(row: Row) -> None:
    declared = members(REQUESTS[row.code])
    for version in (OLD, NEW):
        for wire, field in official_fields(row.request_class, version).items():
            default = declared[wire].default
            if declared[wire].required or field.standing == DEFAULTS_TO_NOW:
                continue
            if field.standing is None and default is False:  # Boolean in 5.x, boolean in 4.9
                assert official_fields(row.request_class, OLD)[wire].standing == "false", wire
                continue
            assert shown(default) == field.standing, wire


def test_a_field_both_lines_have_is_mandatory_in_both_or_neither() -> None:
    for row in TABLE:
        old, new = official_fields(row.request_class, OLD), official_fields(row.request_class, NEW)
        for wire in old.keys() & new.keys():
            assert old[wire].kind == new[wire].kind, (row.name, wire)
            assert old[wire].mandatory == new[wire].mandatory, (row.name, wire)


@EACH
def test_every_request_is_written_to_header_fields_and_read_back(row: Row) -> None:
    cls = REQUESTS[row.code]
    sample = {str: "x", Int: 7, Long: 1 << 40, bool: True}
    values = {
        member.name: next(value for kind, value in sample.items() if without_none(member.type) == kind)
        for member in msgspec.structs.fields(cls)
    }
    request = cls(**values)
    fields = to_fields(request)
    assert set(fields) == set(members(cls))
    assert from_fields(cls, fields) == request


@EACH
def test_a_missing_mandatory_field_names_class_and_key(row: Row) -> None:
    cls = REQUESTS[row.code]
    complete = {wire: "1" for wire, member in members(cls).items() if member.required}
    assert to_fields(from_fields(cls, complete)).items() >= complete.items()
    for wire in complete:
        incomplete = {key: text for key, text in complete.items() if key != wire}
        with pytest.raises(FieldError, match=rf"{cls.__name__}: the field {re.escape(wire)} is missing"):
            from_fields(cls, incomplete)


LONG_SEND = {"producerGroup": "g", "topic": "T", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4"}
LONG_SEND |= {"queueId": "2", "sysFlag": "1", "bornTimestamp": "1700000000123", "flag": "5"}
LONG_SEND |= {"properties": "KEYS\u0001k\u0002", "reconsumeTimes": "3", "unitMode": "true"}
LONG_SEND |= {"maxReconsumeTimes": "16", "batch": "true", "bname": "broker-a"}
"""In the order of the letters a to n, as `SendMessageRequestHeaderV2.createSendMessageRequestHeaderV1` pairs them."""


@given(st.sets(st.sampled_from(list(LONG_SEND)[8:])))
def test_both_spellings_of_a_send_are_read_the_same(left_out: set[str]) -> None:
    long = {key: text for key, text in LONG_SEND.items() if key not in left_out}
    letters = dict(zip(LONG_SEND, "abcdefghijklmn", strict=True))
    short = {letters[key]: text for key, text in long.items()}
    one, other = from_fields(SendMessage, long), from_fields(SendMessageV2, short)
    assert msgspec.structs.asdict(one) == msgspec.structs.asdict(other)


def test_every_send_is_one_of_the_two_spellings() -> None:
    assert issubclass(SendReplyMessage, SendMessage)
    assert issubclass(SendBatchMessage, SendMessageV2)
    assert issubclass(SendReplyMessageV2, SendMessageV2)
    codes = [SendMessage, SendMessageV2, SendBatchMessage, SendReplyMessage, SendReplyMessageV2]
    assert [cls.code for cls in codes] == [10, 310, 320, 324, 325]


def test_unknown_fields_are_ignored() -> None:
    request = from_fields(REQUESTS[30], {"topic": "T", "queueId": "1", "ns": "n", "nsd": "true", "x": "y"})
    assert to_fields(request) == {"topic": "T", "queueId": "1", "committed": "true"}
