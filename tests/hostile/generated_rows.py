"""Hostile requests made from the declarations: every field and every member of a body of every served code.

A request starts from plausible values. Then one field at a time is missing, empty, negative, too large, of another
type, or a long text of a shape that parsers dislike; and one member of the body at a time is large: a long text, a list
or a map of many members, many references, deep nesting; or it is missing, or of another kind. So a request that is
added is tried without another line here.
"""

import json
import types
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec
from pocketmq.broker import handler_modules
from pocketmq.broker.network.dispatch import BROKER, NAME_SERVER
from pocketmq.protocol.bodies.body import Body, Text
from pocketmq.protocol.wire.schema import Request

from hostile.judge import Attack
from raw_peer import frame, request

assert handler_modules.HANDLER_MODULES, "imported to fill the tables of what is served"

TABLES: Final = {"broker": BROKER.table, "namesrv": NAME_SERVER.table}
SERVED: Final = [(port, code) for port, table in TABLES.items() for code in sorted(table)]
PLAUSIBLE: Final = {
    "topic": "Good",
    "b": "Good",
    "suspendTimeoutMillis": "0",
    "pollTime": "0",
    "properties": "",
}
SHORT: Final = ("", "-1", "0", "2147483647", "9223372036854775807", "9" * 5000, "NaN", "\0", "true", "\u0663")
LONG: Final = (
    *("x", "-", "9", " ", "a||", "\\\n", "k\x01v\x02", "["),
    *('{"a":', "(", "NOT ", "\u00e9", "a AND ", "%"),
)
"""Texts that are repeated up to the size that is tried."""
ODD: Final = (
    None,
    True,
    -1,
    2**31,
    2**70,
    1.5,
    "",
    "\0/..",
    [],
    [None],
    {},
    {"x": {}},
    {"$ref": "$"},
    {"$ref": "@"},
)
"""What stands where a value of another kind should."""
MAX_DEPTH: Final = 8


class Row(NamedTuple):
    what: str
    attack: Attack


class Variant(NamedTuple):
    """A request with one thing wrong, before it has bytes."""

    what: str
    fields: dict[str, object]
    body: bytes


def rows(port: str, code: int, field_bytes: int, body_bytes: int) -> Iterator[Row]:
    """All of one code. Texts of fields have up to `field_bytes`, bodies up to `body_bytes`."""
    for what, fields, body in variants(port, code, field_bytes, body_bytes):
        yield Row(f"{port} {code} {what}", Attack(port, request(code, fields, body, opaque=1)))
    declared = TABLES[port][code].request_type
    form = declared.body_form
    if _has_members(form):
        fields = _plausible(declared)
        for what, trees in _odd(_plain(form, 0), "body"):
            frames = [request(code, fields, json.dumps(tree).encode(), opaque=1) for tree in trees]
            yield Row(f"{port} {code} {what}", Attack(port, b"".join(frames), len(frames)))


def variants(port: str, code: int, field_bytes: int, body_bytes: int) -> Iterator[Variant]:
    declared = TABLES[port][code].request_type
    body = _plain_body(declared)
    for what, fields in _fields(declared, field_bytes):
        yield Variant(what, fields, body)
    fields = _plausible(declared)
    for what, data in _bodies(declared, body_bytes):
        yield Variant(f"body {what}", fields, data)


def _plausible(declared: type[Request[Any]]) -> dict[str, object]:
    return {
        one.encode_name: PLAUSIBLE.get(one.encode_name, "1" if "int" in str(one.type) else "raw")
        for one in msgspec.structs.fields(declared)
        if one.required or one.encode_name in PLAUSIBLE
    }


def _fields(declared: type[Request[Any]], size: int) -> Iterator[tuple[str, dict[str, object]]]:
    plain = _plausible(declared)
    for one in msgspec.structs.fields(declared):
        name = one.encode_name
        yield f"without {name}", {key: value for key, value in plain.items() if key != name}
        for text in SHORT:
            yield f"{name}={text[:20]!r}", {**plain, name: text}
        for value in (None, [], {}, 5, {"$ref": "$"}):
            yield f"{name} is {value!r}", {**plain, name: value}
        if "int" not in str(one.type):
            for text in LONG:
                yield f"{name}={text!r} * n", {**plain, name: text * (size // len(text.encode()))}
    yield "many fields", {**plain, **{f"f{number}": "v" for number in range(size // 10)}}
    yield "references", {**plain, "a": ["x" * 10] * 10, "b": [{"$ref": "$.extFields.a"}] * (size // 30)}


# -- bodies


def _plain_body(declared: type[Request[Any]]) -> bytes:
    form = declared.body_form
    if form is None:
        return b""
    if isinstance(form, type) and not get_args(form) and issubclass(form, bytes | Text):
        return b"k=v"
    return json.dumps(_plain(form, 0)).encode()


def _has_members(form: Any) -> bool:
    return form is not None and (not isinstance(form, type) or bool(get_args(form)) or issubclass(form, Body))


def _plain(form: Any, depth: int) -> Any:
    """A small value of that form: one element in each list and map."""
    form = _without_none(form)
    origin, inner = get_origin(form), get_args(form)
    if isinstance(form, type) and issubclass(form, msgspec.Struct) and depth < MAX_DEPTH:
        return {
            one.encode_name: _plain(one.type, depth + 1)
            for one in msgspec.structs.fields(form)
            if not one.encode_name.startswith("_")
        }
    if origin in (list, frozenset, set, tuple) and inner:
        return [_plain(inner[0], depth + 1)]
    if origin in (dict, Mapping) or (origin is not None and issubclass(origin, Mapping)):
        return {str(_plain(inner[0], depth + 1)): _plain(inner[1], depth + 1)}
    if form is bool:
        return True
    return 1 if "int" in str(form) else "Good"


def _without_none(form: Any) -> Any:
    if get_origin(form) in (Union, types.UnionType):
        return next(kind for kind in get_args(form) if kind is not types.NoneType)
    return form


def _bodies(declared: type[Request[Any]], size: int) -> Iterator[tuple[str, bytes]]:
    yield "missing", b""
    yield "of zeros", bytes(size)
    for text in ("[", '{"a":', "[[],", '"x",', "k=v\n", "\\\n", "k=\\\n", "9", "a=b;"):
        yield f"{text!r} * n", (text * (size // len(text))).encode()
    yield "empty lists", b"[" + b",".join([b"[]"] * (size // 3)) + b"]"
    form = declared.body_form
    if _has_members(form):
        for what, value in _inflated(_plain(form, 0), size, "body"):
            yield what, json.dumps(value).encode()


def _inflated(value: Any, size: int, path: str) -> Iterator[tuple[str, Any]]:
    """The value with one part of it as large as `size` bytes allow, part after part."""
    if isinstance(value, dict):
        yield f"{path} of many names", {**value, **{f"n{number}": 1 for number in range(size // 12)}}
        if value:
            one = json.dumps(member := next(iter(value.values())))
            many = {f"n{number}": member for number in range(size // (len(one) + 12))}
            yield f"{path} of many members", {**value, **many}
        for name, inner in value.items():
            for what, larger in _inflated(inner, size, f"{path}.{name}"):
                yield what, {**value, name: larger}
    elif isinstance(value, list):
        one = json.dumps(value[0])
        count = size // (len(one) + 2)
        yield f"{path} long", value * count
        yield f"{path} of different members", [_numbered(value[0], number) for number in range(count)]
        yield f"{path} of references", [value[0], *[{"$ref": f"${path[4:]}[0]"}] * (size // 40)]
        yield f"{path} of nulls", [None] * (size // 6)
        for what, larger in _inflated(value[0], size, f"{path}[]"):
            yield what, [larger]
    elif isinstance(value, str):
        for text in LONG:
            yield f"{path}={text!r} * n", text * (size // max(len(json.dumps(text)) - 2, 1))
    elif not isinstance(value, bool):
        for number in (-1, 2**31 - 1, 2**63 - 1):
            yield f"{path}={number}", number


def _odd(tree: Any, path: str) -> Iterator[tuple[str, list[Any]]]:
    """For each part of the tree, from the root to the leaves: the tree with each odd value there, and without it."""
    yield f"{path} of another kind", list(ODD)
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, member in members:
        for inner, others in _odd(member, f"{path}.{key}"):
            yield inner, [_with(tree, key, other) for other in others]
        yield f"without {path}.{key}", [_with(tree, key)]


def _with(tree: Any, key: Any, *value: Any) -> Any:
    """The tree with that value at the key, or with nothing there."""
    changed = tree.copy()
    if value:
        changed[key] = value[0]
    else:
        del changed[key]
    return changed


def _numbered(value: Any, number: int) -> Any:
    """The value with other texts: lists of equal members may be cheap by luck."""
    if isinstance(value, str):
        return f"{value}{number}"
    if isinstance(value, dict):
        return {name: _numbered(member, number) for name, member in value.items()}
    return [_numbered(member, number) for member in value] if isinstance(value, list) else value


def header_rows(size: int) -> Iterator[Row]:
    """Headers that are no request, on both ports."""
    headers = {
        "deep": b'{"code":34,"extFields":' + b'{"a":' * (size // 5),
        "wide": b'{"code":34,' + b'"a":1,' * (size // 6) + b'"opaque":1}',
        "a long number": b'{"code":34,"opaque":' + b"9" * size + b"}",
        "a long remark": b'{"code":34,"remark":"' + b"x" * size + b'"}',
        "a long language": b'{"code":34,"language":"' + b"x" * size + b'"}',
        "escapes": b'{"code":34,"remark":"' + b"\\u0041" * (size // 6) + b'"}',
        "spaces": b'{"code":34' + b" " * size + b"}",
        "no json": b"x" * size,
    }
    for port in TABLES:
        for what, header in headers.items():
            yield Row(f"{port} header: {what}", Attack(port, frame(header)))
