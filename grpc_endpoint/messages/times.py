"""Points in time and spans of it: the well-known types `google.protobuf.Timestamp` and `Duration`."""

from typing import Annotated, ClassVar

from ..wire.declare import Int32, Int64, Message


class Timestamp(Message, frozen=True, kw_only=True):
    """A point in time since 1970."""

    seconds: Annotated[Int64, 1] = 0
    nanos: Annotated[Int32, 2] = 0

    @classmethod
    def of_ms(cls, ms: int) -> "Timestamp":
        seconds, rest_ms = divmod(ms, 1000)
        return cls(seconds=seconds, nanos=rest_ms * 1_000_000)

    @property
    def ms(self) -> int:
        return self.seconds * 1000 + self.nanos // 1_000_000


class Duration(Message, frozen=True, kw_only=True):
    """A span of time. Both fields have the same sign."""

    recurs: ClassVar[bool] = True

    seconds: Annotated[Int64, 1] = 0
    nanos: Annotated[Int32, 2] = 0

    @classmethod
    def of_ms(cls, ms: int) -> "Duration":
        sign = -1 if ms < 0 else 1
        seconds, rest_ms = divmod(abs(ms), 1000)
        return cls(seconds=sign * seconds, nanos=sign * rest_ms * 1_000_000)

    @property
    def ms(self) -> int:
        return self.seconds * 1000 + int(self.nanos / 1_000_000)
