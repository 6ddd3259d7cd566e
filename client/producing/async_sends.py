"""Sends whose results come as futures: many under way at once, repeats in the background, limits on how many.

Where the route and the connection are there already, a send is one write and one callback; only what has to wait
becomes a task. Mirrors the ASYNC mode of `DefaultMQProducerImpl` and the retries of `MQClientAPIImpl`. Next:
`producer.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.command import Command

from ..clock import steady_ms
from ..connections.connection import Connection
from ..connections.route import Route
from ..errors import CallTimeout, ClientError, NotReachable
from ..hooks.hooks import CommunicationMode
from ..settings.producer_settings import ProducerSettings
from ..values.results import SendResult
from .outgoing import Outgoing
from .send_retry import Failure, async_verdict
from .sender import AttemptFailed, Sender

if TYPE_CHECKING:
    from ..instance.instance import ClientInstance


class AsyncSends:
    """Of one producer. `finish` before the connections end."""

    def __init__(self, instance: "ClientInstance", sender: Sender) -> None:
        self._instance = instance
        self.sender = sender
        self.settings = sender.settings
        self._under_way: set[asyncio.Task[SendResult]] = set()
        self._posted = 0
        self._all_answered: asyncio.Event | None = None
        self.loop = instance.loop
        self._pressure = _BackPressure(sender.settings)

    def send(
        self, outgoing: Outgoing, queue: MessageQueue | None, limit_ms: int
    ) -> asyncio.Future[SendResult]:
        """Send to a queue, or to one in turn; the future brings the result or what the last attempt failed with."""
        if not self.settings.enable_backpressure_for_async_mode and self.sender.hooks is None:
            route = self.sender.known_route(outgoing.topic)
            quick = None if route is None else self._post(outgoing, queue, route, limit_ms)
            if quick is not None:
                return quick
        return self.in_background(self._send(outgoing, queue, limit_ms))

    async def finish(self) -> None:
        """Return when nothing is under way any more, at the latest when the timeouts are over."""
        while self._posted:
            self._all_answered = asyncio.Event()
            await self._all_answered.wait()
        while self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)

    def _post(
        self, outgoing: Outgoing, queue: MessageQueue | None, route: Route, limit_ms: int
    ) -> asyncio.Future[SendResult] | None:
        """The quick way: the connection is there, one write and a callback. None where it is not."""
        instance, sender = self._instance, self.sender
        chosen = queue or sender.choose(route, None)
        address = instance.routes.master(chosen.broker_name)
        connection = None if address is None else instance.connections.live(address)
        if connection is None:
            return None
        posted = _Posted(self, outgoing, queue, chosen, connection, limit_ms)
        request, fields = sender.headers.of(outgoing, chosen)
        try:
            connection.post_for(
                posted, request, outgoing.body, timeout_seconds=limit_ms / 1000, fields=fields
            )
        except NotReachable:
            return None
        self._posted += 1
        return posted.result

    def answered(self) -> None:
        """One of the quick sends has ended."""
        self._posted -= 1
        if not self._posted and self._all_answered is not None:
            self._all_answered.set()

    async def _send(
        self,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        limit_ms: int,
        *,
        failed_on: MessageQueue | None = None,
    ) -> SendResult:
        """Official ASYNC with its repeats: on another broker where the queue is not given."""
        began_ms = steady_ms()
        retries_done = 0 if failed_on is None else 1
        async with self._pressure.room_for(len(outgoing.body), limit_ms):
            while True:
                chosen = queue or await self._next_queue(outgoing.topic, failed_on)
                left_ms = limit_ms - (steady_ms() - began_ms)
                if left_ms <= 0:
                    raise CallTimeout("DEFAULT ASYNC send call timeout")
                try:
                    return await self.sender.attempt(outgoing, chosen, left_ms, CommunicationMode.ASYNC)
                except AttemptFailed as failed:
                    verdict = async_verdict(
                        failed.kind,
                        retries_done=retries_done,
                        retry_times=self.settings.retry_times_when_send_async_failed,
                        left_ms=limit_ms - (steady_ms() - began_ms),
                    )
                    if not verdict.again:
                        raise failed.error from None
                    failed_on = chosen
                    retries_done += 1

    def send_again(
        self, outgoing: Outgoing, queue: MessageQueue | None, left_ms: int, *, failed_on: MessageQueue
    ) -> asyncio.Task[SendResult]:
        """Repeat a send whose first attempt failed."""
        return self.in_background(self._send(outgoing, queue, left_ms, failed_on=failed_on))

    async def _next_queue(self, topic: str, failed_on: MessageQueue | None) -> MessageQueue:
        sender = self.sender
        route = sender.known_route(topic) or await sender.find_route(topic)
        return sender.choose(route, None if failed_on is None else failed_on.broker_name)

    def in_background(self, work: Coroutine[Any, Any, SendResult]) -> asyncio.Task[SendResult]:
        """A send that cannot leave at once: `finish` waits for it."""
        task = self._instance.loop.create_task(work, name="send")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task


class _Posted:
    """One send on the quick way, waiting for its reply: the connection tells it, without a callback between."""

    __slots__ = (
        "_began_ms",
        "_chosen",
        "_connection",
        "_limit_ms",
        "_outgoing",
        "_queue",
        "_sends",
        "result",
    )

    def __init__(
        self,
        sends: AsyncSends,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        chosen: MessageQueue,
        connection: Connection,
        limit_ms: int,
    ) -> None:
        self._sends = sends
        self._outgoing = outgoing
        self._queue = queue
        self._chosen = chosen
        self._connection = connection
        self._limit_ms = limit_ms
        self._began_ms = steady_ms()
        self.result: asyncio.Future[SendResult] = sends.loop.create_future()

    def done(self) -> bool:
        """False: it counts as under way until its end, even where the user gave up the future."""
        return False

    def set_result(self, reply: Command, /) -> None:
        sends, result = self._sends, self.result
        sends.answered()
        if result.done():
            return
        try:
            result.set_result(
                sends.sender.read(self._outgoing, self._chosen, self._connection, reply, self._began_ms)
            )
        except AttemptFailed as failed:
            result.set_exception(failed.error)

    def set_exception(self, error: Exception, /) -> None:
        """No reply: perhaps once more, as a task. What a hook raised is final."""
        sends, result = self._sends, self.result
        sends.answered()
        if result.done():
            return
        if not isinstance(error, NotReachable):
            result.set_exception(error)
            return
        left_ms = self._limit_ms - (steady_ms() - self._began_ms)
        kind = Failure.TIMEOUT if isinstance(error, CallTimeout) else Failure.SEND
        retry_times = sends.settings.retry_times_when_send_async_failed
        if not async_verdict(kind, retries_done=0, retry_times=retry_times, left_ms=left_ms).again:
            result.set_exception(error)
            return
        again = sends.send_again(self._outgoing, self._queue, left_ms, failed_on=self._chosen)
        again.add_done_callback(lambda done: _copy(done, result))


class _BackPressure:
    """Limits on sends under way as futures: how many, and how many bytes."""

    def __init__(self, settings: ProducerSettings) -> None:
        self._enabled = settings.enable_backpressure_for_async_mode
        self._count = settings.back_pressure_for_async_send_num
        self._bytes = settings.back_pressure_for_async_send_size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def room_for(self, body_bytes: int, timeout_ms: int) -> AsyncIterator[None]:
        """Hold a place; `ClientError` in the official words where none is free in time."""
        if not self._enabled:
            yield
            return
        try:
            async with asyncio.timeout(timeout_ms / 1000), self._changed:
                await self._changed.wait_for(lambda: self._count > 0 and self._bytes >= body_bytes)
                self._count -= 1
                self._bytes -= body_bytes
        except TimeoutError:
            raise ClientError("send message tryAcquire semaphoreAsyncNum timeout") from None
        try:
            yield
        finally:
            self._count += 1
            self._bytes += body_bytes
            async with self._changed:
                self._changed.notify_all()


def _copy(done: asyncio.Future[SendResult], result: asyncio.Future[SendResult]) -> None:
    if result.done():
        return
    if done.cancelled():
        result.cancel()
    elif (error := done.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(done.result())
