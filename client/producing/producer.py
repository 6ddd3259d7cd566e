"""Sending messages: awaited, as futures, one-way, in batches, to a queue of one's choice.

    async with Producer("group", namesrv_addr="127.0.0.1:9876") as producer:
        await producer.send("Orders", b"paid", tags="paid", keys="order-7")

How a message finds its queue and what is tried again is `sender.py`. Requests with replies are `request_reply.py`,
half messages `transaction.py`. Mirrors `DefaultMQProducer`.
"""

import asyncio
import functools
import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any, Final, Unpack

import msgspec
from pocketmq.protocol.message.batch import BatchElement
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic
from pocketmq.protocol.requests.send import RecallMessage

from ..clock import steady_ms
from ..connections.connection import Connection
from ..connections.route import Route
from ..errors import CallTimeout, ClientError, RouteNotFound
from ..hooks.hooks import Hook
from ..hooks.trace_dispatcher import AsyncTraceDispatcher
from ..instance.client import Client
from ..instance.groups import TransactionQuestion
from ..instance.instance import ClientInstance
from ..instance.instance_config import settings_of
from ..settings.keywords import ProducerOptions
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message, MessageExt
from ..values.results import SendResult
from ..values.validators import broker_of_recall_handle, check_message, check_producer_group, check_topic
from .accumulator import ProduceAccumulator
from .async_sends import AsyncSends
from .batch_split import check_batch, split_batch
from .detector import detect_brokers
from .outgoing import Outgoing
from .queue_choice import MessageQueueSelector, invoke_selector
from .sender import Sender

CHECKED_UNIQUE_KEY_BYTES: Final = 46
"""What a unique id may add to a batch element: name, separators and 32 characters."""


class Producer(Client):
    """Use as `async with`, in one event loop. Settings are those of `ProducerSettings`, as keyword arguments.

    Every send checks the message first: `ValidationFailed` in the official words, before anything leaves. A send that
    was cancelled may have been stored.
    """

    settings: ProducerSettings
    _called = "producer"
    _traced_as = "PRODUCE"

    def __init__(
        self,
        group: str,
        *,
        settings: ProducerSettings | None = None,
        hooks: Iterable[Hook] = (),
        **options: Unpack[ProducerOptions],
    ) -> None:
        check_producer_group(group)
        super().__init__(group, settings_of(ProducerSettings, settings, options), hooks, trace_of)
        self._sender: Sender | None = None
        self._accumulator: ProduceAccumulator | None = None
        self._turn = itertools.count(random.randrange(1 << 16))

    # -- life

    async def _build(self, instance: ClientInstance) -> None:
        self._sender = Sender(instance, self._group, self.settings, self._hooks)
        self._async_sends = AsyncSends(instance, self._sender)
        if self.settings.auto_batch:
            self._accumulator = ProduceAccumulator(self.settings, self._send_together)

    def _register(self, instance: ClientInstance) -> None:
        instance.groups.add_producer(self)

    async def _join(self, instance: ClientInstance) -> None:
        assert self._sender is not None
        for topic in self.settings.topics:
            await self._sender.find_route(self.namespace.wrap(topic))
        if self.settings.start_detector_enable:
            instance.spawn(detect_brokers(self._sender, instance), "detector")
        await instance.heartbeats.send()

    async def _leave(self, instance: ClientInstance) -> None:
        """Sends under way as futures end first, each within its own timeout."""
        if self._accumulator is not None:
            await self._accumulator.finish()
        await self._async_sends.finish()
        await instance.unregister_producer(self._group)

    def _withdraw(self, instance: ClientInstance) -> None:
        instance.groups.remove_producer(self._group)

    # -- sending

    async def send(
        self,
        topic: str | Message,
        body: bytes | None = None,
        *,
        tags: str = "",
        keys: str | Iterable[str] = "",
        properties: dict[str, str] | None = None,
        delay_level: int = 0,
        delay_ms: int = 0,
        deliver_at_ms: int = 0,
        queue: MessageQueue | None = None,
        queue_id: int | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Store one message; the topic is created where the broker allows it.

        Without a queue it is sent to one in turn, and to another where that fails: `SendFailed` if none took it. To a
        given `queue`, `queue_id`, or the one a `selector` picks by `arg`, there is one attempt: `RequestRefused` with
        the broker's code, `NotReachable` where it does not answer. `timeout_ms` is for the whole call.
        """
        message = message_of(topic, body, tags, keys, properties, delay_level, delay_ms, deliver_at_ms)
        sender = self._ready
        limit_ms = self.settings.send_msg_timeout if timeout_ms is None else timeout_ms
        if queue is not None:
            queue = self._wrapped(queue, message.topic)
        if timeout_ms is None and self._accumulator is not None and self._accumulator.takes(message):
            if queue is None and (queue_id is not None or selector is not None):
                queue = await self._pick(message, queue_id, selector, arg)
            return await self._add(message, queue)
        outgoing = self._outgoing(message)
        if queue is None and queue_id is None and selector is None:
            attempts = 1 + self.settings.retry_times_when_send_failed
            return await sender.send(outgoing, limit_ms, attempts=attempts)
        began_ms = steady_ms()
        queue = queue or await self._pick(message, queue_id, selector, arg)
        left_ms = limit_ms - (steady_ms() - began_ms)
        if left_ms <= 0:
            raise CallTimeout("sendSelectImpl call timeout")
        return await sender.send_to(outgoing, queue, left_ms)

    def send_nowait(
        self,
        topic: str | Message,
        body: bytes | None = None,
        *,
        tags: str = "",
        keys: str | Iterable[str] = "",
        properties: dict[str, str] | None = None,
        delay_level: int = 0,
        delay_ms: int = 0,
        deliver_at_ms: int = 0,
        queue: MessageQueue | None = None,
        queue_id: int | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[SendResult]:
        """Send now, the result comes in a future (official ASYNC): many sends share a write.

        Repeated when the broker could not be reached, to the same queue; an error response is final. With
        `enable_backpressure_for_async_mode` a send waits, within its timeout, for earlier ones to end.
        """
        message = message_of(topic, body, tags, keys, properties, delay_level, delay_ms, deliver_at_ms)
        limit_ms = self.settings.send_msg_timeout if timeout_ms is None else timeout_ms
        if queue is not None:
            queue = self._wrapped(queue, message.topic)
        elif queue_id is not None or selector is not None:
            sender = self._ready
            route = sender.known_route(self.namespace.wrap(message.topic))
            if route is None:
                picked = self._send_picked(sender, self._outgoing(message), queue_id, selector, arg, limit_ms)
                return self._async_sends.in_background(picked)
            queue = self._picked(route, message, queue_id, selector, arg)
        if timeout_ms is None and self._accumulator is not None and self._accumulator.takes(message):
            return self._add(message, queue)
        outgoing = self._outgoing(message)
        return self._async_sends.send(outgoing, queue, limit_ms)

    async def send_oneway(
        self,
        topic: str | Message,
        body: bytes | None = None,
        *,
        tags: str = "",
        keys: str | Iterable[str] = "",
        properties: dict[str, str] | None = None,
        queue: MessageQueue | None = None,
        queue_id: int | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
    ) -> None:
        """Write one message and do not wait for an answer: nobody tells whether it was stored."""
        message = message_of(topic, body, tags, keys, properties)
        sender = self._ready
        outgoing = self._outgoing(message)
        queue = await self._asked_for(message, queue, queue_id, selector, arg)
        if queue is None:
            route = sender.known_route(outgoing.topic) or await sender.find_route(outgoing.topic)
            queue = sender.choose(route, None)
        await sender.send_oneway(outgoing, queue)

    async def send_batch(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> list[SendResult]:
        """Store messages of one topic together; a long list is cut into as many batches as `max_message_size` needs.

        One result for each batch, with the ids of its messages. The first batch that fails raises; those before it
        are stored. (The official client refuses a list that is too long.)
        """
        listed = list(messages)
        sender = self._ready
        if queue is not None and listed:
            queue = self._wrapped(queue, listed[0].topic)
        wired = [_ForCheck(message.topic, message.wire_properties()) for message in listed]
        check_batch(wired)
        for message in listed:
            check_message(message.topic, message.body, max_message_size=self.settings.max_message_size)
        sized = (
            BatchElement(message.flag, message.body, encode_properties(one.properties) + _ID_ROOM)
            for message, one in zip(listed, wired, strict=True)
        )
        limit_ms = self.settings.send_msg_timeout if timeout_ms is None else timeout_ms
        results: list[SendResult] = []
        start = 0
        for run in split_batch(sized, self.settings.max_message_size):
            part, start = listed[start : start + len(run)], start + len(run)
            outgoing = sender.prepare_batch(part) if len(run) > 1 else self._outgoing(part[0])
            results.append(await self._send_prepared(outgoing, queue, limit_ms))
        return results

    async def recall(self, topic: str, recall_handle: str) -> str:
        """Take a timed message back by the handle of its `SendResult` (5.x brokers that allow it); its id.

        `RequestRefused` where it was delivered already or the broker does not allow it; `ClientError` for a text that
        is no handle.
        """
        sender, instance = self._ready, self._running
        topic = self.namespace.wrap(topic)
        check_topic(topic)
        if is_retry_topic(topic) or is_dlq_topic(topic):
            raise ClientError("topic is not supported")
        broker_name = broker_of_recall_handle(recall_handle)
        if sender.known_route(topic) is None:
            await sender.find_route(topic)
        address = instance.routes.master(
            broker_name, main_port=True
        ) or await instance.routes.find_any_broker(topic, main_port=True)
        request = RecallMessage(
            producer_group=self._group, topic=topic, recall_handle=recall_handle, broker_name=broker_name
        )
        reply = await instance.connections.call(
            address, request, timeout_seconds=self.settings.send_msg_timeout / 1000
        )
        return reply.msg_id

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues to send to (official fetchPublishMessageQueues); `RouteNotFound` where there is no such topic."""
        route = await self._usable.routes.find_route(self.namespace.wrap(topic))
        return [self.namespace.unwrap_queue(queue) for queue in route.write_queues()]

    def add_retry_response_code(self, code: int) -> None:
        """Try another queue after this error response too."""
        self._ready.retry_response_codes.add(code)

    # -- what the instance asks

    def published_topics(self) -> list[str]:
        return [] if self._sender is None else list(self._sender.published)

    def check_transaction(self, connection: Connection, question: TransactionQuestion) -> None:
        """Nothing: only a `TransactionProducer` knows what became of a half message."""

    def reply_arrived(self, correlation_id: str, reply: MessageExt) -> bool:
        """False: only a `Requester` waits for replies."""
        return False

    # -- how

    @property
    def _ready(self) -> Sender:
        self._usable  # noqa: B018  # raises unless started
        assert self._sender is not None
        return self._sender

    def _wrapped(self, queue: MessageQueue, topic: str) -> MessageQueue:
        """A queue one gave, as brokers know it; ClientError where it is of another topic than the message."""
        wrapped = self.namespace.wrap_queue(queue)
        if wrapped.topic != self.namespace.wrap(topic):
            raise ClientError("message's topic not equal mq's topic")
        return wrapped

    def _check(self, message: Message) -> None:
        check_message(
            message.topic,
            message.body,
            max_message_size=self.settings.max_message_size,
            properties=message.properties,
        )

    def _outgoing(self, message: Message) -> Outgoing:
        self._check(message)
        return self._ready.prepare(message, message.wire_properties())

    async def _asked_for(
        self,
        message: Message,
        queue: MessageQueue | None,
        queue_id: int | None,
        selector: MessageQueueSelector | None,
        arg: Any,
    ) -> MessageQueue | None:
        """The queue one gave, by itself, by its number or by a selector; None where one gave none."""
        if queue is not None:
            return self._wrapped(queue, message.topic)
        if queue_id is None and selector is None:
            return None
        return await self._pick(message, queue_id, selector, arg)

    async def _pick(
        self, message: Message, queue_id: int | None, selector: MessageQueueSelector | None, arg: Any
    ) -> MessageQueue:
        sender = self._ready
        topic = self.namespace.wrap(message.topic)
        route = sender.known_route(topic) or await sender.find_route(topic)
        return self._picked(route, message, queue_id, selector, arg)

    async def _send_picked(
        self,
        sender: Sender,
        outgoing: Outgoing,
        queue_id: int | None,
        selector: MessageQueueSelector | None,
        arg: Any,
        limit_ms: int,
    ) -> SendResult:
        """`send_nowait` to a queue of a topic whose queues are not known yet."""
        began_ms = steady_ms()
        route = await sender.find_route(outgoing.topic)
        queue = self._picked(route, outgoing.message, queue_id, selector, arg)
        left_ms = limit_ms - (steady_ms() - began_ms)
        if left_ms <= 0:
            raise CallTimeout("DEFAULT ASYNC send call timeout")
        return await self._async_sends.send(outgoing, queue, left_ms)

    def _picked(
        self,
        route: Route,
        message: Message,
        queue_id: int | None,
        selector: MessageQueueSelector | None,
        arg: Any,
    ) -> MessageQueue:
        namespace = self.namespace
        if selector is not None:
            told = (
                [namespace.unwrap_queue(queue) for queue in route.queues] if namespace.name else route.queues
            )
            return namespace.wrap_queue(invoke_selector(selector, told, message, arg))
        queues = [queue for queue in route.queues if queue.queue_id == queue_id]
        if not queues:
            raise RouteNotFound(f"topic {message.topic} has no queue {queue_id} to write to")
        return queues[next(self._turn) % len(queues)]

    def _add(self, message: Message, queue: MessageQueue | None) -> asyncio.Future[SendResult]:
        """Let a message wait for others."""
        assert self._accumulator is not None
        self._check(message)
        message.wire_properties()  # raises for a reserved name while there is only one message to blame
        return self._accumulator.add(message, queue)

    async def _send_together(
        self, messages: Sequence[Message], queue: MessageQueue | None, tags: str, keys: str
    ) -> SendResult:
        assert self._sender is not None
        outgoing = self._sender.prepare_batch(messages, tags=tags, keys=keys)
        return await self._send_prepared(outgoing, queue, self.settings.send_msg_timeout)

    async def _send_prepared(
        self, outgoing: Outgoing, queue: MessageQueue | None, limit_ms: int
    ) -> SendResult:
        assert self._sender is not None
        if queue is not None:
            return await self._sender.send_to(outgoing, queue, limit_ms)
        attempts = 1 + self.settings.retry_times_when_send_failed
        return await self._sender.send(outgoing, limit_ms, attempts=attempts)


trace_of = functools.partial(AsyncTraceDispatcher, make_sender=Producer)
"""The message trace of a client, sent by a producer of its own."""


class _ForCheck(msgspec.Struct, frozen=True):
    """A message of a batch with its properties as they travel."""

    topic: str
    properties: dict[str, str]


_ID_ROOM: Final = b" " * CHECKED_UNIQUE_KEY_BYTES


def message_of(
    topic: str | Message,
    body: bytes | None,
    tags: str,
    keys: str | Iterable[str],
    properties: dict[str, str] | None,
    delay_level: int = 0,
    delay_ms: int = 0,
    deliver_at_ms: int = 0,
) -> Message:
    """The message the arguments of a send stand for: a `Message` as it is, or one made of all the others."""
    if isinstance(topic, Message):
        if body is not None or tags or keys or properties or delay_level or delay_ms or deliver_at_ms:
            raise ClientError("a Message is sent as it is: set its fields instead of arguments")
        return topic
    return Message(
        topic,
        b"" if body is None else body,
        tags,
        keys if isinstance(keys, str) else " ".join(keys),
        properties or {},
        delay_level=delay_level,
        delay_ms=delay_ms,
        deliver_at_ms=deliver_at_ms,
    )
