"""Ask and be answered through topics: a request is a message, its reply arrives over the asker's connection.

    async with Requester("askers", namesrv_addr=...) as requester:
        reply = await requester.request("Questions", b"how much?", timeout_ms=3000)

    async def answer(message):                             # a listener on the other side
        await producer.reply(message, b"42")

The broker that stored the question pushes the reply (326), so both sides must be connected to it. Mirrors the request
part of `DefaultMQProducerImpl` and `RequestFutureHolder`. The reply itself is made in `outgoing.py`.
"""

import asyncio
import uuid
from contextlib import suppress
from typing import Any, Unpack

from pocketmq.protocol.message import properties as names

from ..arguments import checked
from ..clock import wall_ms
from ..errors import RequestTimeout, SendFailed
from ..instance.instance import ClientInstance
from ..values.message import Message, MessageExt
from .producer import Producer
from .send_arguments import SendKeywords, read_arguments
from .sender import Sender


class Requester(Producer):
    """A producer that waits for replies."""

    _waiting: dict[str, asyncio.Future[MessageExt]]

    def _make_sender(self, instance: ClientInstance) -> Sender:
        sender = _AskingSender(instance, self._group, self.settings, self._hooks)
        self._waiting = sender.waiting
        return sender

    @checked
    async def request(
        self,
        topic: str | Message,
        body: bytes | str | None = None,
        *,
        timeout_ms: int = 3_000,
        **keywords: Unpack[SendKeywords],
    ) -> MessageExt:
        """Send a request and return its reply; `RequestTimeout` (code 10006) if none arrives in time.

        `timeout_ms` is for both ways. Arguments, and errors in sending, are those of `send`, but there is one attempt.
        """
        message, destination = read_arguments(topic, body, keywords)
        sender, instance = self._ready, self._running
        self._check(message)
        due = sender.due_in(timeout_ms)
        topic = self._namespace.wrap(message.topic)
        if sender.known_route(topic) is None:
            await sender.find_route(topic, due)
            with suppress(TimeoutError):  # the send will say so
                async with asyncio.timeout_at(due):
                    # The broker must know this connection before it can push.
                    await instance.heartbeats.send()
        correlation_id = str(uuid.uuid4())
        queue = None if destination is None else await sender.queue_for(destination, message, due)
        properties = message.wire_properties() | {
            names.CORRELATION_ID: correlation_id,
            names.REPLY_TO_CLIENT: instance.client_id,
            names.TTL: str(timeout_ms),
        }
        outgoing = sender.prepare(message, properties)
        reply: asyncio.Future[MessageExt] = instance.loop.create_future()
        self._waiting[correlation_id] = reply
        try:
            if queue is None:
                await sender.send(outgoing, due, attempts=1)
            else:
                await sender.send_to(outgoing, queue, due)
            async with asyncio.timeout_at(due):
                return await reply
        except SendFailed as error:
            text = f"send request message to <{message.topic}> fail"
            raise type(error)(error.code, text, retriable=error.retriable) from error
        except TimeoutError:
            raise RequestTimeout(
                f"send request message to <{message.topic}> OK, but wait reply message timeout, {timeout_ms} ms."
            ) from None
        finally:
            self._waiting.pop(correlation_id, None)


class _AskingSender(Sender):
    """Gives replies to the requests that wait for them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.waiting: dict[str, asyncio.Future[MessageExt]] = {}
        """By correlation id."""

    def reply_arrived(self, correlation_id: str, reply: MessageExt) -> bool:
        future = self.waiting.get(correlation_id)
        if future is None or future.done():
            return False
        reply.properties[names.ARRIVE_TIME] = str(wall_ms())
        future.set_result(reply)
        return True
