"""The first-position table: for each state of (group, topic, queue) the answer to QUERY_CONSUMER_OFFSET (14).

A row makes its state with raw requests on names of its own, step by step, and says what both official lines answer
then. Not the test itself: `test_first_position.py` runs every row on ours and on the official brokers, and lets
official consumers start on the main ones. `first_position_old_rows.py` has the rows for older queues.
"""

from collections.abc import Callable
from dataclasses import dataclass

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


Step = Callable[[Place], None]
Expected = int | Answer


@dataclass(frozen=True)
class Row:
    """The steps that make a state, and its answer in both lines."""

    steps: tuple[Step, ...]
    in_49: Answer
    in_55: Answer

    def prepare(self, place: Place) -> None:
        for step in self.steps:
            step(place)

    def expected(self, line: str) -> Answer:
        return self.in_49 if line == "4.9" else self.in_55


def row(expected: Expected | tuple[Expected, Expected], *steps: Step) -> Row:
    """One answer, or those of 4.9 and 5.x where the lines do not agree."""
    both = expected if isinstance(expected, tuple) else (expected, expected)
    return Row(steps, *(one if isinstance(one, Answer) else Answer(one) for one in both))


# -- steps


def made(messages: int = 0, queues: int = QUEUES) -> Step:
    return lambda place: place.make_topic(messages, queues)


def asked(**changes: object) -> Step:
    """The question is about another topic or queue, or says whether 0 is an answer."""

    def change(place: Place) -> None:
        for name, value in changes.items():
            setattr(place, name, value)

    return change


def commit(offset: int) -> Step:
    return lambda place: place.commit(offset)


def filled(queue_id: int, messages: int) -> Step:
    return lambda place: place.client.fill(place.topic, [queue_id], messages)


def resized(queues: int) -> Step:
    return lambda place: place.client.update_topic(place.topic, queues)


def reset(offset: int) -> Step:
    """4.9 refuses: the group has never stored an offset, or has no member online."""

    def change(place: Place) -> None:
        reply = place.client.reset(place.group, place.topic, place.queue_id, offset)
        assert reply.code != 0 if place.is_49 else reply.code == 0, reply

    return change


def of_retry(place: Place) -> None:
    place.topic = f"%RETRY%{place.group}"


def group_alone(place: Place) -> None:
    place.client.update_group(place.group)


def topic_is_deleted(place: Place) -> None:
    assert place.client.call(215, topic=place.topic).code == 0


def pull_that_commits(place: Place) -> None:
    reply = place.client.pull(place.group, place.topic, 0, 2, commit=2)
    assert reply.code == 0, reply


def pull_without_the_flag(place: Place) -> None:
    assert place.client.pull(place.group, place.topic, 0, 2).code == 0


def question_that_stores_nothing(place: Place) -> None:
    assert place.ask() == ZERO
    offsets_of_all = place.client.call(43)
    assert f"{place.topic}@{place.group}".encode() not in offsets_of_all.body


def commit_that_is_ignored(place: Place) -> None:
    reply = place.client.commit(place.group, place.topic, 0, 4)
    assert (reply.code, reply.remark) == (0, "" if place.is_49 else "Offset has been previously reset")


def pull_of_the_reset(place: Place) -> None:
    reply = place.client.pull(place.group, place.topic, 0, 5)
    if not place.is_49:
        assert (reply.code, reply.fields["nextBeginOffset"]) == (21, "2"), reply
        assert place.ask() == Answer(2)


def reset_that_is_refused(place: Place) -> None:
    assert place.client.reset(place.group, place.topic, 0, 99).code != 0


def commit_of(code: int, unknown: str) -> Step:
    """It names what the broker does not know; 4.9 stores it."""

    def commit(place: Place) -> None:
        reply = place.client.commit(place.group, place.topic, 0, 5)
        remark = unknown.format(place=place)
        assert (reply.code, reply.remark) == ((0, "") if place.is_49 else (code, remark))

    return commit


def cloned_from_another_group(place: Place) -> None:
    other = f"{place.group}_source"
    place.client.update_group(other)
    assert place.client.commit(other, place.topic, 0, 2).code == 0
    cloned = place.client.call(314, srcGroup=other, destGroup=place.group, topic=place.topic, offline=True)
    assert cloned.code == 0, cloned


BEYOND = asked(queue_id=QUEUES + 4)
FORBIDDEN, ALLOWED = asked(set_zero_if_not_found=False), asked(set_zero_if_not_found=True)
NEW = asked(queue_id=4)

ROWS: dict[str, Row] = {
    # a stored offset always wins
    "stored": row(3, made(5), commit(3)),
    "stored_zero": row(0, made(), commit(0)),
    "stored_then_lower": row(2, made(5), commit(5), commit(2)),
    "stored_above_max": row(1000, made(2), commit(1000)),
    "minus_one_stored_is_no_offset": row(0, made(2), commit(2), commit(-1)),
    "minus_one_stored_in_an_empty_queue": row((0, UNKNOWN), made(), commit(-1)),
    "stored_beyond_the_queue_count": row(7, made(), BEYOND, commit(7)),
    "stored_in_a_queue_deleted_since": row(4, made(5), asked(queue_id=2), commit(4), resized(1)),
    "stored_by_a_pull": row(2, made(5), pull_that_commits),
    "pull_without_the_commit_flag_stores_nothing": row(0, made(5), pull_without_the_flag),
    # no stored offset, empty queue
    "empty_queue": row((0, UNKNOWN), made()),
    "empty_queue_beside_full_ones": row((0, UNKNOWN), made(), filled(1, 3)),
    "queue_beyond_the_count": row((0, UNKNOWN), made(1), BEYOND),
    "negative_queue": row((0, UNKNOWN), made(1), asked(queue_id=-1)),
    "unknown_topic": row((0, UNKNOWN), group_alone),
    "unknown_topic_and_group": row((0, UNKNOWN)),
    "unknown_group_of_a_young_topic": row(0, resized(QUEUES), filled(0, 1)),
    "deleted_topic": row((0, UNKNOWN), made(2), topic_is_deleted),
    # no stored offset, messages in memory
    "young_topic": row(0, made(5)),
    "asking_stores_nothing": row(0, made(5), question_that_stores_nothing),
    "queue_just_added": row((0, UNKNOWN), made(2), commit(2), resized(6), NEW),
    "queue_just_added_with_a_message": row(0, made(2), resized(6), NEW, filled(4, 1)),
    "empty_retry_topic": row((0, UNKNOWN), of_retry, made(queues=1)),
    "retry_topic_that_does_not_exist": row((0, UNKNOWN), of_retry),
    "retry_topic_with_a_message": row(0, of_retry, made(1, queues=1)),
    # the request may forbid the default (5.x)
    "default_forbidden": row((0, Answer(None, NO_DEFAULT)), made(5), FORBIDDEN),
    "default_forbidden_in_an_empty_queue": row((0, Answer(None, NO_DEFAULT)), made(), FORBIDDEN),
    "default_forbidden_but_stored": row(3, made(5), commit(3), FORBIDDEN),
    "default_allowed": row(0, made(5), ALLOWED),
    "default_allowed_in_an_empty_queue": row((0, UNKNOWN), made(), ALLOWED),
    # an administrator's reset waits for the next pull (5.x)
    "reset_pending": row((0, 2), made(5), reset(2)),
    "reset_pending_wins_over_stored": row((4, 2), made(5), commit(4), reset(2)),
    "commit_while_a_reset_waits_is_ignored": row((4, 2), made(5), reset(2), commit_that_is_ignored),
    "commit_after_the_reset_was_pulled": row(4, made(5), reset(2), pull_of_the_reset, commit(4)),
    "reset_pending_at_the_end": row((0, 5), made(5), reset(5)),
    "reset_out_of_range_is_refused": row(0, made(5), reset_that_is_refused),
    # commits with an unknown topic, group or queue
    "commit_to_an_unknown_topic": row(
        (5, UNKNOWN), group_alone, commit_of(17, "Topic {place.topic} not exist!")
    ),
    "commit_by_an_unknown_group": row(
        (5, 0), resized(QUEUES), filled(0, 2), commit_of(26, "Group {place.group} not exist!")
    ),
    "cloned_from_another_group": row(2, made(5), cloned_from_another_group),
}
