"""Hostile requests for the gRPC port, made from what the server says about itself (`ServerReflection`): every rpc.

A request starts from plausible values, sent by a client that has announced its settings. Then one field at a time, on
every level, is missing, empty, negative, too large, of another wire type, repeated, nested deeply, or long; then
the message is one that no library writes; then the call is. All is made of bytes: no codec of the server is used.
"""

import gzip
import socket
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool

from hostile.generated_rows import LONG, Row
from hostile.http2_peer import MESSAGING, call, converse, frame, framed, opening
from hostile.judge import Attack

RPCS: Final = (
    *("QueryRoute", "Heartbeat", "SendMessage", "QueryAssignment", "ReceiveMessage", "AckMessage"),
    *("ForwardMessageToDeadLetterQueue", "EndTransaction", "Telemetry", "NotifyClientTermination"),
    *("ChangeInvisibleDuration", "RecallMessage"),
)
"""Of the public service; the test compares them with those that the server has."""
REFLECTION: Final = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
HEALTH: Final = "/grpc.health.v1.Health/Check"
DEEP: Final = 5_000
VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = 0, 1, 2, 3, 4, 5
NUMBERS: Final = (0, -1, 2**31 - 1, 2**31, 2**63 - 1, 2**64 - 1)
HANDLE: Final = "0 99999999999999 60000 0 0 broker-a 0 0 0"
PLAUSIBLE: Final = {"resource_namespace": "", "receipt_handle": HANDLE, "expression": "*"} | {
    "body": "x",
    "language": 1,
}
UNUSUAL: Final = frozenset(
    ("body_digest", "delivery_timestamp", "dead_letter_queue", "message_group", "lite_topic", "priority")
)
"""Members that change what kind of message it is: tried, but not part of a plausible one."""
NAMES: Final = {"group": "g", "producer_group": "g", "broker": "broker-a"}

Tree = dict[int, Any]
"""Field number: another `Tree`, or the bytes of the field as they are sent, all of its occurrences."""


# -- bytes


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def field(number: int, value: int | bytes, wire: int | None = None) -> bytes:
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    size = varint(len(value)) if wire is None else b""
    return varint(number << 3 | (BYTES if wire is None else wire)) + size + value


def packed(tree: Tree) -> bytes:
    parts = [
        field(number, packed(value)) if isinstance(value, dict) else value for number, value in tree.items()
    ]
    return b"".join(parts)


# -- what the server has


def messages_of(port: int, seconds: float) -> dict[str, Any]:
    """The request of each rpc, as the server describes it: descriptors of the protobuf library."""
    pool = descriptor_pool.DescriptorPool()
    wanted, known = [(4, MESSAGING)], set[str]()
    while wanted:
        number, name = wanted.pop()
        for file in _asked(port, seconds, field(number, name.encode())):
            if file.name not in known:
                known.add(file.name)
                wanted += [(3, other) for other in file.dependency]
    files = {file.name: file for name in known for file in _asked(port, seconds, field(3, name.encode()))}
    for file in _in_order(files):
        pool.Add(file)
    service = pool.FindServiceByName(MESSAGING)
    return {method.name: method.input_type for method in service.methods}


def _asked(port: int, seconds: float, question: bytes) -> list[Any]:
    with socket.create_connection(("127.0.0.1", port), seconds) as peer:
        replies = converse(peer, opening() + call(1, REFLECTION, framed(question)))
    answer = descriptor_pb2.FileDescriptorSet  # its only field has the number of the reply's
    response = _members(bytes(replies[1][5:]))[4]
    return list(answer.FromString(response).file)


def _members(data: bytes) -> dict[int, bytes]:
    """The last value of each field that has a length."""
    found, at = dict[int, bytes](), 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                return value

    while at < len(data):
        head = number()
        assert head & 7 == BYTES
        size = number()
        found[head >> 3] = data[at : at + size]
        at += size
    return found


def _in_order(files: dict[str, Any]) -> Iterator[Any]:
    """Each file after those that it imports."""
    done = set[str]()
    while len(done) < len(files):
        for name, file in files.items():
            if name not in done and done.issuperset(file.dependency):
                done.add(name)
                yield file


# -- requests


def rows(
    rpc: str, kind: Any, size: int, texts: tuple[str, ...] = LONG, known: Iterable[str] = ()
) -> Iterator[Row]:
    """All of one rpc, whose request is of this kind, up to `size` bytes each. Of the messages inside it, those of a
    `known` kind stay plain."""
    path = f"/{MESSAGING}/{rpc}"
    plain = _plain(kind)
    yield Row(f"grpc {rpc} plain", _attack(path, framed(packed(plain))))
    for what, tree in _variants(kind, plain, "", size, texts, set(known)):
        yield Row(f"grpc {rpc} {what}", _attack(path, framed(packed(tree))))
    for what, data in _no_messages(packed(plain), size):
        yield Row(f"grpc {rpc} {what}", _attack(path, framed(data)))
    for what, attack in _calls(path, packed(plain), size):
        yield Row(f"grpc {rpc} {what}", attack)


def kinds_inside(kinds: Iterable[Any]) -> set[str]:
    """The full names of all kinds of messages inside these, on every level."""
    found: dict[str, Any] = {}
    waiting = list(kinds)
    while waiting:
        inner = [one.message_type for one in waiting.pop().fields if one.message_type is not None]
        waiting += [kind for kind in inner if kind.full_name not in found]
        found |= {kind.full_name: kind for kind in inner}
    return set(found)


def inspection_rows(size: int) -> Iterator[Row]:
    """Health and reflection: a text in each of their fields."""
    for path, numbers in ((HEALTH, (1,)), (REFLECTION, (1, 3, 4, 6, 7))):
        for number in numbers:
            for text in LONG:
                data = framed(field(number, (text * (size // len(text.encode()))).encode()))
                yield Row(f"grpc {path} {number}={text!r} * n", _attack(path, data))
        for what, message in _no_messages(b"", size):
            yield Row(f"grpc {path} {what}", _attack(path, framed(message)))
        many = framed(field(numbers[-1], b"")) * (size // 7)
        yield Row(f"grpc {path} many messages", _attack(path, many, requests=len(many) // 7))


def known_rows() -> Iterator[Row]:
    """Requests that once held the loop for longer, each with its time then."""
    path = f"/{MESSAGING}/Telemetry"
    settings = packed({2: _settings()})
    count = 16_384 // len(framed(settings))
    yield Row(
        f"{count} settings in a frame (115 ms)", _attack(path, framed(settings) * count, requests=count)
    )
    empty = 16_384 // 5
    yield Row(
        f"{empty} empty messages in a frame (60 ms)", _attack(path, framed(b"") * empty, requests=empty)
    )


def _attack(path: str, data: bytes, *, requests: int = 1, **options: Any) -> Attack:
    return Attack("grpc", _announced() + call(3, path, data, **options), requests)


@cache
def _announced() -> bytes:
    """The settings of a consumer of `g`, on a stream that stays open."""
    entry = {1: {2: field(2, b"Good")}, 2: {1: field(1, 1), 2: field(2, b"*")}}
    settings = {**_settings(), 6: {1: {2: field(2, b"g")}, 2: entry}}
    data = framed(packed({2: settings}))
    return opening() + call(1, f"/{MESSAGING}/Telemetry", data, is_whole=False)


def _settings() -> Tree:
    """Of a simple consumer of `g`, in Java."""
    return {1: field(1, 3), 6: {1: {2: field(2, b"g")}}, 7: {1: field(1, 1)}}


def _plain(kind: Any, name: str = "", depth: int = 0) -> Tree:
    """A plausible message: one element in each list, the first member of each oneof."""
    tree: Tree = {}
    for one in kind.fields:
        rivals = one.containing_oneof
        is_first = rivals is None or len(rivals.fields) == 1 or one is rivals.fields[0]
        if is_first and one.name not in UNUSUAL and depth < 8:
            tree[one.number] = _plain_value(one, name, depth)
    return tree


def _plain_value(one: Any, parent: str, depth: int) -> Any:
    if one.message_type is not None:
        is_map = one.message_type.GetOptions().map_entry
        return (
            {1: field(1, b"k"), 2: field(2, b"v")}
            if is_map
            else _plain(one.message_type, one.name, depth + 1)
        )
    if one.cpp_type == one.CPPTYPE_STRING:
        text = NAMES.get(parent, "Good") if one.name == "name" else PLAUSIBLE.get(one.name, "Good")
        return field(one.number, str(text).encode())
    if one.cpp_type == one.CPPTYPE_FLOAT:
        return field(one.number, bytes(4), FIXED32)
    return field(one.number, int(PLAUSIBLE.get(one.name, 1)))


def _variants(
    kind: Any, tree: Tree, path: str, size: int, texts: tuple[str, ...], seen: set[str]
) -> Iterator[tuple[str, Tree]]:
    """The message with one field changed, field after field; each kind of message inside is varied once."""
    for one in kind.fields:
        rivals = [other.number for other in one.containing_oneof.fields] if one.containing_oneof else []
        less = {number: value for number, value in tree.items() if number not in (one.number, *rivals)}
        name, value = f"{path}{one.name}", tree.get(one.number) or _plain_value(one, path[:-1], 0)
        yield f"without {name}", less
        for what, data in _values(one, value, size, texts):
            yield f"{name} {what}", {**less, one.number: data}
        inner = one.message_type
        if inner is not None and not inner.GetOptions().map_entry and inner.full_name not in seen:
            seen.add(inner.full_name)
            for what, member in _variants(inner, value, f"{name}.", size, texts, seen):
                yield what, {**less, one.number: member}


def _values(one: Any, plain: Any, size: int, texts: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    number = one.number
    for wire, data in ((VARINT, b"\1"), (FIXED64, bytes(8)), (FIXED32, bytes(4)), (GROUP, b""), (7, b"")):
        yield f"of wire type {wire}", field(number, data, wire)
    once = field(number, packed(plain)) if isinstance(plain, dict) else plain
    yield "many times", once * (size // len(once))
    yield "longer than the message", field(number, b"")[:-1] + varint(size)
    if one.message_type is not None:
        yield "empty", field(number, b"")
        yield "empty, many times", field(number, b"") * (size // 3)
        yield "nested", _nested(number, min(DEEP, size // 4))
        if one.message_type.GetOptions().map_entry:
            keys = (field(number, field(1, b"%d" % key) + field(2, b"v")) for key in range(size // 14))
            yield "of many keys", b"".join(keys)
            yield "of a long key", field(number, field(1, b"k" * size) + field(2, b"v"))
    elif one.cpp_type == one.CPPTYPE_STRING:
        yield "empty", field(number, b"")
        yield "no UTF-8", field(number, b"\xff" * 100)
        for text in texts:
            yield f"{text!r} * n", field(number, (text * (size // len(text.encode()))).encode())
    else:
        for value in NUMBERS:
            yield f"= {value}", field(number, value)
        yield "of a long varint", varint(number << 3) + b"\xff" * 10
        yield "packed", field(number, b"\1" * size)


def _nested(number: int, depth: int) -> bytes:
    """A message in a message, all with this field number."""
    heads = list[bytes]()
    size = 0
    for _ in range(depth):
        head = varint(number << 3 | BYTES) + varint(size)
        heads.append(head)
        size += len(head)
    return b"".join(reversed(heads))


def _no_messages(plain: bytes, size: int) -> Iterator[tuple[str, bytes]]:
    """Bytes that are a message with fields that nobody knows, or none."""
    yield "empty", b""
    yield "cut", plain[:-1]
    yield "of zeros", bytes(size)
    yield "of ones", b"\xff" * size
    yield "unknown numbers", plain + field(1000, 1) * (size // 3)
    yield "unknown empty texts", plain + field(1000, b"") * (size // 3)
    yield "an unknown text", plain + field(1000, bytes(size))
    yield "different unknown fields", plain + b"".join(field(n, 1) for n in range(1000, 1000 + size // 4))
    yield "unknown groups", plain + (varint(1000 << 3 | GROUP) + varint(1000 << 3 | GROUP_END)) * (size // 4)
    yield "groups in groups", plain + varint(1000 << 3 | GROUP) * min(DEEP, size // 2)
    yield "ends of groups", plain + varint(1000 << 3 | GROUP_END) * (size // 2)
    yield "unknown nested", plain + _nested(1000, min(DEEP, size // 4))
    yield "the highest field number", plain + field((1 << 29) - 1, 1)
    yield "field number 0", plain + b"\0\1"


def _calls(path: str, plain: bytes, size: int) -> Iterator[tuple[str, Attack]]:
    """The request in a call that no library makes."""
    whole = framed(plain)
    yield "no message", _attack(path, b"")
    yield "half a prefix", _attack(path, whole[:3])
    yield "half a message", _attack(path, whole[:-1])
    yield "a message that never ends", _attack(path, whole[:-1], is_whole=False)
    yield "a length of 0", _attack(path, framed(plain, size=0))
    yield "a length of 4 GiB", _attack(path, framed(plain, size=2**32 - 1))
    yield "compressed without a name", _attack(path, framed(plain, compressed=1))
    yield "reserved bits", _attack(path, framed(plain, compressed=2))
    yield "no gzip", _attack(path, framed(plain, compressed=1), grpc_encoding="gzip")
    bomb = gzip.compress(bytes(size * 100))
    yield "a bomb", _attack(path, framed(bomb, compressed=1), grpc_encoding="gzip")
    bombs = framed(gzip.compress(field(1000, bytes(size)), 1), compressed=1) * 16
    yield "16 bombs", _attack(path, bombs, requests=16, grpc_encoding="gzip")
    yield "an unknown encoding", _attack(path, whole, grpc_encoding="br")
    yield "the message twice", _attack(path, whole * 2)
    yield "many messages", _attack(path, whole * (size // len(whole)), requests=size // len(whole))
    empty = size // 5
    yield "many empty messages", _attack(path, framed(b"") * empty, requests=empty)
    yield "a byte a frame", _attack(path, framed(field(1000, bytes(size // 10))), part_bytes=1)
    yield (
        "empty frames",
        Attack("grpc", _announced() + call(3, path, whole[:-1], is_whole=False) + _empty(3, size)),
    )
    for name, text in {
        "x_mq_client_id": "c" * min(size, 8000),
        "grpc_timeout": "9" * min(size, 8000) + "H",
        "x_mq_language": "J" * min(size, 8000),
        "x_mq_date_time": "2" * min(size, 8000),
        "authorization": "MQv2-HMAC-SHA1 Credential=a/b, SignedHeaders=c, Signature=" + "d" * min(size, 8000),
        "x_mq_namespace": "n" * min(size, 8000),
    }.items():
        yield f"a long {name}", _attack(path, whole, **{name: text})
    half = _announced() + call(3, path, whole, is_whole=False)[:-1]
    yield "a frame that never ends", Attack("grpc", half, closes=True)
    held = b"".join(call(number, path, whole, is_whole=False) for number in range(3, 3 + size // 200, 2))
    yield "many calls that do not end", Attack("grpc", _announced() + held, requests=size // 200)
    many = b"".join(call(number, path, whole) for number in range(3, 3 + size // 200, 2))
    yield "many calls", Attack("grpc", _announced() + many, requests=size // 200)


def _empty(stream_id: int, size: int) -> bytes:
    return frame(0, 0, stream_id, b"") * min(size // 9, 5000)
