"""Java properties text, as broker.conf and the bodies of configuration requests are written.

    # comment        ! comment
    key=value        key : value        key value        key
    long=first \\
         second

Read by the rules of `java.util.Properties`, with one exception: bytes are read as UTF-8 if possible (Java reads every
byte as an ISO-8859-1 character). Text is written with escapes, so that both readers agree. The keys of a broker are in
`pocketmq.broker.config`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

_BLANK: Final = " \t\f"
_LINE_END: Final = re.compile("\r\n|\n|\r")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_HEX: Final = re.compile("[0-9a-fA-F]{4}")


class PropertiesError(ValueError):
    """Text that Java refuses: a `\\u` without four hex digits. The message names the line."""


class Property(msgspec.Struct, frozen=True):
    """One entry, and its first and last line (counted from 1)."""

    key: str
    value: str
    line: int
    last_line: int


def decode_text(data: bytes | bytearray | memoryview) -> str:
    """The text of a file or body."""
    content = bytes(data)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def parse_properties(text: str) -> list[Property]:
    """All entries in their order, repeated keys included (the last one wins). Raises PropertiesError."""
    return [
        Property(*_split(logical, line), line=line, last_line=last_line)
        for line, last_line, logical in _logical_lines(text)
    ]


def set_properties(text: str, values: Mapping[str, str]) -> str:
    """The text with these keys changed in place, or added at the end. Comments stay.

    Every entry of a repeated key is changed.
    """
    lines = _LINE_END.split(text)
    missing = dict(values)
    for entry in reversed(parse_properties(text)):
        if entry.key in values:
            lines[entry.line - 1 : entry.last_line] = [_written(entry.key, values[entry.key])]
            missing.pop(entry.key, None)
    if lines and not lines[-1].strip(_BLANK):
        lines.pop()
    if missing and lines and _is_continued(lines[-1]):
        lines.append("")  # otherwise it would continue into the next line
    lines += [_written(key, value) for key, value in missing.items()]
    return "".join(line + "\n" for line in lines)


def _logical_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """(first line, last line, content without continuation marks) of each line that holds an entry."""
    lines = enumerate(_LINE_END.split(text), 1)
    parts: list[str]
    for number, line in lines:
        content = line.lstrip(_BLANK)
        if not content or content[0] in "#!":
            continue
        if content == "\\":  # a lone mark continues nothing
            continue
        last, parts = number, []
        while _is_continued(content):
            parts.append(content[:-1])
            last, following = next(lines, (last, ""))
            content = following.lstrip(_BLANK)
        yield number, last, "".join(parts) + content


def _is_continued(content: str) -> bool:
    return (len(content) - len(content.rstrip("\\"))) % 2 == 1


def _split(content: str, line: int) -> tuple[str, str]:
    end = 0
    while end < len(content) and content[end] not in "=:" + _BLANK:
        end += 2 if content[end] == "\\" else 1
    rest = content[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return _unescape(content[:end], line), _unescape(rest, line)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char != "\\":
            out.append(char)
            continue
        escape = text[position : position + 1]
        position += 1
        if escape == "u":
            digits = _HEX.match(text, position)
            if digits is None:
                raise PropertiesError(f"line {line}: \\u is not followed by four hex digits")
            out.append(chr(int(digits[0], 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escape, escape))
    return _join_surrogates("".join(out))


def _join_surrogates(text: str) -> str:
    """Two escapes may make one character; half of a pair becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(key: str, value: str) -> str:
    escaped = "".join(map(_escape, value))
    return f"{key}=\\{escaped}" if escaped.startswith(" ") else f"{key}={escaped}"


def _escape(char: str) -> str:
    if char in _ESCAPED:
        return _ESCAPED[char]
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
