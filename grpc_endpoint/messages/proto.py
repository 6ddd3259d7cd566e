"""How a message is declared, and how protobuf gets to know it.

    class Address(proto.Message):
        host = proto.string(1)
        port = proto.int32(2)

    class Endpoints(proto.Message):
        scheme = proto.enum(AddressScheme, 1)
        addresses = proto.repeated(Address, 2)

    proto.build("rocketmq/definition.proto", "rocketmq", globals())   # protobuf's classes take the place of these

The pool is our own: a process may have the official client beside, which registers the same names in the default pool.
A map of texts is read as a list of its entries: their order counts in the store, and protobuf's maps have none.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, Self, TypeVar, cast

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

files: Final[dict[str, bytes]] = {}
"""Name of a file -> its `FileDescriptorProto`, for tools."""
_pool: Final = DescriptorPool()
_declared: Final[dict[type, tuple[str, str]]] = {}
"""The file of a message or enumeration, and its full name."""


class Message:
    """What protobuf's classes have, as far as it is used here. Fields are set by name; `None` leaves one out.

    An absent field reads as an empty one; `HasField` tells them apart where the field is a message, is `optional`, or
    belongs to a oneof. Unknown numbers of enumerations are kept.
    """

    def __init__(self, **fields: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} was not built")

    @classmethod
    def FromString(cls, data: bytes) -> Self:
        raise NotImplementedError

    def SerializeToString(self) -> bytes:
        raise NotImplementedError

    def ByteSize(self) -> int:
        raise NotImplementedError

    def HasField(self, name: str) -> bool:
        raise NotImplementedError

    def CopyFrom(self, other: Self) -> None:
        raise NotImplementedError


_T = TypeVar("_T")
_MessageT = TypeVar("_MessageT", bound=Message)


class Repeated(Sequence[_T]):
    """The values of a repeated field. `values[:]`, a list, is read twice as fast."""

    def add(self, **fields: Any) -> _T:
        raise NotImplementedError

    def extend(self, values: Iterable[_T]) -> None:
        raise NotImplementedError

    def __delitem__(self, numbers: slice) -> None:
        raise NotImplementedError


class Entry(Message):
    """One entry of a map of texts."""

    key: str
    value: str


class _Field(NamedTuple):
    number: int
    wire_kind: int
    kind: Any = None
    """The message or the enumeration."""
    is_repeated: bool = False
    is_optional: bool = False
    """proto3 `optional`: an empty value is not the same as none."""
    oneof: str | None = None


def string(number: int, *, optional: bool = False, oneof: str | None = None) -> str:
    return cast(str, _Field(number, FieldDescriptorProto.TYPE_STRING, None, False, optional, oneof))


def data(number: int) -> bytes:
    return cast(bytes, _Field(number, FieldDescriptorProto.TYPE_BYTES))


def boolean(number: int, *, optional: bool = False) -> bool:
    return cast(bool, _Field(number, FieldDescriptorProto.TYPE_BOOL, None, False, optional))


def int32(number: int, *, optional: bool = False) -> int:
    return cast(int, _Field(number, FieldDescriptorProto.TYPE_INT32, None, False, optional))


def int64(number: int, *, optional: bool = False) -> int:
    return cast(int, _Field(number, FieldDescriptorProto.TYPE_INT64, None, False, optional))


def float32(number: int) -> float:
    return cast(float, _Field(number, FieldDescriptorProto.TYPE_FLOAT))


def enum(kind: type[IntEnum], number: int, *, optional: bool = False) -> int:
    return cast(int, _Field(number, FieldDescriptorProto.TYPE_ENUM, kind, False, optional))


def one(kind: type[_MessageT], number: int, *, oneof: str | None = None) -> _MessageT:
    return cast(_MessageT, _Field(number, FieldDescriptorProto.TYPE_MESSAGE, kind, oneof=oneof))


def repeated(kind: type[_T], number: int) -> Repeated[_T]:
    """Texts, bytes, members of an enumeration, messages."""
    if kind is str:
        field = _Field(number, FieldDescriptorProto.TYPE_STRING, None, True)
    elif kind is bytes:
        field = _Field(number, FieldDescriptorProto.TYPE_BYTES, None, True)
    elif issubclass(kind, IntEnum):
        field = _Field(number, FieldDescriptorProto.TYPE_ENUM, kind, True)
    else:
        field = _Field(number, FieldDescriptorProto.TYPE_MESSAGE, kind, True)
    return cast(Repeated[_T], field)


def texts_by_name(number: int) -> Repeated[Entry]:
    """`map<string, string>`."""
    return cast(Repeated[Entry], _Field(number, FieldDescriptorProto.TYPE_MESSAGE, Entry, True))


def build(file_name: str, package: str, namespace: dict[str, Any]) -> None:
    """Put protobuf's classes in the place of the messages that this module, `namespace`, has declared so far."""
    file = FileDescriptorProto(name=file_name, package=package, syntax="proto3")
    kinds = [
        kind
        for kind in namespace.values()
        if isinstance(kind, type) and issubclass(kind, Message) and kind.__module__ == namespace["__name__"]
    ]
    for kind in kinds:
        _declared[kind] = file_name, f".{package}.{kind.__name__}"
    for kind in kinds:
        _add_message(file, kind)
    files[file_name] = file.SerializeToString()
    for message in file.message_type:
        for entry in message.nested_type:
            entry.ClearField("options")  # a list of entries, which has the same bytes as a map
    _pool.AddSerializedFile(file.SerializeToString())
    built = _pool.FindFileByName(file_name).message_types_by_name
    for kind in kinds:
        namespace[kind.__name__] = protobufs = GetMessageClass(built[kind.__name__])
        _declared[protobufs] = _declared[kind]


def _add_message(file: FileDescriptorProto, kind: type[Message]) -> None:
    message = file.message_type.add(name=kind.__name__)
    fields = {name: field for name, field in vars(kind).items() if isinstance(field, _Field)}
    oneofs = list(dict.fromkeys(field.oneof for field in fields.values() if field.oneof is not None))
    for name, field in fields.items():
        added = message.field.add(
            name=name, number=field.number, json_name=_camel(name), type=field.wire_kind
        )
        added.label = added.LABEL_REPEATED if field.is_repeated else added.LABEL_OPTIONAL
        if field.kind is Entry:
            added.type_name = f"{_declared[kind][1]}.{_add_entry(message, name)}"
        elif field.kind is not None:
            added.type_name = _full_name(file, field.kind)
        if field.is_optional:
            added.proto3_optional = True
            added.oneof_index = len(oneofs)
            oneofs.append(f"_{name}")
        elif field.oneof is not None:
            added.oneof_index = oneofs.index(field.oneof)
    for oneof in oneofs:
        message.oneof_decl.add(name=oneof)


def _add_entry(message: DescriptorProto, name: str) -> str:
    entry = message.nested_type.add(name=f"{_camel(name)[:1].upper()}{_camel(name)[1:]}Entry")
    entry.options.map_entry = True
    for number, part in ((1, "key"), (2, "value")):
        entry.field.add(name=part, number=number, json_name=part, label=1, type=9)
    return str(entry.name)


def _full_name(file: FileDescriptorProto, kind: type) -> str:
    """The name of a message or enumeration; its file is imported, and an enumeration is declared by its first user."""
    if kind not in _declared:
        _declared[kind] = file.name, f".{file.package}.{kind.__name__}"
        added = file.enum_type.add(name=kind.__name__)
        for member in cast(type[IntEnum], kind):
            added.value.add(name=member.name, number=member)
    file_name, full_name = _declared[kind]
    if file_name not in (file.name, *file.dependency):
        file.dependency.append(file_name)
    return full_name


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
