"""Ask and be answered through topics: a request is a message, its reply comes back over the asker's connection.

    async with Requester("askers", namesrv_addr=...) as requester:
        reply = await requester.request("Questions", b"how much?", timeout_ms=3000)

    async def answer(message):                             # a listener on the other side
        await send_reply(producer, message, b"42")

The broker the question was stored at pushes the reply (326), so both sides must be connected to it. Mirrors the
request part of `DefaultMQProducerImpl`, `RequestFutureHolder` and `MessageUtil.createReplyMessage`. Next:
`push/message_stream.py`.
"""

import asyncio
import uuid
from collections.abc import Iterable
from typing import Any, Unpack

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import reply_topic

from ..clock import steady_ms, wall_ms
from ..errors import ClientError, RequestTimeout, SendFailed
from ..hooks.hooks import Hook
from ..settings.keywords import ProducerOptions
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message, MessageExt
from ..values.results import SendResult
from .producer import Producer, message_of
from .queue_choice import MessageQueueSelector


class Requester(Producer):
    """A producer that waits for replies."""

    def __init__(
        self,
        group: str,
        *,
        settings: ProducerSettings | None = None,
        hooks: Iterable[Hook] = (),
        **options: Unpack[ProducerOptions],
    ) -> None:
        super().__init__(group, settings=settings, hooks=hooks, **options)
        self._waiting: dict[str, asyncio.Future[MessageExt]] = {}

    async def request(
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
        timeout_ms: int = 3_000,
    ) -> MessageExt:
        """Send a question and return its reply; `RequestTimeout` (code 10006) where none came in time.

        `timeout_ms` is for both ways. Queues and selectors, and errors in sending, are those of `send`.
        """
        message = message_of(topic, body, tags, keys, properties)
        sender, instance = self._ready, self._running
        self._check(message)
        began_ms = steady_ms()
        topic = self.namespace.wrap(message.topic)
        if sender.known_route(topic) is None:
            await sender.find_route(topic)
            await instance.heartbeats.send()  # the broker must know this connection before it can push
        correlation_id = str(uuid.uuid4())
        queue = await self._asked_for(message, queue, queue_id, selector, arg)
        wired = message.wire_properties()
        wired |= {
            names.CORRELATION_ID: correlation_id,
            names.REPLY_TO_CLIENT: instance.client_id,
            names.TTL: str(timeout_ms),
        }
        outgoing = sender.prepare(message, wired)
        future: asyncio.Future[MessageExt] = instance.loop.create_future()
        self._waiting[correlation_id] = future
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if queue is None:
                    await sender.send(outgoing, timeout_ms, attempts=1)
                else:
                    await sender.send_to(outgoing, queue, timeout_ms)
                return await future
        except TimeoutError:
            raise RequestTimeout(
                f"send request message to <{message.topic}> OK, but wait reply message timeout, "
                f"{steady_ms() - began_ms} ms."
            ) from None
        except SendFailed as error:
            raise SendFailed(error.code, f"send request message to <{message.topic}> fail") from error
        finally:
            self._waiting.pop(correlation_id, None)

    def reply_arrived(self, correlation_id: str, reply: MessageExt) -> bool:
        """A broker pushed a reply."""
        future = self._waiting.get(correlation_id)
        if future is None or future.done():
            return False
        reply.properties[names.ARRIVE_TIME] = str(wall_ms())
        future.set_result(reply)
        return True


async def send_reply(producer: Producer, question: MessageExt, body: bytes) -> SendResult:
    """Answer a question from a listener; `ClientError` for a message that is none."""
    asked = question.properties
    cluster = asked.get(names.CLUSTER)
    if not cluster or names.REPLY_TO_CLIENT not in asked or names.CORRELATION_ID not in asked:
        raise ClientError(
            f"create reply message fail, requestMessage error, property[{names.CLUSTER}] is null."
        )
    sender = producer._ready
    message = Message(reply_topic(cluster), body)
    producer._check(message)
    properties = message.wire_properties()
    properties[names.MSG_TYPE] = "reply"
    for name in (names.CORRELATION_ID, names.REPLY_TO_CLIENT, names.TTL):
        if name in asked:
            properties[name] = asked[name]
    outgoing = sender.prepare(message, properties)
    settings = producer.settings
    return await sender.send(
        outgoing, settings.send_msg_timeout, attempts=1 + settings.retry_times_when_send_failed
    )
