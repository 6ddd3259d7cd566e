"""Numbers as Java reads them from text: `Integer.valueOf`, `Long.valueOf` and `Double.valueOf`.

Python's own readers accept more (`1_000`, blanks, `inf`) and less (`1d`, hexadecimal fractions). Numbers of request
headers are read in `protocol/wire/schema.py`, those of configuration files in `config/keys.py`.
"""

import re
from typing import Final


class EvaluationError(Exception):
    """The expression has no value for this message; the message does not match."""


_INT_LIMIT: Final = 1 << 31
_LONG_LIMIT: Final = 1 << 63
_LONGEST: Final = 4000
"""Python reads this many digits without an error; all but 19 of them must be zeros."""
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?", re.ASCII)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?", re.ASCII
)
_BLANKS: Final = "".join(map(chr, range(0x21)))
_SPECIAL: Final = {"Infinity": float("inf"), "NaN": float("inf")}
"""NaN sorts after all numbers. Only a comparison with infinity could tell the two apart, and no literal is infinite."""


def read_int(text: str) -> int:
    """Java's `Integer.valueOf`. Raises `EvaluationError`."""
    return _whole(text, _INT_LIMIT)


def read_long(text: str) -> int:
    """Java's `Long.valueOf`. Raises `EvaluationError`."""
    return _whole(text, _LONG_LIMIT)


def _whole(text: str, limit: int) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits.isdecimal() and len(digits) <= _LONGEST:
        value = int(text)
        if -limit <= value < limit:
            return value
    raise EvaluationError(f"{text[:40]!r} is not a whole number of its size")


def read_double(text: str) -> float:
    """Java's `Double.valueOf`. Raises `EvaluationError`."""
    text = text.strip(_BLANKS)
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if _HEXADECIMAL.fullmatch(text):
        return _hexadecimal(text)
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    special = _SPECIAL.get(unsigned)
    if special is None:
        raise EvaluationError(f"{text[:40]!r} is not a number")
    return -special if text == "-Infinity" else special


def _hexadecimal(text: str) -> float:
    exponent = text.lower().index("p")
    try:
        return float.fromhex(text[:exponent] + text[exponent:].rstrip("fFdD"))
    except OverflowError:
        return float("-inf" if text[0] == "-" else "inf")
