"""Languages and version numbers that a peer declares in its command header.

Mirrors `LanguageCode` and `MQVersion`: a language travels as a name in the JSON header and as one byte in the
binary one; a version is the position in the official list of releases.
"""

import re
from functools import cache
from typing import Final

_LANGUAGES: Final = "JAVA CPP DOTNET PYTHON DELPHI ERLANG RUBY OTHER HTTP GO PHP OMS RUST NODE_JS"
LANGUAGES: Final = tuple(_LANGUAGES.split())
"""Names in the order of their byte codes."""

LANGUAGE_CODES: Final = {name: code for code, name in enumerate(LANGUAGES)}

V3_0_7_SNAPSHOT: Final = 28
V3_0_11: Final = 37
V3_1_8_SNAPSHOT: Final = 62
V3_4_9: Final = 121
V4_9_3: Final = 399
V4_9_4: Final = 401
V4_9_7: Final = 407
V4_9_8: Final = 409
V5_0_0: Final = 413
V5_5_0: Final = 513
HIGHER_VERSION: Final = 612

_FIRST_VERSIONS: Final = (
    "SNAPSHOT ALPHA1 BETA1 BETA2 BETA3 BETA4 BETA5 BETA6_SNAPSHOT BETA6 BETA7_SNAPSHOT BETA7 BETA8_SNAPSHOT BETA8 "
    "BETA9_SNAPSHOT BETA9 FINAL"
)
"""Of V3_0_0: ordinals 0 to 15. From there on every release has two: SNAPSHOT and final."""


@cache
def version_names() -> tuple[str, ...]:
    """The official list of releases (MQVersion.Version). A peer declares its position in this list."""
    numbers = [f"V3_0_{patch}" for patch in range(1, 16)]
    numbers += [f"V3_{minor}_{patch}" for minor in (1, 2) for patch in range(10)]
    numbers += [f"V3_{minor}_{patch}" for minor in range(3, 10) for patch in range(1, 10)]
    numbers += [f"V{major}_{minor}_{patch}" for major in (4, 5) for minor in range(10) for patch in range(10)]
    later = [name for number in numbers for name in (f"{number}_SNAPSHOT", number)]
    first = [f"V3_0_0_{name}" for name in _FIRST_VERSIONS.split()]
    return (*first, *later, "HIGHER_VERSION")


def version_name(ordinal: int) -> str:
    """`V5_5_0` for 513; the last name for a number beyond the list (official MQVersion.getVersionDesc)."""
    names = version_names()
    return names[max(0, min(ordinal, len(names) - 1))]


def language_name(code: int) -> str | None:
    """The name of a language byte; `None` for a byte that is not in the official list."""
    return LANGUAGES[code] if 0 <= code < len(LANGUAGES) else None


_NUMBER: Final = re.compile("-?[0-9]{1,9}")
_LONGEST: Final = 1 + max(map(len, LANGUAGE_CODES))
"""Enough to see that a text is longer than any name."""


def language_of(text: object) -> str | None:
    """The language of a JSON header: its name in any case, or its number, as the official reader accepts."""
    if isinstance(text, int):
        return language_name(text)
    if not isinstance(text, str):
        return None
    if _NUMBER.fullmatch(text):
        return language_name(int(text))
    name = text[:_LONGEST].upper()
    return name if name in LANGUAGE_CODES else None
