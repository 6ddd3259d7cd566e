"""Sending messages: awaited, as futures, one-way, in batches, to a queue of the user's choice.

    async with Producer("group", namesrv_addr="127.0.0.1:9876") as producer:
        await producer.send("Orders", b"paid", tags="paid", keys="order-7")

Attempts and retries are in `sender.py`, the keywords of a send in `send_arguments.py`. Requests with replies are in
`request_reply.py`, half messages in `transaction.py`. Mirrors `DefaultMQProducer`.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, Unpack

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import BatchElement
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic
from pocketmq.protocol.requests.membership import UnregisterClient
from pocketmq.protocol.requests.send import RecallMessage

from ..arguments import checked
from ..errors import InvalidArgument
from ..hooks.hooks import Hook
from ..instance.client import Client
from ..instance.instance import ClientInstance
from ..instance.instance_config import settings_of
from ..settings.keywords import ProducerOptions
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message, MessageExt
from ..values.results import SendResult
from ..values.validators import broker_of_recall_handle, check_message, check_producer_group, check_topic
from .async_sends import AsyncSends
from .batches import ProduceAccumulator, check_batch, element_bytes, split_batch
from .outgoing import Outgoing, reply_to
from .send_arguments import SendKeywords, queue_of_topic, read_arguments
from .sender import Sender, detect_brokers

CHECKED_UNIQUE_KEY_BYTES: Final = 46
"""What a unique id may add to a batch element: name, separators and 32 characters."""


class Producer(Client):
    """Use as `async with`, in one event loop. Settings are those of `ProducerSettings`, as keyword arguments.

    Every send checks the message first and raises `ValidationFailed` in the official words before anything leaves.
    What fails after that is `SendFailed`, however the message was sent. A send that was cancelled, timed out or lost
    its connection may have been stored.
    """

    settings: ProducerSettings
    _display_name = "producer"
    _trace_kind = "PRODUCE"

    @checked
    def __init__(
        self,
        group: str,
        *,
        settings: ProducerSettings | None = None,
        hooks: Iterable[Hook] = (),
        **options: Unpack[ProducerOptions],
    ) -> None:
        check_producer_group(group)
        super().__init__(group, settings_of(ProducerSettings, settings, options), hooks, Producer)

    # -- life

    async def _build(self, instance: ClientInstance) -> None:
        self._sender = self._make_sender(instance)
        self._async_sends = AsyncSends(instance, self._sender)
        self._accumulator: ProduceAccumulator | None = None
        if self.settings.auto_batch:
            self._accumulator = ProduceAccumulator(self.settings, self._send_together)

    def _make_sender(self, instance: ClientInstance) -> Sender:
        return Sender(instance, self._group, self.settings, self._hooks)

    def _register(self, instance: ClientInstance) -> None:
        instance.groups.add_producer(self._sender)

    async def _join(self, instance: ClientInstance) -> None:
        sender = self._sender
        for topic in self.settings.topics:
            await sender.find_route(self._namespace.wrap(topic))
        if self.settings.start_detector_enable:
            instance.spawn(detect_brokers(sender, instance), "detector")
        await instance.heartbeats.send()

    async def _leave(self, instance: ClientInstance) -> None:
        """Sends under way as futures end first, each within its own timeout."""
        await self._flush()
        await instance.unregister(UnregisterClient(client_id=instance.client_id, producer_group=self._group))

    def _withdraw(self, instance: ClientInstance) -> None:
        self._async_sends.close()
        instance.groups.producers.pop(self._group, None)

    # -- sending

    async def send(
        self,
        topic: str | Message,
        body: bytes | str | None = None,
        *,
        timeout_ms: int | None = None,
        **keywords: Unpack[SendKeywords],
    ) -> SendResult:
        """Store one message; the broker creates the topic if it is allowed to.

        Without a destination the queues are used round robin; after a failure another queue is tried. To a given
        `queue`, `queue_id`, `sharding_key` or `selector` there is one attempt. `timeout_ms` (default: the setting
        `send_msg_timeout`) is for the whole call. `keys` are for searching, they do not choose the queue; all keywords
        are explained in `SendKeywords`.

        Raises `SendFailed` if no attempt stored the message, with the broker's response code or one of the client's
        and the reason as `__cause__`; `SendTimedOut`, a TimeoutError too, if time ran out.
        """
        message, destination = read_arguments(topic, body, keywords)
        sender, accumulator = self._ready, self._accumulator
        due = sender.due_in(self.settings.send_msg_timeout if timeout_ms is None else timeout_ms)
        if accumulator is not None and timeout_ms is None and accumulator.accepts(message):
            queue = None if destination is None else await sender.queue_for(destination, message, due)
            return await self._add(accumulator, message, queue)
        outgoing = self._prepare(sender, message)
        if destination is None:
            attempts = 1 + self.settings.retry_times_when_send_failed
            return await sender.send(outgoing, due, attempts=attempts)
        queue = await sender.queue_for(destination, message, due)
        return await sender.send_to(outgoing, queue, due)

    def send_nowait(
        self,
        topic: str | Message,
        body: bytes | str | None = None,
        *,
        timeout_ms: int | None = None,
        **keywords: Unpack[SendKeywords],
    ) -> asyncio.Future[SendResult]:
        """Send now and return a future of the result (official ASYNC): many sends share a write.

        Arguments and errors are those of `send`. Wrong arguments raise at once, and so does `SendBufferFull`, a
        BufferError too, if 65,536 sends wait to leave or for replies of one broker: `flush`, then send again. If the
        broker cannot be reached, the send is repeated, to the given queue or to another broker; an error response is
        final. With `enable_backpressure_for_async_mode` a send waits, within its timeout, for earlier ones to end.
        """
        message, destination = read_arguments(topic, body, keywords)
        sender, sends, accumulator = self._ready, self._async_sends, self._accumulator
        sends.check_room()
        due = sender.due_in(self.settings.send_msg_timeout if timeout_ms is None else timeout_ms)
        queue = None
        if destination is not None:
            queue = sender.known_queue_for(destination, message)
            if queue is None:
                return sends.send(self._prepare(sender, message), None, destination, due)
        if accumulator is not None and timeout_ms is None and accumulator.accepts(message):
            return self._add(accumulator, message, queue)
        return sends.send(self._prepare(sender, message), queue, None, due)

    async def flush(self) -> None:
        """Return when every send that began before has ended: stored, or failed within its timeout.

        Waiting batches of `auto_batch` leave at once. Results and errors are in the futures; one-way sends are not
        waited for.
        """
        self._require_running()
        await self._flush()

    async def send_oneway(
        self, topic: str | Message, body: bytes | str | None = None, **keywords: Unpack[SendKeywords]
    ) -> None:
        """Write one message without waiting for an answer: whether it was stored stays unknown.

        Arguments are those of `send`. Raises what prevents the writing, such as `NotReachable`.
        """
        message, destination = read_arguments(topic, body, keywords)
        sender = self._ready
        outgoing, due = self._prepare(sender, message), sender.due_in(self.settings.send_msg_timeout)
        if destination is not None:
            queue = await sender.queue_for(destination, message, due)
        else:
            route = sender.known_route(outgoing.topic) or await sender.find_route(outgoing.topic, due)
            queue = sender.choose(route, None)
        await sender.send_oneway(outgoing, queue, due)

    @checked
    async def send_batch(
        self, messages: Iterable[Message], *, queue: MessageQueue | None = None, timeout_ms: int | None = None
    ) -> list[SendResult]:
        """Store messages of one topic together; a long list is cut into as many batches as `max_message_size` needs.

        Returns one result for each batch, with the ids of its messages. Errors are those of `send`: the first batch
        that fails raises, those before it are stored. (The official client refuses a list that is too long.)
        """
        listed = list(messages)
        for message in listed:
            if not isinstance(message, Message):
                raise InvalidArgument(f"a batch is of Message, not {type(message).__name__}")
        sender = self._ready
        if queue is not None and listed:
            queue = queue_of_topic(queue, listed[0].topic, self._namespace)
        wired = [(message.topic, message.wire_properties()) for message in listed]
        check_batch(wired)
        for message in listed:
            check_message(message.topic, message.body, max_message_size=self.settings.max_message_size)
        sized = (
            BatchElement(message.flag, message.body, encode_properties(properties) + _ID_ROOM)
            for message, (_, properties) in zip(listed, wired, strict=True)
        )
        limit_ms = self.settings.send_msg_timeout if timeout_ms is None else timeout_ms
        results: list[SendResult] = []
        start = 0
        for run in split_batch(sized, self.settings.max_message_size):
            part, start = listed[start : start + len(run)], start + len(run)
            outgoing = sender.prepare_batch(part) if len(run) > 1 else self._prepare(sender, part[0])
            results.append(await self._send_prepared(sender, outgoing, queue, limit_ms))
        return results

    @checked
    async def recall(self, topic: str, recall_handle: str) -> str:
        """Cancel a timed message by the `recall_handle` of its `SendResult`, and return its id (5.x brokers).

        Raises `RequestRefused` if it was delivered already or the broker does not allow recalls, `InvalidArgument` for
        a text that is not a handle.
        """
        sender, instance = self._ready, self._running
        topic = self._namespace.wrap(topic)
        check_topic(topic)
        if is_retry_topic(topic) or is_dlq_topic(topic):
            raise InvalidArgument("topic is not supported")
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

    @checked
    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues to send to (official fetchPublishMessageQueues); `RouteNotFound` if the topic does not exist."""
        route = await self._require_running().routes.find_route(self._namespace.wrap(topic))
        return [self._namespace.unwrap_queue(queue) for queue in route.queues]

    @checked
    def add_retry_response_code(self, code: int) -> None:
        """Try another queue after this error response too."""
        self._ready.retry_response_codes.add(code)

    @checked
    async def resend(self, message: MessageExt) -> SendResult:
        """Send a stored message again with its properties, its id too; one attempt. Errors as `send`.

        What was sent in a transaction is an ordinary message then.
        """
        again = Message(message.topic, message.body, flag=message.flag)
        sender = self._ready
        kept = {name: value for name, value in message.properties.items() if name not in _NOT_RESENT}
        outgoing = sender.prepare(again, kept)
        return await sender.send(outgoing, sender.due_in(self.settings.send_msg_timeout), attempts=1)

    @checked
    async def reply(self, question: MessageExt, body: bytes | str) -> SendResult:
        """Answer a message that `Requester.request` sent, for instance from a listener. Errors as `send`;
        `InvalidArgument` if the message is not a request."""
        message, properties = reply_to(question, body)
        self._check(message)
        sender = self._ready
        outgoing = sender.prepare(message, message.wire_properties() | properties)
        return await self._send_prepared(sender, outgoing, None, self.settings.send_msg_timeout)

    # -- how

    @property
    def _ready(self) -> Sender:
        """The sender; `ClientClosed` before the start, after shutdown, or in another loop or thread."""
        self._require_running()
        return self._sender

    async def _flush(self) -> None:
        if self._accumulator is not None:
            await self._accumulator.finish()
        await self._async_sends.flush()

    def _check(self, message: Message) -> None:
        check_message(
            message.topic,
            message.body,
            max_message_size=self.settings.max_message_size,
            properties=message.properties,
        )

    def _prepare(self, sender: Sender, message: Message) -> Outgoing:
        self._check(message)
        return sender.prepare_message(message)

    def _add(
        self, accumulator: ProduceAccumulator, message: Message, queue: MessageQueue | None
    ) -> asyncio.Future[SendResult]:
        """Let a message wait for others."""
        self._check(message)
        # Raises for a reserved name while the batch has this one message only.
        properties = encode_properties(message.wire_properties()) + _ID_ROOM
        return accumulator.add(
            message, queue, element_bytes(BatchElement(message.flag, message.body, properties))
        )

    async def _send_together(
        self, messages: Sequence[Message], queue: MessageQueue | None, tags: str, keys: str
    ) -> SendResult:
        sender = self._sender
        if len(messages) == 1:
            outgoing = sender.prepare_message(messages[0])
        else:
            outgoing = sender.prepare_batch(messages, tags=tags, keys=keys)
        return await self._send_prepared(sender, outgoing, queue, self.settings.send_msg_timeout)

    async def _send_prepared(
        self, sender: Sender, outgoing: Outgoing, queue: MessageQueue | None, limit_ms: int
    ) -> SendResult:
        due = sender.due_in(limit_ms)
        if queue is not None:
            return await sender.send_to(outgoing, queue, due)
        attempts = 1 + self.settings.retry_times_when_send_failed
        return await sender.send(outgoing, due, attempts=attempts)


_NOT_RESENT: Final = frozenset((names.TRAN_MSG, names.MIN_OFFSET, names.MAX_OFFSET))
"""Properties of a half message, and of one reading of a message."""
_ID_ROOM: Final = b" " * CHECKED_UNIQUE_KEY_BYTES
