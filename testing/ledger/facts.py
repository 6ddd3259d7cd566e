"""Facts: what a watcher saw, one value each. A fact keeps the log's entry of its request, which proves it."""

from typing import NamedTuple

import msgspec
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS

from ..requests.logged_request import LogEntry

RECEIVE, ACK, HIDE, GIVE_UP = (
    RPC_NUMBERS[name]
    for name in ("ReceiveMessage", "AckMessage", "ChangeInvisibleDuration", "ForwardMessageToDeadLetterQueue")
)
"""The calls of gRPC consumers that do something to messages."""


class Queue(NamedTuple):
    """One queue of one broker."""

    broker: str
    topic: str
    queue_id: int


class Place(NamedTuple):
    """Where a record lies: no two records of one broker have the same position in its log."""

    broker: str
    position: int


class _OfMessage(msgspec.Struct, frozen=True):
    """What is about one offset of a queue."""

    group: str
    queue: Queue
    offset: int
    request: LogEntry

    @property
    def member(self) -> str:
        """The client id of the sender; its address, if it sent no heartbeat."""
        return self.request.connection.client_id or self.request.connection.peer


class Delivery(_OfMessage, frozen=True, kw_only=True):
    """A message in the answer to a pull or a pop that its peer got. Times are in ms by the broker's clock."""

    place: Place
    message_id: str
    sharding_key: str | None
    store_timestamp: int
    is_retry: bool
    popped_ms: int | None = None
    visible_again_ms: int | None = None
    """When a pop hands the message out once more; None for a pull."""

    @property
    def client_id(self) -> str | None:
        return self.request.connection.client_id

    @property
    def delivered_ms(self) -> int:
        """When the answer was sent, by the machine's clock."""
        return (self.request.answered_ns or self.request.at_ns) // 1_000_000


class Pulled(_OfMessage, frozen=True):
    """A pull of a queue: the group, or the member of a broadcasting group, has everything before the offset."""


class Committed(_OfMessage, frozen=True):
    """A group's offset of a queue changed: the next message to consume."""


class Acked(_OfMessage, frozen=True):
    """A popped message was acknowledged; with `is_returned`, its invisible time was changed instead.

    The server consumed it instead of delivering it: with `is_filtered` because its group does not want it, with
    `is_given_up` because its attempts are used up."""

    is_returned: bool = False
    is_filtered: bool = False
    is_given_up: bool = False


class SentBack(msgspec.Struct, frozen=True):
    """A consumer sent a message back. `queue` has the topic only."""

    group: str
    queue: Queue
    place: Place
    delay_level: int
    request: LogEntry


Fact = Delivery | Pulled | Committed | Acked | SentBack
