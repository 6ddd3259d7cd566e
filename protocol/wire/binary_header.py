"""The binary form of the command header (serialize type 1, `RocketMQSerializable`).

    code      int16
    language  int8
    version   int16
    opaque    int32
    flag      int32
    remark    int32 length, UTF-8 bytes           length 0 = none
    fields    int32 length of all that follows    length 0 or less = none
      each:   int16 key length, key, int32 value length, value

A code above 32767 does not fit. The official writer cuts it to 16 bits; this one refuses it.
"""

import struct
from functools import lru_cache
from typing import Final

from ..errors import FrameError
from ..languages import LANGUAGE_CODES, language_name
from .command import ROCKETMQ, Command

_HEAD: Final = struct.Struct(">hbhiii")  # code, language, version, opaque, flag, remark length
_LENGTH: Final = struct.Struct(">i")
_KEY_LENGTH: Final = struct.Struct(">h")
assert _HEAD.size == 17


def decode_binary_header(header: memoryview, body: memoryview | None) -> Command:
    """The command of a binary header. Raises FrameError if a length points past its end."""
    data = bytes(header)
    size = len(data)
    if size < 21:
        raise FrameError(f"binary header of {size} bytes; the shortest has 21")
    code, language, version, opaque, flag, remark_length = _HEAD.unpack_from(data)
    position = 17 + remark_length
    if not 17 <= position <= size - 4:
        raise FrameError(f"binary header: remark of {remark_length} bytes, {size - 21} left")
    remark = data[17:position].decode("utf-8", "replace") if remark_length else None
    (fields_length,) = _LENGTH.unpack_from(data, position)
    position += 4
    if fields_length > size - position:
        raise FrameError(f"binary header: extFields of {fields_length} bytes, {size - position} left")
    fields = _decode_fields(data, position, position + fields_length) if fields_length > 0 else None
    return Command(
        code, opaque, flag, remark, fields, body, language_name(language) or "JAVA", version, ROCKETMQ
    )


def encode_binary_header(command: Command) -> bytes:
    """The header bytes of a command. Raises FrameError for a code that needs more than 16 bits."""
    if not -0x8000 <= command.code <= 0x7FFF:
        raise FrameError(f"code {command.code} does not fit the binary header")
    remark = command.remark.encode() if command.remark else b""
    fields = _encode_fields(command.fields) if command.fields else b""
    head = _HEAD.pack(
        command.code,
        LANGUAGE_CODES.get(command.language, 7),
        command.version,
        command.opaque,
        command.flag,
        len(remark),
    )
    return b"".join((head, remark, _LENGTH.pack(len(fields)), fields))


_SHORT_LENGTHS: Final = tuple(f"\0\0\0{chr(length)}" for length in range(128))
"""The four bytes of a value's length, as ASCII text."""


def _encode_fields(fields: dict[str, str]) -> bytes:
    # Lengths below 128 and ASCII text become bytes in one step; anything else raises and is written singly.
    lengths = _SHORT_LENGTHS
    parts: list[str] = []
    try:
        for key, value in fields.items():
            parts += (_key_head(key), lengths[len(value)], value)
        return "".join(parts).encode("ascii")
    except (IndexError, UnicodeError):
        return _encode_long_fields(fields)


@lru_cache(maxsize=1024)
def _key_head(key: str) -> str:
    """Length and name of a field. Raises UnicodeError for a long name."""
    return _KEY_LENGTH.pack(len(key)).decode("ascii") + key


def _encode_long_fields(fields: dict[str, str]) -> bytes:
    parts: list[bytes] = []
    for key, value in fields.items():
        key_bytes, value_bytes = key.encode(), value.encode()
        parts += (_KEY_LENGTH.pack(len(key_bytes)), key_bytes, _LENGTH.pack(len(value_bytes)), value_bytes)
    return b"".join(parts)


class _Shape:
    """Names and lengths of one header's fields. A peer's next header of the same size mostly has the same.

    The bytes between the values of such a header (key length, key, value length) are the same: one unpacking finds the
    values, and one comparison proves that they are the right ones.
    """

    __slots__ = ("_between", "_names", "_struct")

    def __init__(self, names: list[str], between: list[bytes], value_lengths: list[int]) -> None:
        self._names = names
        self._between = tuple(between)
        pairs = zip(between, value_lengths, strict=True)
        self._struct = struct.Struct("".join(f"{len(head)}s{length}s" for head, length in pairs))

    def read(self, data: bytes, position: int) -> dict[str, str] | None:
        """The fields at `position`; `None` if they have another shape or are not UTF-8."""
        items = self._struct.unpack_from(data, position)
        if items[0::2] != self._between:
            return None
        try:
            # Arguments of `decode` would cost more than most values do.
            return dict(zip(self._names, [value.decode() for value in items[1::2]], strict=True))
        except UnicodeDecodeError:
            return None


_MAX_FIELDS: Final = 5000
"""In one header: a field of seven bytes becomes an entry of 200. No official header has forty fields."""
_MAX_SHAPES: Final = 1024
_MAX_SHAPE_FIELDS: Final = 64
_MAX_SHAPE_BYTES: Final = 4096
_shapes: dict[int, _Shape] = {}
"""The last shape seen for each length of the fields."""


def _decode_fields(data: bytes, position: int, end: int) -> dict[str, str]:
    shape = _shapes.get(end - position)
    fields = shape.read(data, position) if shape is not None else None
    return _walk_fields(data, position, end) if fields is None else fields


def _walk_fields(data: bytes, position: int, end: int) -> dict[str, str]:
    fields: dict[str, str] = {}
    names: list[str] = []
    between: list[bytes] = []
    value_lengths: list[int] = []
    size = end - position
    while position < end:
        if len(names) >= _MAX_FIELDS:
            raise FrameError(f"binary header: more than {_MAX_FIELDS} fields")
        if end - position < 6:
            raise FrameError("binary header: a field is cut off")
        key_end = (
            position + 2 + (data[position] << 8 | data[position + 1])
        )  # a negative length leads past the end
        value_start = key_end + 4
        if value_start > end:
            raise FrameError("binary header: a key leads past the end")
        value_end = value_start + _LENGTH.unpack_from(data, key_end)[0]
        if not value_start <= value_end <= end:
            raise FrameError("binary header: a value leads past the end")
        name = data[position + 2 : key_end].decode("utf-8", "replace")
        if value_end > value_start:  # the official reader drops a field with an empty value
            fields[name] = data[value_start:value_end].decode("utf-8", "replace")
        names.append(name)
        between.append(data[position:value_start])
        value_lengths.append(value_end - value_start)
        position = value_end
    # Remember only shapes of a usual size: names may be as long as a frame.
    if (
        len(names) <= _MAX_SHAPE_FIELDS
        and sum(map(len, between)) <= _MAX_SHAPE_BYTES
        and 0 not in value_lengths
    ):
        if len(_shapes) >= _MAX_SHAPES:
            _shapes.clear()
        _shapes[size] = _Shape(names, between, value_lengths)
    return fields
