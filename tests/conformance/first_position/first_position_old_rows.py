"""The first-position table for older topics: no longer in memory, or partly deleted.

The first go with `accessMessageInMemoryMaxRatio=0`. 5.5.0 on Java 17 never finds a message cold, whatever the ratio.
The others need a broker whose first log file was deleted: `fill_history` at its start, then the deletion. Form and
helpers are those of `first_position_rows.py`.
"""

from collections.abc import Iterable

from conformance.first_position.first_position_rows import (
    ALLOWED,
    BEYOND,
    FORBIDDEN,
    NO_DEFAULT,
    QUEUES,
    UNKNOWN,
    Answer,
    Row,
    asked,
    commit,
    group_alone,
    made,
    of_retry,
    reset,
    row,
)
from conformance.servers.raw_client import RawClient

TRIMMED = "trimmed"
"""The topic whose first messages went with it; half of them are left."""
GONE = "gone"
"""The topic of which nothing is left."""
OF_TRIMMED = asked(topic=TRIMMED)

COLD_ROWS: dict[str, Row] = {
    "cold_topic": row((UNKNOWN, 0), made(5)),
    "cold_but_stored": row(3, made(5), commit(3)),
    "cold_and_minus_one_stored": row((UNKNOWN, 0), made(5), commit(-1)),
    "empty_queue_where_all_is_cold": row((0, UNKNOWN), made()),
    "cold_with_a_reset_pending": row((UNKNOWN, 2), made(5), reset(2)),
    "cold_and_default_forbidden": row((UNKNOWN, Answer(None, NO_DEFAULT)), made(5), FORBIDDEN),
    "cold_retry_topic": row((UNKNOWN, 0), of_retry, made(1, queues=1)),
}
"""Asked while the broker believes that nothing is in memory."""
HISTORY_ROWS: dict[str, Row] = {
    "trimmed_topic": row(UNKNOWN, OF_TRIMMED),
    "trimmed_topic_and_default_allowed": row(UNKNOWN, OF_TRIMMED, ALLOWED),
    "trimmed_but_stored_below_the_min_offset": row(1, group_alone, OF_TRIMMED, commit(1)),
    "unknown_queue_of_a_trimmed_topic": row((0, UNKNOWN), OF_TRIMMED, BEYOND),
    "topic_of_which_nothing_is_left": row((0, UNKNOWN), asked(topic=GONE)),
}
"""Asked after the first log file was deleted."""


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
