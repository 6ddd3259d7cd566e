"""The tolerant reader: JSON text that is not standard, to plain values.

It accepts what fastjson 1 accepts (listed in `fastjson.py`). Its errors name the character at which it gave up. It is
some fifty times slower than orjson, so it reads only what orjson refused. It knows no body and no type.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from ..errors import BodyError

MAX_DEPTH: Final = 128
"""Deepest nesting read. The deepest official body has 7 levels."""

_SPACE: Final = re.compile(r"\s*")
_SPACE_AND_COMMAS: Final = re.compile(r"[\s,]*")
_DOUBLE_QUOTED: Final = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_SINGLE_QUOTED: Final = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL)
_BARE: Final = re.compile(r"""[^\s,:{}\[\]"']+""")
_INTEGER: Final = re.compile(r"([+-]?\d+)[LSB]?")
_FLOAT: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[FD]?")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_WORDS: Final = {"true": True, "false": False, "null": None, "undefined": None, "NaN": None}


def read(data: bytes | bytearray | memoryview | str, object_key: Callable[[dict[Any, Any]], Any]) -> Any:
    """Whole text to a value. `object_key` turns the members of an object in key position into a hashable key.
    Bytes that are not UTF-8 become U+FFFD, as in Java. Raises BodyError."""
    text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
    reader = _Reader(text.removeprefix("\ufeff"), object_key)
    value = reader.value(0)
    reader.skip(_SPACE)
    if reader.position != len(reader.text):
        reader.fail("text after the end")
    return value


class _Reader:
    """A position in one text. Each method starts at its first character and ends behind its last."""

    __slots__ = ("object_key", "position", "text")

    def __init__(self, text: str, object_key: Callable[[dict[Any, Any]], Any]) -> None:
        self.text = text
        self.position = 0
        self.object_key = object_key

    def fail(self, reason: str) -> NoReturn:
        near = self.text[self.position : self.position + 20]
        raise BodyError(f"JSON: {reason} at character {self.position}, near {near!r}")

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Skips blanks (pattern) and returns the next character, "" at the end."""
        match = pattern.match(self.text, self.position)
        assert match is not None  # both patterns match the empty text
        self.position = match.end()
        return self.text[self.position : self.position + 1]

    def value(self, depth: int) -> Any:
        first = self.skip(_SPACE)
        if first in ('"', "'") and first:
            return self.quoted(first)
        if first == "{":
            return self.object(depth + 1)
        if first == "[":
            return self.array(depth + 1)
        return self.scalar()

    def object(self, depth: int) -> dict[Any, Any]:
        if depth > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} levels")
        self.position += 1
        members: dict[Any, Any] = {}
        next_ = self.skip(_SPACE_AND_COMMAS)
        while next_ != "}":
            key = self.key(next_, depth)
            if self.skip(_SPACE) != ":":
                self.fail("':' expected")
            self.position += 1
            members[key] = self.value(depth)
            next_ = self.next_item("}")
        self.position += 1
        return members

    def array(self, depth: int) -> list[Any]:
        if depth > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} levels")
        self.position += 1
        values: list[Any] = []
        next_ = self.skip(_SPACE_AND_COMMAS)
        while next_ != "]":
            values.append(self.value(depth))
            next_ = self.next_item("]")
        self.position += 1
        return values

    def next_item(self, end: str) -> str:
        next_ = self.skip(_SPACE)
        if next_ == end:
            return end
        if next_ != ",":
            self.fail(f"',' or '{end}' expected")
        return self.skip(_SPACE_AND_COMMAS)

    def key(self, first: str, depth: int) -> Any:
        if first in ('"', "'") and first:
            return self.quoted(first)
        if first == "{":
            return self.object_key(self.object(depth + 1))
        word = self.bare()
        return self.integer(word) if _INTEGER.fullmatch(word) else word

    def quoted(self, quote: str) -> str:
        match = (_DOUBLE_QUOTED if quote == '"' else _SINGLE_QUOTED).match(self.text, self.position)
        if match is None:
            self.fail("unterminated text")
        self.position = match.end()
        text = match[1]
        if "\\" not in text:
            return text
        text = _ESCAPE.sub(_unescape, text)
        # Two \u escapes may be the halves of one character; joining them takes a trip through UTF-16.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def bare(self) -> str:
        match = _BARE.match(self.text, self.position)
        if match is None:
            self.fail("value or name expected")
        self.position = match.end()
        return match[0]

    def scalar(self) -> Any:
        start = self.position
        word = self.bare()
        if word in _WORDS:
            return _WORDS[word]
        if _INTEGER.fullmatch(word):
            return self.integer(word)
        match = _FLOAT.fullmatch(word)
        if match is None:
            self.position = start
            self.fail("value expected")
        return float(match[1])

    def integer(self, word: str) -> int:
        try:
            return int(word.rstrip("LSB"))
        except ValueError:  # Python refuses texts of thousands of digits
            self.fail("number too long")


def _unescape(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    if digits is not None:
        return chr(int(digits, 16))
    return _ESCAPED.get(match[3], match[3])
