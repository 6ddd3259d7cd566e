"""Our declarations as protocol files, in the form in which tools read them: `google.protobuf.FileDescriptorProto`.

    files() -> {"apache/rocketmq/v2/service.proto": bytes, ...}

All messages of the service stand in one file. Mirrors `descriptor.proto`.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cache
from typing import Annotated, Final

from ..wire.declare import Field, Int32, Kind, Message, fields_of
from ..wire.encoding import encode
from . import service
from .inspection import CHECK, REFLECT, WATCH
from .service import MESSAGING, Rpc
from .times import Duration, Timestamp


class FieldDescriptor(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""
    number: Annotated[Int32, 3] = 0
    label: Annotated[Int32, 4] = 0
    type: Annotated[Int32, 5] = 0
    type_name: Annotated[str, 6] = ""
    oneof_index: Annotated[Int32 | None, 9] = None
    json_name: Annotated[str, 10] = ""
    proto3_optional: Annotated[bool, 17] = False


class OneofDescriptor(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""


class MessageOptions(Message, frozen=True, kw_only=True):
    map_entry: Annotated[bool, 7] = False


class EntryDescriptor(Message, frozen=True, kw_only=True):
    """The entry of a map: a `MessageDescriptor` without more inside."""

    name: Annotated[str, 1] = ""
    field: Annotated[Sequence[FieldDescriptor], 2] = ()
    options: Annotated[MessageOptions, 7] = MessageOptions()


class MessageDescriptor(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""
    field: Annotated[Sequence[FieldDescriptor], 2] = ()
    nested_type: Annotated[Sequence[EntryDescriptor], 3] = ()
    options: Annotated[MessageOptions | None, 7] = None
    oneof_decl: Annotated[Sequence[OneofDescriptor], 8] = ()


class EnumValueDescriptor(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""
    number: Annotated[Int32 | None, 2] = None


class EnumDescriptor(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""
    value: Annotated[Sequence[EnumValueDescriptor], 2] = ()


class MethodDescriptor(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""
    input_type: Annotated[str, 2] = ""
    output_type: Annotated[str, 3] = ""
    client_streaming: Annotated[bool, 5] = False
    server_streaming: Annotated[bool, 6] = False


class ServiceDescriptor(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""
    method: Annotated[Sequence[MethodDescriptor], 2] = ()


class FileDescriptor(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""
    package: Annotated[str, 2] = ""
    dependency: Annotated[Sequence[str], 3] = ()
    message_type: Annotated[Sequence[MessageDescriptor], 4] = ()
    enum_type: Annotated[Sequence[EnumDescriptor], 5] = ()
    service: Annotated[Sequence[ServiceDescriptor], 6] = ()
    syntax: Annotated[str, 12] = ""


_TYPES: Final = {
    Kind.FLOAT: 2,
    Kind.INT64: 3,
    Kind.INT32: 5,
    Kind.BOOL: 8,
    Kind.STRING: 9,
    Kind.MESSAGE: 11,
    Kind.MAP: 11,
    Kind.BYTES: 12,
    Kind.ENUM: 14,
}
_OPTIONAL, _REPEATED = 1, 3
_WELL_KNOWN: Final = {
    Timestamp: "google/protobuf/timestamp.proto",
    Duration: "google/protobuf/duration.proto",
}


@cache
def files() -> dict[str, bytes]:
    """Name of the file -> its descriptor, those of the well-known types too."""
    found = [_file(path, "google.protobuf", (), {kind}) for kind, path in _WELL_KNOWN.items()]
    found.append(_file("apache/rocketmq/v2/service.proto", "apache.rocketmq.v2", MESSAGING))
    for rpcs in ((CHECK, WATCH), *((rpc,) for rpc in REFLECT)):
        package = rpcs[0].service.rpartition(".")[0]
        found.append(_file(package.replace(".", "/") + ".proto", package, rpcs))
    return {file.name: encode(file) for file in found}


@cache
def symbols() -> dict[str, str]:
    """Name of a service -> the file that declares it."""
    found = {service.SERVICE: "apache/rocketmq/v2/service.proto"}
    for rpc in (CHECK, *REFLECT):
        found[rpc.service] = rpc.service.rpartition(".")[0].replace(".", "/") + ".proto"
    return found


def _file(
    name: str, package: str, rpcs: Sequence[Rpc], kinds: Iterable[type[Message]] = ()
) -> FileDescriptor:
    declared: dict[type, None] = {}
    for kind in (*kinds, *(kind for rpc in rpcs for kind in (rpc.request, rpc.reply))):
        _collect(kind, declared)
    own = [kind for kind in declared if package == "google.protobuf" or kind not in _WELL_KNOWN]
    return FileDescriptor(
        name=name,
        package=package,
        dependency=[path for kind, path in _WELL_KNOWN.items() if kind in declared and kind not in own],
        message_type=[_message(kind, package) for kind in own if issubclass(kind, Message)],
        enum_type=[_enumeration(kind) for kind in own if issubclass(kind, IntEnum)],
        service=[_service(package, rpcs)] if rpcs else [],
        syntax="proto3",
    )


def _collect(kind: type[Message], declared: dict[type, None]) -> None:
    """The message, and all that its fields hold."""
    if kind in declared:
        return
    declared[kind] = None
    for field in fields_of(kind):
        if field.kind is Kind.MESSAGE:
            _collect(field.type, declared)
        elif field.kind is Kind.ENUM:
            declared[field.type] = None


def _message(kind: type[Message], package: str) -> MessageDescriptor:
    fields = fields_of(kind)
    oneofs = list(dict.fromkeys(field.oneof for field in fields if field.oneof is not None))
    optional = [field.name for field in fields if _is_optional(field)]
    names = [*oneofs, *(f"_{name}" for name in optional)]
    return MessageDescriptor(
        name=kind.__name__,
        field=[_field(field, names, kind, package) for field in fields],
        nested_type=[_entry(field) for field in fields if field.kind is Kind.MAP],
        oneof_decl=[OneofDescriptor(name=name) for name in names],
    )


def _is_optional(field: Field) -> bool:
    return field.has_presence and field.oneof is None


def _field(field: Field, oneofs: Sequence[str], owner: type[Message], package: str) -> FieldDescriptor:
    oneof = f"_{field.name}" if _is_optional(field) else field.oneof
    type_name = ""
    if field.kind is Kind.MAP:
        type_name = f".{package}.{owner.__name__}.{_entry_name(field)}"
    elif field.type is not None:
        type_name = f".{'google.protobuf' if field.type in _WELL_KNOWN else package}.{field.type.__name__}"
    return FieldDescriptor(
        name=field.name,
        number=field.number,
        label=_REPEATED if field.is_repeated or field.kind is Kind.MAP else _OPTIONAL,
        type=_TYPES[field.kind],
        type_name=type_name,
        oneof_index=None if oneof is None else oneofs.index(oneof),
        json_name=_camel(field.name),
        proto3_optional=_is_optional(field),
    )


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _entry_name(field: Field) -> str:
    return "".join(word.capitalize() for word in field.name.split("_")) + "Entry"


def _entry(field: Field) -> EntryDescriptor:
    text = _TYPES[Kind.STRING]
    return EntryDescriptor(
        name=_entry_name(field),
        field=[
            FieldDescriptor(name=name, number=number, label=_OPTIONAL, type=text, json_name=name)
            for number, name in ((1, "key"), (2, "value"))
        ],
        options=MessageOptions(map_entry=True),
    )


def _enumeration(kind: type[IntEnum]) -> EnumDescriptor:
    values = [EnumValueDescriptor(name=member.name, number=int(member)) for member in kind]
    return EnumDescriptor(name=kind.__name__, value=values)


def _service(package: str, rpcs: Sequence[Rpc]) -> ServiceDescriptor:
    methods = [
        MethodDescriptor(
            name=rpc.name,
            input_type=f".{package}.{rpc.request.__name__}",
            output_type=f".{package}.{rpc.reply.__name__}",
            client_streaming=rpc.kind is service.Kind.BIDI,
            server_streaming=rpc.kind is not service.Kind.UNARY,
        )
        for rpc in rpcs
    ]
    return ServiceDescriptor(name=rpcs[0].service.rpartition(".")[2], method=methods)
