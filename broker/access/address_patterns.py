"""Address patterns of plain_acl.yml (4.9): clients at a matching address need no key.

    192.168.0.7     that address                        10.0.0.{1,2,3}   one of these as the last number
    192.168.0.*     any last number                     1.2.3.4,1.2.3.5  one of these addresses
    192.168.5-9.*   third number from 5 to 9            *                every address
                                                        empty text       no address

IPv6 addresses likewise, with `:` between their eight groups. Mirrors `RemoteAddressStrategyFactory`.
"""

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

Matches = Callable[[str], bool]
"""Called with a peer's address, without its port."""

_EVERY_ADDRESS: Final = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})
_Range = tuple[int, int]


class PatternError(ValueError):
    """A text that is not an address pattern."""


def parse_pattern(text: str | None) -> Matches:
    """A function that says whether an address matches. Raises `PatternError`."""
    text = (text or "").strip()
    if not text:
        return lambda address: False
    if text in _EVERY_ADDRESS:
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
    is_6 = ":" in text
    if is_6 and "*" not in text and "-" not in text:
        try:
            text = IPv6Address(text).exploded
        except ValueError as error:
            raise PatternError(f"{text} is not an IP address") from error
    numbers = text.split(":" if is_6 else ".")
    if len(numbers) != (8 if is_6 else 4):
        raise PatternError(f"{text} is not an IP address")
    return tuple(_range_of(number, 16 if is_6 else 10) for number in numbers)


def _range_of(text: str, radix: int) -> _Range:
    most = 0xFFFF if radix == 16 else 255
    if text == "*":
        return 0, most
    low, minus, high = text.partition("-")
    try:
        first = int(low, radix)
        last = int(high, radix) if minus else first
    except ValueError as error:
        raise PatternError(f"{text} is not a number of an IP address") from error
    if not 0 <= first <= last <= most:
        raise PatternError(
            f"RangeRemoteAddressStrategy netaddress examine scope Exception start is {first} , end is {last}"
        )
    return first, last


def _matches(pattern: tuple[_Range, ...], address: str) -> bool:
    try:
        parsed = ip_address(address.strip("[]").partition("%")[0].removeprefix("::ffff:"))
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        numbers = [int(group, 16) for group in parsed.exploded.split(":")]
    else:
        numbers = list(parsed.packed)
    return len(numbers) == len(pattern) and all(
        low <= number <= high for number, (low, high) in zip(numbers, pattern, strict=True)
    )
