"""All requests of a program and its connections, whatever it used them for."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ..requests.logged_request import LoggedRequest
from ..requests.values import response_name
from .receives import PULLS
from .sends import NO_ANSWER, SENDS

EXPECTED: Final = frozenset(
    (
        "SUCCESS",
        "PULL_NOT_FOUND",
        "PULL_OFFSET_MOVED",
        "PULL_RETRY_IMMEDIATELY",
        "QUERY_NOT_FOUND",
        "TOPIC_NOT_EXIST",
        "MESSAGE_NOT_FOUND",
    )
)
"""Answers that are part of an ordinary day."""


def by_name(requests: Iterable[LoggedRequest]) -> dict[str, int]:
    """How many of each request, the most frequent first."""
    return dict(Counter(one.name for one in requests).most_common())


def refused(requests: Iterable[LoggedRequest]) -> dict[str, int]:
    """Requests other than sends that were refused or not answered, by name and answer. A pull that was not answered may
    be held, and does not count."""
    found: Counter[str] = Counter()
    for one in requests:
        if one.oneway or one.name in SENDS:
            continue
        if one.response is None and one.name in PULLS:
            continue
        answer = NO_ANSWER if one.response is None else response_name(one.response)
        if answer not in EXPECTED:
            found[f"{one.name}: {answer}"] += 1
    return dict(found.most_common())


def reconnects(requests: Iterable[LoggedRequest], programs: int) -> int:
    """Connections beyond the first one of each client to each broker, and of each program to the name servers.

    Connections to name servers do not say whose they are; clients that share none with the others of their program
    have one more.
    """
    owners: dict[tuple[str, str | None], str | None] = {}
    for one in requests:
        connection = one.peer, one.broker
        owners[connection] = one.client_id or owners.get(connection)
    to_brokers = Counter((owner, place[1]) for place, owner in owners.items() if place[1] is not None)
    to_name_servers = sum(broker is None for _, broker in owners)
    return sum(count - 1 for count in to_brokers.values()) + max(0, to_name_servers - programs)
