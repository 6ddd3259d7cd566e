"""Reads numbers from the properties of a message, which any client may have written.

Only numbers in the range of a Java `int` or `long` are read; Python's `int` raises for texts of more than 4,300 digits.
"""

from collections.abc import Mapping
from typing import Final

INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1
_LONGEST: Final = len(str(LONG_MIN))


def parse_number(text: str, least: int = LONG_MIN, most: int = LONG_MAX) -> int | None:
    """The number in a text, as Java's `parseInt` and `parseLong` read it; `None` for any other text or outside these
    bounds."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if len(text) > _LONGEST or not digits.isdecimal():
        return None
    number = int(text)
    return number if least <= number <= most else None


def number_property(
    properties: Mapping[str, str], name: str, least: int = LONG_MIN, most: int = LONG_MAX
) -> int | None:
    """A property as a number within these bounds; `None` if it is missing or anything else."""
    return parse_number(properties.get(name, ""), least, most)
