"""Protocol buffers by field tables: a message is declared once, as a class with field numbers.

    class Endpoints(Message, frozen=True, kw_only=True):
        scheme: Annotated[AddressScheme, 1] = AddressScheme.UNSPECIFIED
        addresses: Annotated[Sequence[Address], 2] = ()

    declare.py    the declaration: kinds of fields, and the table that is read from a class
    decoding.py   bytes -> message
    encoding.py   message -> bytes
    limits.py     what a message may hold, and the error for bytes that are no message

A declaration uses the types of Python: `str`, `bytes`, `bool`, an `IntEnum`, another message, `Sequence[...]` of these
for repeated fields, `Mapping[str, str]` for a map; `Int32`, `Int64` and `Float` say the width of a number. A field of
type `X | None` has presence on the wire (proto3 `optional`, or the member of a oneof, which `OneOf("name")` says).
Messages are frozen: `msgspec.structs.replace` makes a changed copy.

A message field that was not sent reads as an empty message, so that `request.topic.name` needs no check; `is_present`
says which it is. An enumeration keeps an unknown value as a plain `int`. Unknown fields are skipped. Nothing of
RocketMQ is here.
"""
