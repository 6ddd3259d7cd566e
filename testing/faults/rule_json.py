"""Rules from and to JSON, with the names that the methods of `Faults` have. Behind `/api/faults`.

    {"effect": "refuse", "code": "SEND_MESSAGE_V2", "topic": "orders", "response": "SYSTEM_BUSY", "times": 2}

`control` and `where` take functions: they are Python only. `body` is text; `body_base64` may stand in its place.
"""

import base64
import binascii
import inspect
from functools import cache
from typing import Any, Final, get_args, get_type_hints

from pocketmq.console.values import NewFault, Words
from pocketmq.protocol.requests.names import request_codes
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import WrongValueError
from ..requests.matching import MATCH_WORDS
from ..requests.values import check_choice
from .faults import Faults
from .rule import USE_WORDS, AnyRule

_BY_RULE: Final = ("refuse", "silence", "disconnect", "delay", "alter", "duplicate")
EFFECTS: Final = (*_BY_RULE, "network", "hide_broker", "route", "name_servers_disagree")
_JSON_MATCH_WORDS: Final = tuple(word for word in MATCH_WORDS if word != "where")


def add_rule(faults: Faults, words: object) -> AnyRule:
    """Add the rule of a JSON object. `WrongValueError` (with `allowed`) for a wrong or missing value or an unknown
    name; nothing is added then."""
    if not isinstance(words, dict):
        raise WrongValueError(f"a rule must be a JSON object, got {words!r:.100}", ["an object"])
    given = {name: value for name, value in words.items() if value is not None or name == "times"}
    effect = check_choice("effect", given.pop("effect", None), EFFECTS)
    allowed = words_of_effect(effect)
    for name in given:
        if name not in allowed:
            raise WrongValueError(f"{effect} has no {name!r}; allowed are {', '.join(allowed)}", allowed)
    for name, one in _parameters(effect).items():
        if one.default is inspect.Parameter.empty and name not in given:
            raise WrongValueError(f"{effect} needs {name}", [name])
    if "body_base64" in given:
        _read_body(given)
    add = getattr(faults, effect)
    rule: AnyRule = add(**given)
    return rule


def words_of_effect(effect: str) -> list[str]:
    """The names that a rule with this effect may have in JSON."""
    names = [name for name in _parameters(effect) if name != "function"]
    if effect == "alter":
        names.append("body_base64")
    return names + ([*_JSON_MATCH_WORDS, *USE_WORDS] if effect in _BY_RULE else [])


@cache
def known_words() -> Words:
    """The names that a rule may have, and what each of its words is."""
    kinds = {name: _kind(kind) for name, kind in get_type_hints(NewFault).items()}
    return Words(
        codes=sorted(request_codes() | RPC_NUMBERS),
        responses=list(ResponseCode.__members__),
        effects={effect: words_of_effect(effect) for effect in EFFECTS},
        kinds={name: kind for name, kind in kinds.items() if name != "effect"},
    )


def _kind(kind: object) -> str:
    kinds = set(get_args(kind))
    if str in kinds:
        return "json" if int in kinds else "text"
    return "bool" if bool in kinds else "number" if kinds & {int, float} else "json"


def _parameters(effect: str) -> dict[str, inspect.Parameter]:
    """The method's own, without `self` and the words that all rules have."""
    parameters = inspect.signature(getattr(Faults, effect)).parameters
    return {
        name: one
        for name, one in parameters.items()
        if name != "self" and one.kind is not inspect.Parameter.VAR_KEYWORD
    }


def _read_body(given: dict[str, Any]) -> None:
    encoded = given.pop("body_base64")
    if "body" in given:
        raise WrongValueError("give body or body_base64, not both", ["body", "body_base64"])
    try:
        given["body"] = base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise WrongValueError(f"body_base64 must be base64, got {encoded!r:.100}", ["base64"]) from error
