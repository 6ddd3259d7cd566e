"""Which requests are meant: the match words of rules and of the request log.

Words that are not given match everything; all given ones must hold. Names are compared as they are on the wire.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypedDict

import msgspec
from pocketmq.protocol.requests.names import request_name

from ..errors import WrongValueError
from .logged_request import LoggedRequest
from .values import check_bool, check_int, check_text, check_words, request_code, response_code, response_name

Where = Callable[[LoggedRequest], object]


class NarrowWords(TypedDict, total=False):
    """The match words without the code."""

    topic: str
    queue_id: int
    group: str
    client_id: str
    broker: str
    oneway: bool
    where: Where


class MatchWords(NarrowWords, total=False):
    """The match words of a rule."""

    code: str | int


class FindWords(MatchWords, total=False):
    """The match words of the request log."""

    response: str | int


MATCH_WORDS: Final = ("code", *NarrowWords.__annotations__)
FIND_WORDS: Final = (*MATCH_WORDS, "response")


class Match(msgspec.Struct, frozen=True):
    """Match words, checked. `None` matches everything."""

    code: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    group: str | None = None
    client_id: str | None = None
    broker: str | None = None
    oneway: bool | None = None
    where: Where | None = None
    response: int | None = None
    compared: tuple[tuple[str, Any], ...] = ()
    """Name and value of the words that are compared and given."""

    def holds(self, request: LoggedRequest) -> bool:
        """Whether every word holds. What `where` raises is passed on."""
        return self.holds_before_reply(request) and (
            self.response is None or request.response == self.response
        )

    def holds_before_reply(self, request: LoggedRequest) -> bool:
        """Whether every word but `response` holds."""
        if self.code is not None and request.code != self.code:
            return False
        for name, wanted in self.compared:
            if getattr(request, name) != wanted:
                return False
        return self.where is None or bool(self.where(request))

    def nearness(self, request: LoggedRequest) -> int:
        """How many words hold; the code counts more than any other."""
        points = 0
        for name, wanted in self.compared:
            points += getattr(request, name) == wanted
        points += self.response is not None and request.response == self.response
        return points + (10 if self.code is not None and request.code == self.code else 0)

    def __str__(self) -> str:
        words = [f"code={request_name(self.code)}"] if self.code is not None else []
        words += [f"{name}={value}" for name, value in self.compared]
        if self.where is not None:
            words.append(f"where={getattr(self.where, '__name__', self.where)}")
        if self.response is not None:
            words.append(f"response={response_name(self.response)}")
        return " ".join(words) or "any request"

    def as_json(self) -> dict[str, Any]:
        """The words that are given, but for `where`; codes as names."""
        words: dict[str, Any] = {} if self.code is None else {"code": request_name(self.code)}
        return words | dict(self.compared)


def nearest(match: Match, requests: Iterable[LoggedRequest], count: int) -> list[LoggedRequest]:
    """The requests of which most words hold, the newest of equals; in the order of the log."""
    ranked = sorted(requests, key=lambda request: (match.nearness(request), request.id))
    return sorted(ranked[-count:], key=lambda request: request.id)


def lines(requests: Iterable[LoggedRequest]) -> str:
    """Requests for a report: one a line, indented."""
    return "\n".join(f"  {request}" for request in requests)


_COMPARED: Final = ("topic", "queue_id", "group", "client_id", "broker", "oneway")


def match_of(function: str, words: dict[str, Any], *, allowed: tuple[str, ...] = MATCH_WORDS) -> Match:
    """The match of keywords. TypeError for an unknown one, `WrongValueError` for a wrong value; None is "not given"."""
    check_words(function, words, allowed)
    given = {name: _checked(name, value) for name, value in words.items() if value is not None}
    return Match(**given, compared=tuple((name, given[name]) for name in _COMPARED if name in given))


def _checked(name: str, value: object) -> Any:
    if name == "code":
        return request_code(value)
    if name == "response":
        return response_code(name, value)
    if name == "queue_id":
        return check_int(name, value)
    if name == "oneway":
        return check_bool(name, value)
    if name == "where":
        if not callable(value):
            raise WrongValueError(f"where must be a function of the request, got {value!r}", ["a function"])
        return value
    return check_text(name, value)
