"""Our messages in the official protobuf library: classes made from our declarations, in a pool of their own."""

import math
import struct
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import strategies as st
from pocketmq.grpc_endpoint.messages.descriptors import files
from pocketmq.grpc_endpoint.wire.declare import Field, Kind, Message, fields_of


@cache
def pool() -> Any:
    found = descriptor_pool.DescriptorPool()
    for data in files().values():
        found.Add(descriptor_pb2.FileDescriptorProto.FromString(data))
    return found


@cache
def official(kind: type[Message], package: str = "apache.rocketmq.v2") -> Any:
    """The library's class for ours."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"{package}.{kind.__name__}"))


def _float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


_SCALARS: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.STRING: st.text(max_size=8),
    Kind.BYTES: st.binary(max_size=8),
    Kind.BOOL: st.booleans(),
    Kind.INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    Kind.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    Kind.FLOAT: st.floats(width=32, allow_nan=False).map(_float32),
}


def _values(field: Field, depth: int) -> st.SearchStrategy[Any]:
    if field.kind is Kind.MAP:
        return st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
    if field.kind is Kind.ENUM:
        one: st.SearchStrategy[Any] = st.sampled_from(list(field.type)) | st.integers(70_000, 70_005)
    elif field.kind is Kind.MESSAGE:
        one = any_message(field.type, depth - 1)
    else:
        one = _SCALARS[field.kind]
    return st.lists(one, max_size=3) if field.is_repeated else one


@st.composite
def any_message(draw: st.DrawFn, kind: type[Message], depth: int = 5) -> Message:
    """A message with some of its fields set; of a oneof, at most one."""
    values: dict[str, Any] = {}
    for field in fields_of(kind):
        is_deep = field.kind is Kind.MESSAGE and depth <= 1
        if not is_deep and not any(name in values for name in field.rivals) and draw(st.booleans()):
            values[field.name] = draw(_values(field, depth))
    return kind(**values)


def same(ours: Any, theirs: Any) -> bool:
    """Whether one of our messages says what one of the library's does."""
    for field in fields_of(type(ours)):
        mine, other = getattr(ours, field.name), getattr(theirs, field.name)
        if field.has_presence and (mine is not None) != theirs.HasField(field.name):
            return False
        if mine is None:
            continue
        if field.kind is Kind.MAP:
            if dict(mine) != dict(other):
                return False
        elif field.is_repeated:
            if len(mine) != len(other) or not all(
                _equal(field, *pair) for pair in zip(mine, other, strict=True)
            ):
                return False
        elif not _equal(field, mine, other):
            return False
    return True


def _equal(field: Field, mine: Any, other: Any) -> bool:
    if field.kind is Kind.MESSAGE:
        return same(mine, other)
    if field.kind is Kind.FLOAT:
        return bool(mine == other) or (math.isnan(mine) and math.isnan(other))
    return bool(mine == other)
