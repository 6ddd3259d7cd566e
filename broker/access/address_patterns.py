"""Addresses that need no key, as plain_acl.yml of 4.9 writes them.

    192.168.0.7     that address                        10.0.0.{1,2,3}   any of these in the last place
    192.168.0.*     any number in that place            1.2.3.4,1.2.3.5  any of these
    192.168.5-9.*   any of these numbers in that place  *                everybody; nothing: nobody

IPv6 addresses the same, with `:` between their eight groups. Mirrors `RemoteAddressStrategyFactory`.
"""

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

Matches = Callable[[str], bool]
"""Called with a peer's address, without its port."""

_EVERYBODY: Final = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})
_Range = tuple[int, int]


class PatternError(ValueError):
    """Text that is no pattern of addresses."""


def parse_pattern(text: str | None) -> Matches:
    """What the pattern matches. Raises `PatternError`."""
    text = (text or "").strip()
    if not text:
        return lambda address: False
    if text in _EVERYBODY:
        return lambda address: True
    if text.endswith("}"):
        head, brace, tails = text[:-1].partition("{")
        if not brace or not head or head[-1] not in ".:":
            raise PatternError(
                f"MultipleRemoteAddressStrategy netaddress examine scope Exception netaddress: {text}"
            )
        parts = [head + tail.strip() for tail in tails.split(",")]
    else:
        parts = [part.strip() for part in text.split(",")]
    patterns = [_parts_of(part) for part in parts]
    return lambda address: any(_matches(pattern, address) for pattern in patterns)


def _parts_of(text: str) -> tuple[_Range, ...]:
    """The numbers allowed in each place."""
    is_6 = ":" in text
    if is_6 and "*" not in text and "-" not in text:
        text = _exploded(text)
    places = text.split(":" if is_6 else ".")
    if len(places) != (8 if is_6 else 4):
        raise PatternError(f"{text} is no address")
    return tuple(_range_of(place, 16 if is_6 else 10) for place in places)


def _exploded(text: str) -> str:
    try:
        return IPv6Address(text).exploded
    except ValueError as error:
        raise PatternError(f"{text} is no address") from error


def _range_of(place: str, radix: int) -> _Range:
    most = 0xFFFF if radix == 16 else 255
    if place == "*":
        return 0, most
    low, minus, high = place.partition("-")
    try:
        first = int(low, radix)
        last = int(high, radix) if minus else first
    except ValueError as error:
        raise PatternError(f"{place} is no number of an address") from error
    if not 0 <= first <= last <= most:
        raise PatternError(
            f"RangeRemoteAddressStrategy netaddress examine scope Exception start is {first} , end is {last}"
        )
    return first, last


def _matches(pattern: tuple[_Range, ...], address: str) -> bool:
    try:
        asked = ip_address(address.strip("[]").partition("%")[0].removeprefix("::ffff:"))
    except ValueError:
        return False
    if isinstance(asked, IPv6Address):
        numbers = [int(group, 16) for group in asked.exploded.split(":")]
    else:
        numbers = list(asked.packed)
    return len(numbers) == len(pattern) and all(
        low <= number <= high for number, (low, high) in zip(numbers, pattern, strict=True)
    )
