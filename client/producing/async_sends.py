"""Sends whose results are futures: many under way at once, repeats in the background, limits on how many.

If the route and the connection exist already, a send is one write and one callback (`_QuickSend`); only a send that has
to wait for something becomes a task. Mirrors the ASYNC mode of `DefaultMQProducerImpl` and the retries of
`MQClientAPIImpl`.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.command import Command

from ..clock import steady_ms
from ..connections.connection import Connection
from ..connections.route import Route
from ..errors import CallTimeout, NotReachable, SendTimedOut
from ..hooks.hooks import CommunicationMode
from ..instance.instance import ClientInstance
from ..settings.producer_settings import ProducerSettings
from ..values.results import SendResult
from .outgoing import Outgoing
from .send_retry import NO_CODE, Failure, is_async_repeated, send_failed, send_timed_out
from .sender import AttemptFailed, Sender


class AsyncSends:
    """Of one producer. `finish` before the connections end."""

    def __init__(self, instance: ClientInstance, sender: Sender) -> None:
        self._instance = instance
        self.sender = sender
        self.settings = sender.settings
        self.loop = instance.loop
        self._tasks: set[asyncio.Task[SendResult]] = set()
        self._quick_sends = 0
        self._all_answered: asyncio.Event | None = None
        self._limits = _BackPressure(sender.settings)

    def send(
        self, outgoing: Outgoing, queue: MessageQueue | None, limit_ms: int
    ) -> asyncio.Future[SendResult]:
        """Send to a queue, or round robin; the future gets the result, or `SendFailed`."""
        if not self.settings.enable_backpressure_for_async_mode and self.sender.hooks is None:
            route = self.sender.known_route(outgoing.topic)
            quick = None if route is None else self._send_quickly(outgoing, queue, route, limit_ms)
            if quick is not None:
                return quick
        return self.in_background(self._send(outgoing, queue, limit_ms))

    async def finish(self) -> None:
        """Return when nothing is under way any more, at the latest when the timeouts are over."""
        while self._quick_sends:
            self._all_answered = asyncio.Event()
            await self._all_answered.wait()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def in_background(self, work: Coroutine[Any, Any, SendResult]) -> asyncio.Task[SendResult]:
        """Run a send that cannot leave at once: `finish` waits for it."""
        task = self.loop.create_task(work, name="send")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- without a task

    def _send_quickly(
        self, outgoing: Outgoing, queue: MessageQueue | None, route: Route, limit_ms: int
    ) -> asyncio.Future[SendResult] | None:
        """One write and a callback; None if there is no connection to the queue's broker."""
        instance, sender = self._instance, self.sender
        chosen = queue or sender.choose(route, None)
        address = instance.routes.master(chosen.broker_name)
        connection = None if address is None else instance.connections.live(address)
        if connection is None:
            return None
        send = _QuickSend(self, outgoing, queue, chosen, connection, limit_ms)
        request, fields = sender.headers.of(outgoing, chosen)
        try:
            connection.post_for(send, request, outgoing.body, timeout_seconds=limit_ms / 1000, fields=fields)
        except NotReachable:
            return None
        self._quick_sends += 1
        return send.result

    def quick_send_ended(self) -> None:
        """Called once by each `_QuickSend`."""
        self._quick_sends -= 1
        if not self._quick_sends and self._all_answered is not None:
            self._all_answered.set()

    def repeat(
        self, outgoing: Outgoing, queue: MessageQueue | None, left_ms: int, *, failed_on: MessageQueue
    ) -> asyncio.Task[SendResult]:
        """Go on with a quick send whose attempt failed."""
        return self.in_background(self._send(outgoing, queue, left_ms, failed_on=failed_on))

    # -- as a task

    async def _send(
        self,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        limit_ms: int,
        *,
        failed_on: MessageQueue | None = None,
    ) -> SendResult:
        """Official ASYNC with its repeats: to another broker, unless the queue is given."""
        began_ms = steady_ms()
        retries_done = 0 if failed_on is None else 1
        async with self._limits.room_for(len(outgoing.body), limit_ms):
            while True:
                chosen = queue or await self._next_queue(outgoing.topic, failed_on)
                left_ms = limit_ms - (steady_ms() - began_ms)
                if left_ms <= 0:
                    raise send_timed_out("DEFAULT ASYNC send call timeout")
                try:
                    return await self.sender.attempt(outgoing, chosen, left_ms, CommunicationMode.ASYNC)
                except AttemptFailed as failed:
                    left_ms = limit_ms - (steady_ms() - began_ms)
                    if not self.is_repeated(failed.kind, retries_done, left_ms):
                        failure = failed.as_send_failed()
                        break
                    failed_on = chosen
                    retries_done += 1
        raise failure

    def is_repeated(self, failure: Failure, retries_done: int, left_ms: int) -> bool:
        retry_times = self.settings.retry_times_when_send_async_failed
        return is_async_repeated(failure, retries_done=retries_done, retry_times=retry_times, left_ms=left_ms)

    async def _next_queue(self, topic: str, failed_on: MessageQueue | None) -> MessageQueue:
        sender = self.sender
        route = sender.known_route(topic) or await sender.find_route(topic)
        return sender.choose(route, None if failed_on is None else failed_on.broker_name)


class _QuickSend:
    """One send without a task: the connection calls `replied` or `failed`, once. `result` is the user's future.

    It counts as under way until then, even if the user has cancelled the future.
    """

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

    def replied(self, reply: Command) -> None:
        """The broker answered: the result, or its refusal, which is final."""
        sends, result = self._sends, self.result
        sends.quick_send_ended()
        if result.done():
            return
        try:
            stored = sends.sender.read(self._outgoing, self._chosen, self._connection, reply, self._began_ms)
        except AttemptFailed as failed:
            result.set_exception(failed.as_send_failed())
        else:
            result.set_result(stored)

    def failed(self, error: Exception) -> None:
        """The broker did not answer: the send is repeated as a task, or fails. What a hook raised is final."""
        sends, result = self._sends, self.result
        sends.quick_send_ended()
        if result.done():
            return
        if not isinstance(error, NotReachable):
            result.set_exception(error)
            return
        left_ms = self._limit_ms - (steady_ms() - self._began_ms)
        kind = Failure.TIMEOUT if isinstance(error, CallTimeout) else Failure.SEND
        if not sends.is_repeated(kind, 0, left_ms):
            result.set_exception(send_failed(kind, error))
            return
        again = sends.repeat(self._outgoing, self._queue, left_ms, failed_on=self._chosen)
        again.add_done_callback(lambda task: _pass_on(task, result))


class _BackPressure:
    """Limits on sends under way as futures: how many, and how many bytes."""

    def __init__(self, settings: ProducerSettings) -> None:
        self._enabled = settings.enable_backpressure_for_async_mode
        self._count = settings.back_pressure_for_async_send_num
        self._bytes = settings.back_pressure_for_async_send_size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def room_for(self, body_bytes: int, timeout_ms: int) -> AsyncIterator[None]:
        """Wait for room and hold it; `SendTimedOut` in the official words if there is none in time."""
        if not self._enabled:
            yield
            return
        try:
            async with asyncio.timeout(timeout_ms / 1000), self._changed:
                await self._changed.wait_for(lambda: self._count > 0 and self._bytes >= body_bytes)
                self._count -= 1
                self._bytes -= body_bytes
        except TimeoutError:
            raise SendTimedOut(NO_CODE, "send message tryAcquire semaphoreAsyncNum timeout") from None
        try:
            yield
        finally:
            self._count += 1
            self._bytes += body_bytes
            async with self._changed:
                self._changed.notify_all()


def _pass_on(task: asyncio.Task[SendResult], result: asyncio.Future[SendResult]) -> None:
    """Let the user's future end as the task did that repeated the send."""
    if result.done():
        return
    if task.cancelled():
        result.cancel()
    elif (error := task.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(task.result())
