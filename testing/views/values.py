"""What a view shows: members, locks, held pulls and first positions, as values."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

ItemT = TypeVar("ItemT")


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One connected consumer of a group. `address` is that of its connection, `version` a number of MQVersion."""

    client_id: str
    address: str
    language: str
    version: int


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that a member of a group consumes in order; no other member may."""

    group: str
    topic: str
    queue_id: int
    client_id: str


class HeldPull(msgspec.Struct, frozen=True, kw_only=True):
    """A pull that waits at the broker because the queue has no message at `offset` yet."""

    group: str
    topic: str
    queue_id: int
    offset: int


class FirstPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where a group starts to read a queue, by which rule (B0 to B6), and that rule in words.

    `offset` is what the broker answers, or, if it answers "not found", where the group's ConsumeFromWhere leads
    (CONSUME_FROM_LAST_OFFSET if the group has no members). None: the consumer searches by its consumeTimestamp.
    """

    queue_id: int
    offset: int | None
    rule: str
    because: str


class Listing(list[ItemT]):
    """A list of values. Called with fields, the part that has them: `rocketmq.locks(group="billing")`."""

    def __call__(self, **fields: Any) -> "Listing[ItemT]":
        return Listing(
            item for item in self if all(getattr(item, name) == value for name, value in fields.items())
        )


def listing(items: Iterable[ItemT]) -> Listing[ItemT]:
    return Listing(items)
