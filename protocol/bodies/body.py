"""What all JSON bodies share, and DataVersion, which many of them hold.

A body is a struct whose fields are the members of the official class, renamed to camelCase. Every field has a
default, because the official reader leaves an absent member at its default.
"""

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


class DataVersion(Body, frozen=True):
    """Official DataVersion. `timestamp` in ms; `state_version` is 0 outside controller mode and absent in
    4.x."""

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    def next_version(self, now_ms: int) -> "DataVersion":
        """The edition after a change made now."""
        return DataVersion(state_version=self.state_version, timestamp=now_ms, counter=self.counter + 1)
