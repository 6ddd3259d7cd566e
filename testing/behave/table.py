"""Clients side by side: for each scenario one table, with a row for each client or for each figure.

A figure that is empty or 0 for every client is left out.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from .measures import Measures
from .run import Played, Report


class Figure(NamedTuple):
    """One figure, as people read it."""

    heading: str
    value: Callable[[Measures], Any]


def _seconds(name: str) -> Callable[[Measures], str]:
    def value(measures: Measures) -> str:
        found = getattr(measures, name)
        return "" if found is None else f"{found / 1000:.1f} s" if found >= 1000 else f"{found} ms"

    return value


def _counts(name: str) -> Callable[[Measures], str]:
    def value(measures: Measures) -> str:
        return ", ".join(f"{count} {what}" for what, count in getattr(measures, name).items())

    return value


def _count(name: str) -> Callable[[Measures], Any]:
    def value(measures: Measures) -> Any:
        found = getattr(measures, name)
        return "" if found is None else found

    return value


FIGURES: Final = (
    Figure("first send", _seconds("first_send_ms")),
    Figure("sent", _count("sent")),
    Figure("sent to, in trouble", _counts("sent_to")),
    Figure("sends refused", _counts("sends_refused")),
    Figure("tried again", _counts("sends_retried")),
    Figure("again after", _seconds("retry_after_ms")),
    Figure("given up", _count("given_up")),
    Figure("stored twice", _count("stored_twice")),
    Figure("longest gap", _seconds("longest_send_gap_ms")),
    Figure("first message", _seconds("first_message_ms")),
    Figure("delivered", _count("delivered")),
    Figure("delivered again after a failure", _count("redelivered")),
    Figure("longest wait", _seconds("longest_wait_ms")),
    Figure("after the mend", _seconds("recovered_ms")),
    Figure("rebalance", _seconds("rebalance_ms")),
    Figure("lost", _count("lost")),
    Figure("duplicated", _count("duplicated")),
    Figure("out of order", _count("out_of_order")),
    Figure("offset moved back", _count("offset_moved_back")),
    Figure("unread", _count("unread")),
    Figure("other refusals", _counts("refused")),
    Figure("reconnects", _count("reconnects")),
    Figure("requests per message", _count("requests_per_message")),
    Figure("end after", _seconds("end_ms")),
    Figure("killed", _count("killed")),
    Figure("printed", _counts("said")),
    Figure("not reached", lambda measures: "; ".join(measures.not_reached)),
)


def scenarios_of(reports: Sequence[Report]) -> list[str]:
    """The scenarios of all reports, each once."""
    return list(dict.fromkeys(name for report in reports for name in report.scenarios))


def played_in(reports: Sequence[Report], name: str) -> list[tuple[str, Played]]:
    """The clients that played a scenario, and what they did."""
    return [(one.client, one.scenarios[name]) for one in reports if name in one.scenarios]
