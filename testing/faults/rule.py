"""One rule: which requests it means, how many of them it hits, and what it has hit so far.

A rule is asked on the server's loop, and read from any thread. `AnyRule` is also that of bytes (`network.py`) and of
routes (`routes.py`).
"""

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypedDict

import msgspec
from pocketmq.console.values import LoggedRequest as RequestValue
from pocketmq.protocol.requests.names import request_name
from pocketmq.protocol.rpc_numbers import FIRST_RPC, RPC_NUMBERS

from ..errors import WrongValueError
from ..requests.logged_request import LoggedRequest
from ..requests.matching import MATCH_WORDS, Match, MatchWords, NarrowWords, match_of
from ..requests.values import check_bool, check_int, check_number, check_words
from .effects import Effect

HITS: Final = 10_000
"""Hits that a rule remembers; it counts more."""
_HITS_IN_JSON: Final = 100
_HIT_BYTES_IN_JSON: Final = 256 * 1024


class AnyRule:
    """What one call of a method of `Faults` has added."""

    def __init__(
        self, rule_id: int, name: str, words: dict[str, Any], remove: "Callable[[AnyRule], None]"
    ) -> None:
        """`name` is the method, `words` what it was given by the names of the method."""
        self.id = rule_id
        self.name = name
        self._words = words
        self.hit_count = 0
        self._hits: deque[LoggedRequest] = deque(maxlen=HITS)
        self._remove = remove

    @property
    def hits(self) -> list[LoggedRequest]:
        """The requests that this rule hit, oldest first; of very many, the newest."""
        return list(self._hits)

    def hit(self, request: LoggedRequest) -> None:
        self.hit_count += 1
        self._hits.append(request)

    def remove(self) -> None:
        """The rule applies no more. What it holds back is still sent; connections that were half open are closed."""
        self._remove(self)

    def words(self) -> dict[str, Any]:
        """What it was given, by the names of the method."""
        return self._words

    def as_json(self) -> dict[str, Any]:
        """The rule with its hits."""
        return {"id": self.id, "effect": self.name, **self.words(), "hits": hits_as_json(self.hits)}

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.words().items())})"


def hits_as_json(hits: Sequence[LoggedRequest]) -> list[RequestValue]:
    """The newest hits, oldest first: at most 100, with 256 KiB of bodies, but one at least."""
    found: list[RequestValue] = []
    size = 0
    for request in reversed(hits):
        size += len(request.body)
        if found and (len(found) >= _HITS_IN_JSON or size > _HIT_BYTES_IN_JSON):
            break
        found.append(request.as_json())
    return found[::-1]


class UseWords(TypedDict, total=False):
    times: int | None
    after: int
    probability: float
    may_stay_unused: bool


class RuleWords(MatchWords, UseWords, total=False):
    """Match words, and how often a rule applies."""


class ControlWords(NarrowWords, UseWords, total=False):
    """The same without `code`, which `control` takes by position."""


USE_WORDS: Final = tuple(UseWords.__annotations__)
RULE_WORDS: Final = (*MATCH_WORDS, *USE_WORDS)


class Uses(msgspec.Struct, frozen=True):
    """How often a rule applies. `times` None: until it is removed; `probability` None: always."""

    times: int | None = 1
    after: int = 0
    probability: float | None = None
    may_stay_unused: bool = False


def words_of(function: str, words: dict[str, Any], *, others: tuple[str, ...] = ()) -> tuple[Match, Uses]:
    """The match and the uses of a rule's keywords; `others` are the names of the effect's own."""
    check_words(function, words, (*RULE_WORDS, *others))
    match = match_of(function, {name: value for name, value in words.items() if name in MATCH_WORDS})
    times, chance = words.get("times", 1), words.get("probability")
    if times is not None:
        times = check_int("times", times, least=1)
    if chance is not None:
        chance = check_number("probability", chance, above=True, most=1.0)
    after = check_int("after", words.get("after", 0))
    return match, Uses(
        times, after, chance, check_bool("may_stay_unused", words.get("may_stay_unused", False))
    )


class Rule(AnyRule):
    """A match, an effect, and the uses that are left."""

    def __init__(
        self, rule_id: int, match: Match, uses: Uses, effect: Effect, remove: Callable[[AnyRule], None]
    ) -> None:
        if match.oneway and effect.needs_reply:
            raise WrongValueError(
                f"oneway must not be True for {effect.name}: a one-way request has no reply", [False]
            )
        if effect.why_no_rpc and (match.code or 0) >= FIRST_RPC:
            raise WrongValueError(
                f"code must not be {request_name(match.code or 0)} for {effect.name}: {effect.why_no_rpc}",
                ["a request of the remoting protocol"],
            )
        super().__init__(rule_id, effect.name, {}, remove)
        self.match = match
        self.uses = uses
        self.effect = effect
        self.errors: list[str] = []
        """What functions of the test raised; the test fails for it."""
        self._reached = 0

    def words(self) -> dict[str, Any]:
        uses = self.uses
        return {
            **self.match.as_json(),
            **self.effect.as_json(),
            "times": uses.times,
            "after": uses.after,
            **({} if uses.probability is None else {"probability": uses.probability}),
            "may_stay_unused": uses.may_stay_unused,
            "hit_count": self.hit_count,
        }

    @property
    def is_used_up(self) -> bool:
        return self.uses.times is not None and self.hit_count >= self.uses.times

    def can_match(self, code: int) -> bool:
        """Whether a request with that code might match."""
        return self.match.code in (None, code)

    def can_match_sends_like(self, request: LoggedRequest) -> bool:
        """Whether a send might be hit that has another queue and other properties, perhaps from a client that is not
        known yet."""
        match = self.match
        if self.is_used_up or (match.oneway is not None and match.oneway != request.oneway):
            return False
        return (
            self.can_match(request.code)
            and match.topic in (None, request.topic)
            and match.group in (None, request.group)
            and match.broker in (None, request.broker)
        )

    def _hits_oneway(self, code: int) -> bool:
        """Whether a request without a reply can be hit. What a client sends on its telemetry stream is answered there
        by another message, so it can be late; a rule must name it."""
        if not self.effect.needs_reply:
            return True
        return self.effect.hits_telemetry and code == self.match.code == RPC_NUMBERS["Telemetry"]

    def try_use(self, request: LoggedRequest, random: Random) -> bool:
        """Use it for this request, if it matches and a use is left. Counts."""
        if self.is_used_up or (
            request.oneway and not request.to_client and not self._hits_oneway(request.code)
        ):
            return False
        if self.effect.why_no_rpc and request.code >= FIRST_RPC and not request.to_client:
            return False
        if request.to_client and (self.match.code is None or not self.effect.hits_our_requests):
            return False
        try:
            if not self.match.holds(request):
                return False
        except Exception as error:
            self.fail("where", error)
            return False
        self._reached += 1
        if self._reached <= self.uses.after:
            return False
        if self.uses.probability is not None and random.random() >= self.uses.probability:
            return False
        self.hit(request)
        return True

    def fail(self, what: str, error: BaseException) -> None:
        """Note that a function of the test raised."""
        if len(self.errors) < _ERRORS:
            self.errors.append(f"{what} raised {type(error).__name__}: {error}")

    @property
    def is_unused(self) -> bool:
        """Whether the test must fail because the rule was not used up; with `times=None`, because it was never hit."""
        uses = self.uses
        if uses.may_stay_unused or uses.probability is not None:
            return False
        return self.hit_count == 0 if uses.times is None else self.hit_count < uses.times

    def __str__(self) -> str:
        words = [str(self.match)] if self.match != Match() else []
        words += [f"{name}={value}" for name, value in self.effect.as_json().items()]
        if self.uses.times != 1:
            words.append(f"times={self.uses.times}")
        if self.uses.after:
            words.append(f"after={self.uses.after}")
        if self.uses.probability is not None:
            words.append(f"probability={self.uses.probability:g}")
        return f"{self.effect.name}({', '.join(words)})"

    def __repr__(self) -> str:
        return f"<rule {self.id} {self}, {self.hit_count} hits>"


_ERRORS: Final = 20
