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

from ..connections.connection import MAX_CALLS
from ..connections.route import Route
from ..errors import SendBufferFull, SendTimedOut
from ..hooks.hooks import CommunicationMode
from ..instance.instance import ClientInstance
from ..settings.producer_settings import ProducerSettings
from ..values.results import SendResult
from .outgoing import Outgoing
from .posted_send import AttemptFailed, PostedSend
from .send_retry import NO_CODE, Failure, is_async_repeated, send_failed, send_timed_out
from .sender import Sender


class AsyncSends:
    """Of one producer. `flush` before the connections end."""

    def __init__(self, instance: ClientInstance, sender: Sender) -> None:
        self.sender = sender
        self.settings = sender.settings
        self.loop = instance.loop
        self._tasks: set[asyncio.Task[SendResult]] = set()
        self.round = _Round()
        """Counts the sends of now."""
        self._flushed_rounds: set[_Round] = set()
        """Earlier ones that `flush` still waits for."""
        self._limits = _BackPressure(sender.settings)
        self._may_be_quick = not sender.settings.enable_backpressure_for_async_mode and sender.hooks is None

    def send(self, outgoing: Outgoing, queue: MessageQueue | None, due: float) -> asyncio.Future[SendResult]:
        """Send to a queue, or round robin; the future gets the result, or `SendFailed`. Raises `SendBufferFull`."""
        if self._may_be_quick:
            route = self.sender.known_route(outgoing.topic)
            quick = None if route is None else self._send_quickly(outgoing, queue, route, due)
            if quick is not None:
                return quick
        return self.in_background(self._send(outgoing, queue, due))

    def check_room(self) -> None:
        """`SendBufferFull` if too many sends wait in the background: for a route, a connection, or a repeat."""
        if len(self._tasks) >= MAX_CALLS:
            raise SendBufferFull(
                NO_CODE, f"{MAX_CALLS} sends wait to leave: wait for some before sending more"
            )

    async def flush(self) -> None:
        """Return when every send of before this call has ended, at the latest when their timeouts are over."""
        if self.round.under_way:
            self._flushed_rounds.add(self.round)
            self.round = _Round()
        for earlier in list(self._flushed_rounds):
            await earlier.ended.wait()
            self._flushed_rounds.discard(earlier)
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def in_background(self, work: Coroutine[Any, Any, SendResult]) -> asyncio.Task[SendResult]:
        """Run a send that cannot leave at once: `finish` waits for it."""
        task = self.loop.create_task(work, name="send")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- without a task

    def _send_quickly(
        self, outgoing: Outgoing, queue: MessageQueue | None, route: Route, due: float
    ) -> asyncio.Future[SendResult] | None:
        """One write and a callback; None if there is no connection to the queue's broker."""
        sender = self.sender
        chosen = queue or sender.choose(route, None)
        connection = sender.live_connection(chosen)
        if connection is None:
            return None
        send = _QuickSend(sender, outgoing, chosen, connection, due)
        send.sends, send.queue, send.round = self, queue, self.round
        try:
            sender.post(send)
        except AttemptFailed as failed:  # too many requests wait for replies: a repeat would not help
            failure = failed.as_send_failed()
            if isinstance(failure, SendBufferFull):
                raise failure from failed.error
            send.result.set_exception(failure)
        else:
            self.round.under_way += 1
        return send.result

    def repeat(
        self, outgoing: Outgoing, queue: MessageQueue | None, due: float, *, failed_on: MessageQueue
    ) -> asyncio.Task[SendResult]:
        """Go on with a quick send whose attempt failed."""
        return self.in_background(self._send(outgoing, queue, due, failed_on=failed_on))

    # -- as a task

    async def _send(
        self,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        due: float,
        *,
        failed_on: MessageQueue | None = None,
    ) -> SendResult:
        """Official ASYNC with its repeats: to another broker, unless the queue is given."""
        retries_done = 0 if failed_on is None else 1
        async with self._limits.room_for(len(outgoing.body), due):
            while True:
                chosen = queue or await self._next_queue(outgoing.topic, failed_on, due)
                if self.loop.time() >= due:
                    raise send_timed_out("DEFAULT ASYNC send call timeout")
                try:
                    return await self.sender.attempt(outgoing, chosen, due, CommunicationMode.ASYNC)
                except AttemptFailed as failed:
                    if not self.is_repeated(failed.kind, retries_done, due):
                        failure = failed.as_send_failed()
                        break
                    failed_on = chosen
                    retries_done += 1
        raise failure

    def is_repeated(self, failure: Failure, retries_done: int, due: float) -> bool:
        left_ms = int((due - self.loop.time()) * 1000)
        retry_times = self.settings.retry_times_when_send_async_failed
        return is_async_repeated(failure, retries_done=retries_done, retry_times=retry_times, left_ms=left_ms)

    async def _next_queue(self, topic: str, failed_on: MessageQueue | None, due: float) -> MessageQueue:
        sender = self.sender
        route = sender.known_route(topic) or await sender.find_route(topic, due)
        return sender.choose(route, None if failed_on is None else failed_on.broker_name)


class _Round:
    """Quick sends between two calls of `flush`."""

    __slots__ = ("ended", "under_way")

    def __init__(self) -> None:
        self.under_way = 0
        self.ended = asyncio.Event()


class _QuickSend(PostedSend):
    """One send whose future the user holds. It counts as under way until the reply, even if that is cancelled."""

    __slots__ = ("queue", "round", "sends")

    sends: AsyncSends
    queue: MessageQueue | None
    """As the user gave it."""
    round: _Round

    def ended(self) -> None:
        self.round.under_way -= 1
        if not self.round.under_way and self.round is not self.sends.round:
            self.sends.loop.call_soon(self.round.ended.set)

    def refused(self, failed: AttemptFailed) -> None:
        """A refusal is final."""
        self.result.set_exception(failed.as_send_failed())

    def unanswered(self, kind: Failure, error: Exception) -> None:
        """The send is repeated as a task, or fails."""
        sends, result = self.sends, self.result
        if not sends.is_repeated(kind, 0, self.due):
            result.set_exception(send_failed(kind, error))
            return
        again = sends.repeat(self.outgoing, self.queue, self.due, failed_on=self.chosen)
        again.add_done_callback(lambda task: _pass_on(task, result))


class _BackPressure:
    """Limits on sends under way as futures: how many, and how many bytes."""

    def __init__(self, settings: ProducerSettings) -> None:
        self._enabled = settings.enable_backpressure_for_async_mode
        self._count = settings.back_pressure_for_async_send_num
        self._bytes = settings.back_pressure_for_async_send_size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def room_for(self, body_bytes: int, due: float) -> AsyncIterator[None]:
        """Wait for room and hold it; `SendTimedOut` in the official words if there is none in time."""
        if not self._enabled:
            yield
            return
        try:
            async with asyncio.timeout_at(due), self._changed:
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
    """Let the user's future end as the task did that repeated the send, unless the user cancelled it."""
    error = None if task.cancelled() else task.exception()  # seen, whether or not the user still waits
    if result.done():
        return
    if task.cancelled():
        result.cancel()
    elif error is not None:
        result.set_exception(error)
    else:
        result.set_result(task.result())
