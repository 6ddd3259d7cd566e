"""What is installed here, with versions and licences: `make licences`.

Each distribution states its licence in one of three ways: a licence expression (SPDX), a classifier, or a text. The
tests compare them with `ALLOWED`.
"""

import importlib.metadata
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

ALLOWED: Final = frozenset(
    (
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0"),
        *("PSF-2.0", "Unlicense", "Zlib"),
    )
)
"""Each allows use in a program of another licence. MPL-2.0 asks for changes of its own files, which are not made."""
MEANT: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""Names in classifiers and texts."""
NOT_LICENCES: Final = frozenset(("DFSG approved", "OSI Approved"))


class Installed(NamedTuple):
    name: str
    version: str
    licence: str
    """An expression; empty if none is stated."""


def installed() -> list[Installed]:
    """All distributions of this environment, by name."""
    found = [_stated(one) for one in importlib.metadata.distributions()]
    return sorted(found, key=lambda one: one.name.lower())


def _stated(one: importlib.metadata.Distribution) -> Installed:
    data = one.metadata
    classified = [
        MEANT.get(name, name)
        for text in data.get_all("Classifier") or ()
        if text.startswith("License") and (name := text.rpartition(" :: ")[2]) not in NOT_LICENCES
    ]
    text = str(data["License"] or "").partition("\n")[0].strip()
    licence = data["License-Expression"] or " AND ".join(classified) or MEANT.get(text, text)
    return Installed(data["Name"], one.version, licence)


def is_allowed(expression: str) -> bool:
    """Whether an expression of AND, OR and parentheses can be kept with licences of the list."""

    def in_python(word: re.Match[str]) -> str:
        return {"AND": "and", "OR": "or"}.get(word[0]) or str(word[0] in ALLOWED)

    try:
        return bool(eval(re.sub(r"[^\s()]+", in_python, expression)))  # True, False, and, or, parentheses
    except (SyntaxError, TypeError):
        return False


def lines() -> Iterator[str]:
    for one in installed():
        mark = "" if is_allowed(one.licence) else "   not on the list"
        yield f"{one.name:28} {one.version:16} {one.licence or 'none stated'}{mark}"


if __name__ == "__main__":
    print("\n".join(lines()))
