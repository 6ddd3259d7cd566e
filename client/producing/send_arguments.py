"""The arguments of a send: the message, and the queue to send it to.

    send("Orders", b"paid", keys="order-7")                  any queue, round robin
    send("Orders", b"paid", sharding_key="order-7")          equal keys, one queue
    send("Orders", b"paid", selector=select, arg=7)          the queue that select(queues, message, 7) returns
    send("Orders", b"paid", queue=queue)                     that queue

`send`, `send_nowait`, `send_oneway` and `request` share these keywords; a transaction shares those of the message.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue

from ..arguments import no_keyword
from ..errors import InvalidArgument
from ..values.message import Message
from ..values.namespaces import Namespace
from .queue_choice import MessageQueueSelector, select_by_hash


class MessageKeywords(TypedDict, total=False):
    """The parts of a message that is not given as a `Message`."""

    tags: str
    """One tag: consumers subscribe to tags."""
    keys: str | Iterable[str]
    """Words to search for the message later (`AdminClient.messages_by_key`). They do not choose the queue."""
    properties: dict[str, str] | None
    delay_level: int
    """1 to 18 by default: deliver after the level's time."""
    delay: timedelta | None
    """Deliver after so long; 5.x brokers."""
    deliver_at: datetime | None
    """Deliver at a time, local time if it has no zone; 5.x brokers."""


class SendKeywords(MessageKeywords, total=False):
    """The message, and at most one of `queue`, `queue_id`, `selector` and `sharding_key`."""

    queue: MessageQueue | None
    """That queue of that broker."""
    queue_id: int | None
    """The queue with that number; if several brokers have one, the brokers are used round robin."""
    selector: MessageQueueSelector | None
    """A function `(queues, message, arg)` that returns one of the queues."""
    arg: Any
    """The third argument of `selector`."""
    sharding_key: str | int | None
    """Equal keys go to one queue, and so stay in order: the same as `selector=select_by_hash, arg=sharding_key`."""


class Destination(msgspec.Struct, frozen=True):
    """The queue a user wants: exactly one of `queue`, `queue_id` and `selector` is given."""

    queue: MessageQueue | None = None
    queue_id: int | None = None
    selector: MessageQueueSelector | None = None
    arg: Any = None


def queue_of_topic(queue: MessageQueue, topic: str, namespace: Namespace) -> MessageQueue:
    """A queue of the user as brokers know it; `InvalidArgument` if it is none, or of another topic than the message."""
    if not isinstance(queue, MessageQueue):
        raise InvalidArgument(
            f"queue must be a MessageQueue, got {queue!r}; the number of a queue is queue_id"
        )
    wrapped = namespace.wrap_queue(queue)
    if wrapped.topic != namespace.wrap(topic):
        raise InvalidArgument("message's topic not equal mq's topic")
    return wrapped


def read_arguments(
    topic: str | Message, body: bytes | str | None, keywords: SendKeywords
) -> tuple[Message, Destination | None]:
    """The message, and its destination; None means any queue. InvalidArgument for a keyword that no send has."""
    if not keywords:
        return message_of(topic, body), None
    try:
        return _read(topic, body, **keywords)
    except TypeError:
        known = SendKeywords.__annotations__
        unknown = next((name for name in keywords if name not in known), None)
        if unknown is None:
            raise
        raise no_keyword("this send", unknown, known) from None


def _read(
    topic: str | Message,
    body: bytes | str | None,
    *,
    queue: MessageQueue | None = None,
    queue_id: int | None = None,
    selector: MessageQueueSelector | None = None,
    arg: Any = None,
    sharding_key: str | int | None = None,
    **parts: Unpack[MessageKeywords],
) -> tuple[Message, Destination | None]:
    """Python itself refuses a keyword that no send has."""
    message = message_of(topic, body, **parts)
    ways = (queue is not None) + (queue_id is not None) + (selector is not None) + (sharding_key is not None)
    if ways > 1:
        raise InvalidArgument("give only one of queue, queue_id, selector and sharding_key")
    if arg is not None and selector is None:
        raise InvalidArgument("arg is what a selector gets: give a selector, or sharding_key instead of arg")
    if not ways:
        return message, None
    if queue_id is not None and not isinstance(queue_id, int):
        raise InvalidArgument(f"queue_id must be a whole number, not {type(queue_id).__name__}")
    if selector is not None and not callable(selector):
        raise InvalidArgument(f"selector must be a function, not {type(selector).__name__}")
    if sharding_key is not None:
        if not isinstance(sharding_key, str | int | float):
            raise InvalidArgument(
                f"sharding_key must be text or a whole number, not {type(sharding_key).__name__}"
            )
        selector, arg = select_by_hash, sharding_key
    return message, Destination(queue, queue_id, selector, arg)


def message_of(
    topic: str | Message,
    body: bytes | str | None,
    tags: str = "",
    keys: str | Iterable[str] = "",
    properties: dict[str, str] | None = None,
    delay_level: int = 0,
    delay: timedelta | None = None,
    deliver_at: datetime | None = None,
) -> Message:
    """The message to send: a `Message` as it is, or one made of the other arguments."""
    if isinstance(topic, Message):
        if body is not None or tags or keys or properties or delay_level or delay or deliver_at:
            raise InvalidArgument("a Message is sent as it is: set its fields instead of arguments")
        return topic
    return Message(
        topic,
        b"" if body is None else body,
        tags,
        keys,
        properties or {},
        delay_level=delay_level,
        delay=delay,
        deliver_at=deliver_at,
    )
