"""The writer: values to JSON as fastjson writes it.

Members of structs and maps are in alphabetical order, and members that are None are left out. What differs from
standard JSON is listed in `fastjson.py`.
"""

import math
from base64 import b64encode
from collections.abc import Callable
from enum import Enum
from functools import cache
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

import msgspec

from ..message.message_queue import MessageQueue


def dumps(
    value: Any,
    *,
    quote_integer_keys: bool = False,
    browser_compatible: bool = False,
    pretty: bool = False,
    level: int = 0,
) -> bytes:
    """A value to fastjson's text. Members of structs and string-keyed maps are in alphabetical order. Members that are
    None are left out (None in a list stays `null`). NaN and infinity become `null`. Text is raw UTF-8.

    quote_integer_keys   `{"0":1}` instead of `{0:1}`: every reader accepts it, even in a member it does not know
    browser_compatible   quoted integer keys and `\\u` escapes (4.x route data, clients since V4_9_4)
    pretty               one member a line, indented with tabs, as in the official configuration files
    level                how deep the value stands in a pretty text that the caller puts together
    """
    writer = _Writer(
        quote_integer_keys=quote_integer_keys or browser_compatible,
        text=encode_basestring_ascii if browser_compatible else encode_basestring,
        pretty=pretty,
    )
    writer.write(value, "\n" + "\t" * level if pretty else "")
    # A lone surrogate (half a character, legal in Java strings) has no UTF-8 form: Java writes '?' for it.
    return "".join(writer.pieces).encode("utf-8", "replace")


class _Writer:
    """Collects the pieces of one text. `newline` is the line break plus the indentation of the level, or empty."""

    __slots__ = ("pieces", "pretty", "quote_integer_keys", "text")

    def __init__(self, *, quote_integer_keys: bool, text: Callable[[str], str], pretty: bool) -> None:
        self.pieces: list[str] = []
        self.quote_integer_keys = quote_integer_keys
        self.text = text
        self.pretty = pretty

    def write(self, value: Any, newline: str) -> None:
        kind = type(value)
        if kind is str:
            self.pieces.append(self.text(value))
        elif kind is int:
            self.pieces.append(str(value))
        elif kind is bool:
            self.pieces.append("true" if value else "false")
        elif value is None:
            self.pieces.append("null")
        elif kind is dict:
            self._map(value, newline)
        elif kind is float:
            self.pieces.append(repr(value) if math.isfinite(value) else "null")
        else:
            self._other(value, newline)

    def _other(self, value: Any, newline: str) -> None:
        if isinstance(value, msgspec.Struct):
            self._struct(value, newline)
        elif isinstance(value, list | tuple):
            self._items("[]", [("", one) for one in value], newline)
        elif isinstance(value, set | frozenset):
            self._items("[]", [("", one) for one in sorted(value, key=_set_order)], newline)
        elif isinstance(value, bytes):
            self.pieces.append(f'"{b64encode(value).decode()}"')
        elif isinstance(value, Enum):
            self.write(value.value, newline)
        elif isinstance(value, dict):
            self._map(value, newline)
        else:
            raise TypeError(f"no JSON form for {type(value).__name__}")

    def _struct(self, value: msgspec.Struct, newline: str) -> None:
        members = [
            (name, member)
            for name, attribute in _members_of(type(value))
            if (member := getattr(value, attribute)) is not None
        ]
        self._items("{}", members, newline)

    def _map(self, value: dict[Any, Any], newline: str) -> None:
        if value and all(type(key) is int and type(member) is int for key, member in value.items()):
            self._numbers(value, newline)
            return
        present = [(key, member) for key, member in value.items() if member is not None]
        present.sort(key=_key_order)
        self._items("{}", [(self._key(key), member) for key, member in present], newline)

    def _numbers(self, value: dict[int, int], newline: str) -> None:
        """Queue id to offset: by far the most members of a large offset table, which is saved every 5 s."""
        inner = newline + "\t" if self.pretty else ""
        quote = '"' if self.quote_integer_keys else ""
        members = [f"{quote}{key}{quote}:{value[key]}" for key in sorted(value)]
        self.pieces.append(f"{{{inner}{f',{inner}'.join(members)}{newline}}}")

    def _items(self, brackets: str, items: list[tuple[str, Any]], newline: str) -> None:
        """Members, each with its name and colon, or values, each with an empty text."""
        inner = newline + "\t" if self.pretty else ""
        opening = brackets[0] + inner
        for key, value in items:
            self.pieces.append(opening)
            self.pieces.append(key)
            self.write(value, inner)
            opening = "," + inner
        self.pieces.append(newline + brackets[1] if items else brackets)

    def _key(self, key: Any) -> str:
        if isinstance(key, str):
            return self.text(key) + ":"
        if isinstance(key, int):
            return f'"{key}":' if self.quote_integer_keys else f"{key}:"
        if isinstance(key, MessageQueue):
            writer = _Writer(quote_integer_keys=False, text=self.text, pretty=False)
            writer.write(key, "")
            return "".join(writer.pieces) + ":"
        raise TypeError(f"no JSON key for {type(key).__name__}")


@cache
def _members_of(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    wire_names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return tuple((f'"{name}":', attribute) for name, attribute in sorted(wire_names))


def _key_order(member: tuple[Any, Any]) -> tuple[str, Any]:
    key = member[0]
    return type(key).__name__, key


def _set_order(value: Any) -> tuple[str, Any]:
    if isinstance(value, msgspec.Struct) and not isinstance(value, MessageQueue):
        return type(value).__name__, dumps(value)
    return type(value).__name__, value
