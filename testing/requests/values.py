"""Values that a test or an HTTP client gives: checked, or refused by a `WrongValueError` that names what is allowed."""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from pocketmq.protocol.requests.names import request_codes
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import WrongValueError

_NEAR: Final = 5
MAX_CODE: Final = (1 << 31) - 1
FIRST_GRPC_CODE: Final = 20_000
"""Codes of gRPC replies (`Code`) are from here on; response codes of remoting are below."""


def request_code(value: object) -> int:
    """The number of a request: an official name, or the number itself, also one that no request has."""
    names = request_codes()
    if isinstance(value, str) and value not in names:
        names |= RPC_NUMBERS
    return _code("code", value, names, "a request")


def response_code(name: str, value: object) -> int:
    """The number of a response code: an official name, or the number itself."""
    names = {code: int(member) for code, member in ResponseCode.__members__.items()}
    if isinstance(value, str) and value not in names:
        names |= {code: int(member) for code, member in _grpc_codes().items()}
    return _code(name, value, names, "a reply")


def response_name(code: int) -> str:
    try:
        return ResponseCode(code).name
    except ValueError:
        if code < FIRST_GRPC_CODE:
            return str(code)
        names = {int(member): name for name, member in _grpc_codes().items()}
        return names.get(code, str(code))


@cache
def _grpc_codes() -> Mapping[str, int]:
    from pocketmq.grpc_endpoint.messages.enumerations import Code

    return Code.__members__


def _code(name: str, value: object, names: dict[str, int], of_what: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_CODE:
        return int(value)
    if isinstance(value, str) and value in names:
        return names[value]
    allowed = sorted(names, key=names.__getitem__)
    text = f"{name} must be the official name or the number of {of_what}, got {value!r}"
    near = difflib.get_close_matches(str(value).upper(), allowed, _NEAR, 0.5)
    raise WrongValueError(f"{text}; did you mean {', '.join(near)}?" if near else text, allowed)


def check_text(name: str, value: object) -> str:
    """A text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise WrongValueError(f"{name} must be a text that is not empty, got {value!r}", ["a text"])


def check_bool(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise WrongValueError(f"{name} must be True or False, got {value!r}", [True, False])


def check_int(name: str, value: object, *, least: int = 0, most: int | None = None) -> int:
    """A whole number within bounds."""
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and value >= least
        and (most is None or value <= most)
    ):
        return value
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise WrongValueError(
        f"{name} must be a whole number {bounds}, got {value!r}", [f"a whole number {bounds}"]
    )


def check_number(name: str, value: object, *, above: bool = False, most: float = math.inf) -> float:
    """A number of at least 0, or above it, and at most `most`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        is_enough = value > 0 if above else value >= 0
        if is_enough and value <= most:
            return float(value)
    bounds = "above 0" if above else "of at least 0"
    if most < math.inf:
        bounds += f" and at most {most:g}"
    raise WrongValueError(f"{name} must be a number {bounds}, got {value!r}", [f"a number {bounds}"])


def check_choice(name: str, value: object, allowed: Sequence[str]) -> str:
    if isinstance(value, str) and value in allowed:
        return value
    raise WrongValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}", list(allowed))


def check_words(function: str, given: Iterable[str], allowed: Sequence[str]) -> None:
    """Raises TypeError, as Python does, for a keyword that does not exist."""
    for word in given:
        if word not in allowed:
            raise TypeError(f"{function}() has no keyword {word!r}; allowed are {', '.join(allowed)}")


def check_names(name: str, value: object) -> list[str]:
    """A list of texts, none twice."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise WrongValueError(f"{name} must be a list of names, got {value!r}", ["a list of names"])
    found: list[Any] = list(value)
    for one in found:
        check_text(f"each of {name}", one)
    if len(set(found)) != len(found):
        raise WrongValueError(f"{name} must not name one twice, got {found!r}", ["a list of different names"])
    return found
