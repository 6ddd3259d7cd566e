"""Requests as lines of text: what a failed wait, an unused rule and the report of a failed test show."""

from collections.abc import Sequence

from .logged_request import LoggedRequest
from .matching import Match
from .request_log import RequestLog


def lines(requests: Sequence[LoggedRequest]) -> str:
    """One request a line, indented."""
    return "\n".join(f"  {request}" for request in requests)


def nearest(match: Match, requests: Sequence[LoggedRequest], count: int) -> list[LoggedRequest]:
    """The requests of which most words hold, the newest of equals; in the order of the log."""
    ranked = sorted(requests, key=lambda request: (match.nearness(request), request.id))
    return sorted(ranked[-count:], key=lambda request: request.id) if count else []


def last_requests(log: RequestLog, count: int) -> str:
    """The end of the log: what the report of a failed test carries. Empty if nothing was logged."""
    found = log.last(count)
    if not found:
        return ""
    left = log.dropped
    dropped = f"{left} older requests left the log, which was full\n" if left else ""
    return f"{dropped}{lines(found)}"
