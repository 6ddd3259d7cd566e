"""The first-position table: for each state of (group, topic, queue) the answer to QUERY_CONSUMER_OFFSET (14).

A row prepares its state with raw requests on names of its own and says what both official lines answer then. Not the
test itself: `test_first_position.py` runs every row on ours and on the official brokers, and lets official consumers
start on the main ones. `first_position_old_rows.py` has the rows for older queues.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from conformance.servers.raw_client import RawClient
from conformance.servers.remoting import Reply

NOT_FOUND = 22
NOBODY_KNOWS = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
NO_DEFAULT = "Not found, do not set to zero, maybe this group boot first"
QUEUES = 3


@dataclass(frozen=True)
class Answer:
    """An offset, or None for QUERY_NOT_FOUND with its remark."""

    offset: int | None
    remark: str = ""

    @staticmethod
    def of(reply: Reply) -> "Answer":
        if reply.code == NOT_FOUND:
            return Answer(None, reply.remark)
        assert reply.code == 0, reply
        return Answer(int(reply.fields["offset"]), reply.remark)


ZERO = Answer(0)
UNKNOWN = Answer(None, NOBODY_KNOWS)


@dataclass
class Place:
    """Where a row asks: a connection, and names no other row uses. A row may change any of them but the client."""

    client: RawClient
    group: str
    topic: str
    queue_id: int = 0
    set_zero_if_not_found: bool | None = None

    @property
    def is_49(self) -> bool:
        return self.client.server.emulates == "4.9"

    def ask(self) -> Answer:
        return Answer.of(
            self.client.query_offset(self.group, self.topic, self.queue_id, self.set_zero_if_not_found)
        )

    def make_topic(self, messages: int = 0, queues: int = QUEUES) -> None:
        """A topic, and the group; `messages` in each queue."""
        self.client.update_group(self.group)
        self.client.update_topic(self.topic, queues)
        self.client.fill(self.topic, range(queues), messages)

    def commit(self, offset: int) -> None:
        reply = self.client.commit(self.group, self.topic, self.queue_id, offset)
        assert (reply.code, reply.remark) == (0, ""), reply


Prepare = Callable[[Place], None]


@dataclass(frozen=True)
class Row:
    prepare: Prepare
    in_49: Answer
    in_55: Answer

    def expected(self, line: str) -> Answer:
        return self.in_49 if line == "4.9" else self.in_55


ROWS: dict[str, Row] = {}


class AddRow(Protocol):
    def __call__(self, in_49: Answer, in_55: Answer | None = None) -> Callable[[Prepare], None]: ...


def rows_of(table: dict[str, Row]) -> AddRow:
    """A decorator that adds a row under its function's name; one answer where the lines agree."""

    def add_row(in_49: Answer, in_55: Answer | None = None) -> Callable[[Prepare], None]:
        def add(prepare: Prepare) -> None:
            table[prepare.__name__] = Row(prepare, in_49, in_49 if in_55 is None else in_55)

        return add

    return add_row


row = rows_of(ROWS)


# -- a stored offset always wins


@row(Answer(3))
def stored(place: Place) -> None:
    place.make_topic(messages=5)
    place.commit(3)


@row(ZERO)
def stored_zero(place: Place) -> None:
    place.make_topic()
    place.commit(0)


@row(Answer(2))
def stored_then_lower(place: Place) -> None:
    place.make_topic(messages=5)
    place.commit(5)
    place.commit(2)


@row(Answer(1000))
def stored_above_max(place: Place) -> None:
    place.make_topic(messages=2)
    place.commit(1000)


@row(ZERO)
def minus_one_stored_is_no_offset(place: Place) -> None:
    place.make_topic(messages=2)
    place.commit(2)
    place.commit(-1)


@row(ZERO, UNKNOWN)
def minus_one_stored_in_an_empty_queue(place: Place) -> None:
    place.make_topic()
    place.commit(-1)


@row(Answer(7))
def stored_beyond_the_queue_count(place: Place) -> None:
    place.make_topic()
    place.queue_id = QUEUES + 4
    place.commit(7)


@row(Answer(4))
def stored_in_a_queue_deleted_since(place: Place) -> None:
    place.make_topic(messages=5)
    place.queue_id = 2
    place.commit(4)
    place.client.update_topic(place.topic, 1)


@row(Answer(2))
def stored_by_a_pull(place: Place) -> None:
    place.make_topic(messages=5)
    reply = place.client.pull(place.group, place.topic, 0, 2, commit=2)
    assert reply.code == 0, reply


@row(ZERO)
def pull_without_the_commit_flag_stores_nothing(place: Place) -> None:
    place.make_topic(messages=5)
    assert place.client.pull(place.group, place.topic, 0, 2).code == 0


# -- no stored offset, empty queue


@row(ZERO, UNKNOWN)
def empty_queue(place: Place) -> None:
    place.make_topic()


@row(ZERO, UNKNOWN)
def empty_queue_beside_full_ones(place: Place) -> None:
    place.make_topic()
    place.client.fill(place.topic, [1], 3)


@row(ZERO, UNKNOWN)
def queue_beyond_the_count(place: Place) -> None:
    place.make_topic(messages=1)
    place.queue_id = QUEUES + 4


@row(ZERO, UNKNOWN)
def negative_queue(place: Place) -> None:
    place.make_topic(messages=1)
    place.queue_id = -1


@row(ZERO, UNKNOWN)
def unknown_topic(place: Place) -> None:
    place.client.update_group(place.group)


@row(ZERO, UNKNOWN)
def unknown_topic_and_group(place: Place) -> None:
    pass


@row(ZERO)
def unknown_group_of_a_young_topic(place: Place) -> None:
    place.client.update_topic(place.topic, QUEUES)
    place.client.fill(place.topic, [0], 1)


@row(ZERO, UNKNOWN)
def deleted_topic(place: Place) -> None:
    place.make_topic(messages=2)
    assert place.client.call(215, topic=place.topic).code == 0


# -- no stored offset, messages in memory


@row(ZERO)
def young_topic(place: Place) -> None:
    place.make_topic(messages=5)


@row(ZERO)
def asking_stores_nothing(place: Place) -> None:
    place.make_topic(messages=5)
    assert place.ask() == ZERO
    offsets_of_all = place.client.call(43)
    assert f"{place.topic}@{place.group}".encode() not in offsets_of_all.body


@row(ZERO, UNKNOWN)
def queue_just_added(place: Place) -> None:
    place.make_topic(messages=2)
    place.commit(2)
    place.client.update_topic(place.topic, 6)
    place.queue_id = 4


@row(ZERO)
def queue_just_added_with_a_message(place: Place) -> None:
    place.make_topic(messages=2)
    place.client.update_topic(place.topic, 6)
    place.queue_id = 4
    place.client.fill(place.topic, [4], 1)


@row(ZERO, UNKNOWN)
def empty_retry_topic(place: Place) -> None:
    place.topic = f"%RETRY%{place.group}"
    place.make_topic(queues=1)


@row(ZERO, UNKNOWN)
def retry_topic_that_does_not_exist(place: Place) -> None:
    place.topic = f"%RETRY%{place.group}"


@row(ZERO)
def retry_topic_with_a_message(place: Place) -> None:
    place.topic = f"%RETRY%{place.group}"
    place.make_topic(messages=1, queues=1)


# -- the request may forbid the default (5.x)


@row(ZERO, Answer(None, NO_DEFAULT))
def default_forbidden(place: Place) -> None:
    place.make_topic(messages=5)
    place.set_zero_if_not_found = False


@row(ZERO, Answer(None, NO_DEFAULT))
def default_forbidden_in_an_empty_queue(place: Place) -> None:
    place.make_topic()
    place.set_zero_if_not_found = False


@row(Answer(3))
def default_forbidden_but_stored(place: Place) -> None:
    place.make_topic(messages=5)
    place.commit(3)
    place.set_zero_if_not_found = False


@row(ZERO)
def default_allowed(place: Place) -> None:
    place.make_topic(messages=5)
    place.set_zero_if_not_found = True


@row(ZERO, UNKNOWN)
def default_allowed_in_an_empty_queue(place: Place) -> None:
    place.make_topic()
    place.set_zero_if_not_found = True


# -- an administrator's reset waits for the next pull (5.x)


def reset(place: Place, offset: int) -> None:
    """4.9 refuses: the group has never stored an offset, or has no member online."""
    reply = place.client.reset(place.group, place.topic, place.queue_id, offset)
    assert reply.code != 0 if place.is_49 else reply.code == 0, reply


@row(ZERO, Answer(2))
def reset_pending(place: Place) -> None:
    place.make_topic(messages=5)
    reset(place, 2)


@row(Answer(4), Answer(2))
def reset_pending_wins_over_stored(place: Place) -> None:
    place.make_topic(messages=5)
    place.commit(4)
    reset(place, 2)


@row(Answer(4), Answer(2))
def commit_while_a_reset_waits_is_ignored(place: Place) -> None:
    place.make_topic(messages=5)
    reset(place, 2)
    reply = place.client.commit(place.group, place.topic, 0, 4)
    assert (reply.code, reply.remark) == (0, "" if place.is_49 else "Offset has been previously reset")


@row(Answer(4))
def commit_after_the_reset_was_pulled(place: Place) -> None:
    place.make_topic(messages=5)
    reset(place, 2)
    reply = place.client.pull(place.group, place.topic, 0, 5)
    if not place.is_49:
        assert (reply.code, reply.fields["nextBeginOffset"]) == (21, "2"), reply
        assert place.ask() == Answer(2)
    place.commit(4)


@row(ZERO, Answer(5))
def reset_pending_at_the_end(place: Place) -> None:
    place.make_topic(messages=5)
    reset(place, 5)


@row(ZERO)
def reset_out_of_range_is_refused(place: Place) -> None:
    place.make_topic(messages=5)
    assert place.client.reset(place.group, place.topic, 0, 99).code != 0


# -- commits with an unknown topic, group or queue


@row(Answer(5), UNKNOWN)
def commit_to_an_unknown_topic(place: Place) -> None:
    place.client.update_group(place.group)
    reply = place.client.commit(place.group, place.topic, 0, 5)
    if place.is_49:
        assert reply.code == 0
    else:
        assert (reply.code, reply.remark) == (17, f"Topic {place.topic} not exist!")


@row(Answer(5), ZERO)
def commit_by_an_unknown_group(place: Place) -> None:
    place.client.update_topic(place.topic, QUEUES)
    place.client.fill(place.topic, [0], 2)
    reply = place.client.commit(place.group, place.topic, 0, 5)
    if place.is_49:
        assert reply.code == 0
    else:
        assert (reply.code, reply.remark) == (26, f"Group {place.group} not exist!")


@row(Answer(2))
def cloned_from_another_group(place: Place) -> None:
    place.make_topic(messages=5)
    other = f"{place.group}_source"
    place.client.update_group(other)
    assert place.client.commit(other, place.topic, 0, 2).code == 0
    cloned = place.client.call(314, srcGroup=other, destGroup=place.group, topic=place.topic, offline=True)
    assert cloned.code == 0, cloned
