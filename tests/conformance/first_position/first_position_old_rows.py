"""The first-position table for older topics: no longer in memory, or partly deleted.

The first go with `accessMessageInMemoryMaxRatio=0`. 5.5.0 on Java 17 never finds a message cold, whatever the ratio.
The others need a broker whose first log file was deleted: `fill_history` at its start, then the deletion. Form and
helpers are those of `first_position_rows.py`.
"""

from collections.abc import Iterable

from conformance.first_position.first_position_rows import (
    NO_DEFAULT,
    QUEUES,
    UNKNOWN,
    ZERO,
    Answer,
    Place,
    Row,
    reset,
    rows_of,
)
from conformance.servers.raw_client import RawClient

COLD_ROWS: dict[str, Row] = {}
"""Asked while the broker believes that nothing is in memory."""
HISTORY_ROWS: dict[str, Row] = {}
"""Asked after the first log file was deleted."""
TRIMMED = "trimmed"
"""The topic whose first messages went with it; half of them are left."""
GONE = "gone"
"""The topic of which nothing is left."""

cold_row, history_row = rows_of(COLD_ROWS), rows_of(HISTORY_ROWS)


@cold_row(UNKNOWN, ZERO)
def cold_topic(place: Place) -> None:
    place.make_topic(messages=5)


@cold_row(Answer(3))
def cold_but_stored(place: Place) -> None:
    place.make_topic(messages=5)
    place.commit(3)


@cold_row(UNKNOWN, ZERO)
def cold_and_minus_one_stored(place: Place) -> None:
    place.make_topic(messages=5)
    place.commit(-1)


@cold_row(ZERO, UNKNOWN)
def empty_queue_where_all_is_cold(place: Place) -> None:
    place.make_topic()


@cold_row(UNKNOWN, Answer(2))
def cold_with_a_reset_pending(place: Place) -> None:
    place.make_topic(messages=5)
    reset(place, 2)


@cold_row(UNKNOWN, Answer(None, NO_DEFAULT))
def cold_and_default_forbidden(place: Place) -> None:
    place.make_topic(messages=5)
    place.set_zero_if_not_found = False


@cold_row(UNKNOWN, ZERO)
def cold_retry_topic(place: Place) -> None:
    place.topic = f"%RETRY%{place.group}"
    place.make_topic(messages=1, queues=1)


def fill_history(client: RawClient, trimmed: Iterable[str], gone: Iterable[str]) -> None:
    """At the start of a broker whose log files hold 1 MiB: 5 messages that will go, 5 that will stay."""
    trimmed = list(trimmed)
    for topic in (*trimmed, *gone):
        client.update_topic(topic, QUEUES)
        client.fill(topic, range(QUEUES), 5)
    client.update_topic("filler", 1)
    client.fill("filler", [0], 6, bytes(200_000))
    for topic in trimmed:
        client.fill(topic, range(QUEUES), 5)


@history_row(UNKNOWN)
def trimmed_topic(place: Place) -> None:
    place.topic = TRIMMED


@history_row(UNKNOWN)
def trimmed_topic_and_default_allowed(place: Place) -> None:
    place.topic = TRIMMED
    place.set_zero_if_not_found = True


@history_row(Answer(1))
def trimmed_but_stored_below_the_min_offset(place: Place) -> None:
    place.client.update_group(place.group)
    place.topic = TRIMMED
    place.commit(1)


@history_row(ZERO, UNKNOWN)
def unknown_queue_of_a_trimmed_topic(place: Place) -> None:
    place.topic = TRIMMED
    place.queue_id = QUEUES + 4


@history_row(ZERO, UNKNOWN)
def topic_of_which_nothing_is_left(place: Place) -> None:
    place.topic = GONE
