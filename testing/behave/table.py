"""Clients side by side: for each scenario one table, with a row for each client or for each figure.

A figure that is empty or 0 for every client is left out.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from .measures import Measures
from .run import Played, Report


class Figure(NamedTuple):
    """One figure, as people read it."""

    heading: str
    name: str
    """In `Measures`."""

    def value(self, measures: Measures) -> Any:
        found = getattr(measures, self.name)
        if found is None:
            return ""
        if isinstance(found, dict):
            return ", ".join(f"{count} {what}" for what, count in found.items())
        if isinstance(found, list):
            return "; ".join(found)
        if self.name.endswith("_ms"):
            return f"{found / 1000:.1f} s" if found >= 1000 else f"{found} ms"
        return found


FIGURES: Final = (
    Figure("first send", "first_send_ms"),
    Figure("sent", "sent"),
    Figure("sent to, in trouble", "sent_to"),
    Figure("sends refused", "sends_refused"),
    Figure("tried again", "sends_retried"),
    Figure("again after", "retry_after_ms"),
    Figure("given up", "given_up"),
    Figure("stored twice", "stored_twice"),
    Figure("longest gap", "longest_send_gap_ms"),
    Figure("first message", "first_message_ms"),
    Figure("delivered", "delivered"),
    Figure("delivered again after a failure", "redelivered"),
    Figure("longest wait", "longest_wait_ms"),
    Figure("after the mend", "recovered_ms"),
    Figure("rebalance", "rebalance_ms"),
    Figure("lost", "lost"),
    Figure("duplicated", "duplicated"),
    Figure("out of order", "out_of_order"),
    Figure("offset moved back", "offset_moved_back"),
    Figure("unread", "unread"),
    Figure("other refusals", "refused"),
    Figure("reconnects", "reconnects"),
    Figure("requests per message", "requests_per_message"),
    Figure("end after", "end_ms"),
    Figure("killed", "killed"),
    Figure("printed", "said"),
    Figure("not reached", "not_reached"),
)


def scenarios_of(reports: Sequence[Report]) -> list[str]:
    """The scenarios of all reports, each once."""
    return list(dict.fromkeys(name for report in reports for name in report.scenarios))


def played_in(reports: Sequence[Report], name: str) -> list[tuple[str, Played]]:
    """The clients that played a scenario, and what they did."""
    return [(one.client, one.scenarios[name]) for one in reports if name in one.scenarios]
