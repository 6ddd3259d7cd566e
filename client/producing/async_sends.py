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

from ..clock import steady_ms
from ..connections.route import Route
from ..errors import NotReachable, SendTimedOut
from ..hooks.hooks import CommunicationMode
from ..instance.instance import ClientInstance
from ..settings.producer_settings import ProducerSettings
from ..values.results import SendResult
from .outgoing import Outgoing
from .posted_send import AttemptFailed, PostedSend
from .send_retry import NO_CODE, Failure, is_async_repeated, send_failed, send_timed_out
from .sender import Sender


class AsyncSends:
    """Of one producer. `finish` before the connections end."""

    def __init__(self, instance: ClientInstance, sender: Sender) -> None:
        self.sender = sender
        self.settings = sender.settings
        self.loop = instance.loop
        self._tasks: set[asyncio.Task[SendResult]] = set()
        self._quick_sends = 0
        self._all_answered: asyncio.Event | None = None
        self._limits = _BackPressure(sender.settings)
        self._may_be_quick = not sender.settings.enable_backpressure_for_async_mode and sender.hooks is None

    def send(
        self, outgoing: Outgoing, queue: MessageQueue | None, limit_ms: int
    ) -> asyncio.Future[SendResult]:
        """Send to a queue, or round robin; the future gets the result, or `SendFailed`."""
        if self._may_be_quick:
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
        sender = self.sender
        chosen = queue or sender.choose(route, None)
        connection = sender.live_connection(chosen)
        if connection is None:
            return None
        send = _QuickSend(
            sender, outgoing, chosen, connection, self.loop, limit_ms / 1000, sender.attempt_begins()
        )
        send.sends, send.queue = self, queue
        try:
            sender.post(send)
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


class _QuickSend(PostedSend):
    """One send whose future the user holds. It counts as under way until the reply, even if that is cancelled."""

    __slots__ = ("queue", "sends")

    sends: AsyncSends
    queue: MessageQueue | None
    """As the user gave it."""

    closes_connection = False

    def ended(self) -> None:
        self.sends.quick_send_ended()

    def refused(self, failed: AttemptFailed) -> None:
        """A refusal is final."""
        self.result.set_exception(failed.as_send_failed())

    def unanswered(self, kind: Failure, error: Exception) -> None:
        """The send is repeated as a task, or fails."""
        sends, result = self.sends, self.result
        left_ms = int((self.due - sends.loop.time()) * 1000)
        if not sends.is_repeated(kind, 0, left_ms):
            result.set_exception(send_failed(kind, error))
            return
        again = sends.repeat(self.outgoing, self.queue, left_ms, failed_on=self.chosen)
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
