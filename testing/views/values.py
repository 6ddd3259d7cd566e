"""What a view shows: locks and held pulls, and lists of values. Members and first positions are the HTTP port's."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from pocketmq.console.values import FirstPosition, Member

__all__ = ("FirstPosition", "HeldPull", "Listing", "Lock", "Member", "listing")

ItemT = TypeVar("ItemT")


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


class Listing(list[ItemT]):
    """A list of values. Called with fields, the part that has them: `rocketmq.locks(group="billing")`."""

    def __call__(self, **fields: Any) -> "Listing[ItemT]":
        return Listing(
            item for item in self if all(getattr(item, name) == value for name, value in fields.items())
        )


def listing(items: Iterable[ItemT]) -> Listing[ItemT]:
    return Listing(items)
