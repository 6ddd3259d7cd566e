"""Body: what all JSON bodies share.

A body is a struct whose fields are the members of the official class, renamed to camelCase. Every field has a
default, because the official reader leaves an absent member at its default. The bodies themselves stand in
the files `bodies_*.py`; read `routes.py` next."""

from typing import Self

import msgspec

from ..errors import BodyError
from ..text import fastjson


class Body(msgspec.Struct, frozen=True, rename="camel"):
    """Mirrors the official RemotingSerializable."""

    def encode(self) -> bytes:
        """Official text: members in alphabetical order, None left out, integer keys unquoted."""
        return fastjson.dumps(self)

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview | None) -> Self:
        """Raises BodyError naming the class and the member at fault, also when there is no body."""
        if not data:
            raise BodyError(f"{cls.__name__}: the body is missing")
        return fastjson.decode(data, cls)
