"""Random messages of the gRPC service, for hypothesis."""

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st
from pocketmq.grpc_endpoint.messages.proto import Message

_VALUES: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_STRING: st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=8),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.TYPE_FLOAT: st.floats(width=32, allow_nan=False),
}


@st.composite
def any_message(draw: st.DrawFn, kind: type[Message], depth: int = 5) -> Any:
    """A message with some of its fields set."""
    of: Any = kind
    return of(**draw(_fields(of.DESCRIPTOR, depth)))


@st.composite
def _fields(draw: st.DrawFn, descriptor: Any, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in descriptor.fields:
        rivals = () if field.containing_oneof is None else field.containing_oneof.fields
        if any(rival.name in found for rival in rivals) or not draw(st.booleans()):
            continue
        if field.message_type is not None:
            if depth <= 1:
                continue
            one: st.SearchStrategy[Any] = _fields(field.message_type, depth - 1)
        elif field.enum_type is not None:
            numbers = [value.number for value in field.enum_type.values]
            one = st.sampled_from(numbers) | st.integers(70_000, 70_005)
        else:
            one = _VALUES[field.type]
        found[field.name] = draw(st.lists(one, max_size=3) if field.is_repeated else one)
    return found
