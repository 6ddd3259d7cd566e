"""Points in time and spans of it: the well-known types `google.protobuf.Timestamp` and `Duration`."""

from . import proto


class Timestamp(proto.Message):
    """A point in time since 1970."""

    seconds = proto.int64(1)
    nanos = proto.int32(2)


proto.build("google/protobuf/timestamp.proto", "google.protobuf", globals())


class Duration(proto.Message):
    """A span of time. Both fields have the same sign."""

    seconds = proto.int64(1)
    nanos = proto.int32(2)


proto.build("google/protobuf/duration.proto", "google.protobuf", globals())


def timestamp_of(ms: int) -> Timestamp:
    """Of ms since 1970."""
    return Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


def duration_of(ms: int) -> Duration:
    sign = -1 if ms < 0 else 1
    return Duration(seconds=sign * (abs(ms) // 1000), nanos=sign * (abs(ms) % 1000) * 1_000_000)


def ms_of(time: Timestamp | Duration) -> int:
    """Cut to ms: a span towards zero, a point in time downwards, as their parts are."""
    return time.seconds * 1000 + int(time.nanos / 1_000_000)
