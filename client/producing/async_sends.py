"""Sends whose results are futures: many under way at once, repeats in the background, limits on how many.

    known route, open connection    one write and one callback
    anything else                   queued in the order of the calls, behind the question for its topic's route, then
                                    behind the connect to its broker: one of each, however many sends wait

A repeat after a failure is queued the same way. Only a producer with hooks or backpressure has a task for each send.
Mirrors the ASYNC mode of `DefaultMQProducerImpl` and the retries of `MQClientAPIImpl`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext
from typing import Final

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue

from ..connections.connection import MAX_CALLS, Connection
from ..connections.route import Route
from ..errors import CallTimeout, ClientError, NotReachable, SendBufferFull, SendFailed, TooManyCalls
from ..hooks.hooks import CommunicationMode
from ..instance.instance import ClientInstance
from ..tasks import BackPressure, Tasks
from ..values.results import SendResult
from .outgoing import Outgoing
from .send_arguments import Destination
from .send_retry import (
    NO_CODE,
    AttemptFailed,
    Failure,
    PostedSend,
    is_async_repeated,
    send_failed,
    send_timed_out,
)
from .sender import Sender

SENDS_PER_TURN: Final = 256
"""Queued sends that get their queue, or their error, before other tasks run."""
FULL_WAIT_SECONDS: Final = 0.01
"""How long a queued send waits before it looks again whether its connection takes one more request."""


class _Round:
    """Sends without a task between two calls of `flush`."""

    __slots__ = ("ended", "under_way")

    def __init__(self) -> None:
        self.under_way = 0
        self.ended = asyncio.Event()

    def look(self) -> None:
        if not self.under_way:
            self.ended.set()


class _QueuedSend(msgspec.Struct, eq=False):
    """One send that waits for a route or a connection."""

    outgoing: Outgoing
    queue: MessageQueue | None
    """As the user gave it."""
    destination: Destination | None
    """Becomes `queue` once the route is known."""
    due: float
    round: _Round
    result: asyncio.Future[SendResult]
    retries_done: int = 0
    failed_on: str | None = None
    """The broker of the attempt before."""
    chosen: MessageQueue | None = None
    """Of this attempt, once the route is known."""
    timer: asyncio.TimerHandle | None = None
    """Fires at `due`; None once the send does not wait any more."""


_Line = deque[_QueuedSend]
_Work = Callable[[_Line], Awaitable[None]]


class AsyncSends:
    """Of one producer. `flush` before the connections end."""

    def __init__(self, instance: ClientInstance, sender: Sender) -> None:
        self.sender = sender
        self.settings = sender.settings
        self.loop = instance.loop
        self._tasks: set[asyncio.Task[SendResult]] = set()
        self._lines: dict[tuple[str, str], _Line] = {}
        """What waits for the route of a topic, with "", and for the connection to a broker, with its name."""
        self._openers = Tasks()
        """One for each line."""
        self._queued = 0
        self.round = _Round()
        """Counts the sends of now."""
        self._flushed_rounds: set[_Round] = set()
        """Earlier ones that `flush` still waits for."""
        settings = self.settings
        self._limits: BackPressure | None = None
        if settings.enable_backpressure_for_async_mode:
            self._limits = BackPressure(
                count=settings.back_pressure_for_async_send_num,
                size=settings.back_pressure_for_async_send_size,
            )
        self._may_be_quick = self._limits is None and sender.hooks is None

    def send(
        self, outgoing: Outgoing, queue: MessageQueue | None, destination: Destination | None, due: float
    ) -> asyncio.Future[SendResult]:
        """Send to a queue, to the `destination` once its topic's queues are known, or round robin; the future gets the
        result, or `SendFailed`. Raises `SendBufferFull`."""
        if not self._may_be_quick:
            task = self.loop.create_task(self._send(outgoing, queue, destination, due), name="send")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return task
        sender, lines, topic = self.sender, self._lines, outgoing.topic
        chosen = queue
        if queue is None:
            route = sender.known_route(topic) if destination is None else None
            chosen = None if route is None else sender.choose(route, None)
        if chosen is None or (lines and (topic, "") in lines):
            return self._queue(outgoing, queue, destination, due, None)
        connection = sender.live_connection(chosen)
        if connection is None or (lines and (topic, chosen.broker_name) in lines):
            return self._queue(outgoing, queue, None, due, chosen)
        send = _QuickSend(sender.outcomes, outgoing, chosen, connection, due)
        send.sends, send.queue, send.round, send.retries_done = self, queue, self.round, 0
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

    def check_room(self) -> None:
        """`SendBufferFull` if too many sends wait to leave: for a route, a connection, or a repeat."""
        if self._queued + len(self._tasks) >= MAX_CALLS:
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

    def close(self) -> None:
        """Fail what still waits to leave: nothing after `flush`, unless that was cancelled."""
        self._openers.cancel()
        lines, self._lines = self._lines, {}
        for line in lines.values():
            self._fail_all(line, NotReachable("the client is shut down"))

    def ended(self, round_: _Round) -> None:
        """A send of this round ended. One that is repeated begins again before the loop turns."""
        round_.under_way -= 1
        if not round_.under_way and round_ is not self.round:
            self.loop.call_soon(round_.look)

    # -- sends that wait

    def _queue(
        self,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        destination: Destination | None,
        due: float,
        chosen: MessageQueue | None,
    ) -> asyncio.Future[SendResult]:
        send = _QueuedSend(outgoing, queue, destination, due, self.round, self.loop.create_future())
        self._admit(send)
        if chosen is None:
            self._wait_for_route(send)
        else:
            self._wait_for_broker(send, chosen)
        return send.result

    def _admit(self, send: _QueuedSend) -> None:
        send.timer = self.loop.call_at(send.due, self._expire, send)
        send.round.under_way += 1
        self._queued += 1

    def _release(self, send: _QueuedSend) -> None:
        """It waits no longer."""
        assert send.timer is not None
        send.timer.cancel()
        send.timer = None
        self._queued -= 1

    def _fail(self, send: _QueuedSend, error: Exception) -> None:
        self._release(send)
        self.ended(send.round)
        if not send.result.done():
            send.result.set_exception(error)

    def _expire(self, send: _QueuedSend) -> None:
        chosen = send.chosen
        if chosen is None:
            text = f"No route info of this topic: {send.outgoing.topic}; no name server answered in time"
            self._fail(send, send_timed_out(text))
            return
        error = CallTimeout(f"no connection to broker {chosen.broker_name} in time")
        outcomes = self.sender.outcomes
        failed = outcomes.note_failure(Failure.TIMEOUT, error, chosen, outcomes.attempt_begins())
        self._fail(send, failed.as_send_failed())

    def _first(self, line: _Line) -> _QueuedSend | None:
        """The first send that still waits; those before it were cancelled, or are out of time."""
        while line:
            send = line[0]
            if send.timer is not None:
                if send.result.done():
                    self._release(send)
                    self.ended(send.round)
                elif self.loop.time() >= send.due:
                    self._expire(send)
                else:
                    return send
            line.popleft()
        return None

    async def _each(self, line: _Line) -> AsyncIterator[_QueuedSend]:
        """Take one send after another out of a line; other tasks run in between."""
        count = 0
        while (send := self._first(line)) is not None:
            line.popleft()
            yield send
            count += 1
            if count % SENDS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _wait(self, send: _QueuedSend, key: tuple[str, str], work: _Work) -> None:
        """Let a send wait in a line. Its first send begins the `work` that the line waits for."""
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = deque()
            self._openers.spawn(self._open(key, line, work), f"sends to {key}")
        line.append(send)

    async def _open(self, key: tuple[str, str], line: _Line, work: _Work) -> None:
        """Do what a line waits for; the line ends with it."""
        failure: Exception = NotReachable("the client is shut down")
        try:
            await work(line)
        except Exception as error:  # our mistake: its sends do not wait for their time to be over
            failure = error
            raise
        finally:
            if self._lines.get(key) is line:
                del self._lines[key]
                self._fail_all(line, failure)

    def _fail_all(self, line: _Line, error: Exception) -> None:
        while (send := self._first(line)) is not None:
            self._fail(send, send_failed(None, error))

    def _wait_for_route(self, send: _QueuedSend) -> None:
        topic = send.outgoing.topic
        self._wait(send, (topic, ""), lambda line: self._find_route(topic, line))

    async def _find_route(self, topic: str, line: _Line) -> None:
        """Ask once; then each send of the line gets its queue, or its error."""
        try:
            route = await self.sender.find_route(topic)
        except SendFailed as error:
            del self._lines[topic, ""]  # sends of from now on ask again
            async for send in self._each(line):
                failure = type(error)(error.code, str(error), retriable=error.retriable)
                failure.__cause__ = error.__cause__
                self._fail(send, failure)
            return
        async for send in self._each(line):
            try:
                chosen = self._choose(send, route)
            except ClientError as error:
                self._fail(send, error)
            else:
                self._wait_for_broker(send, chosen)

    def _choose(self, send: _QueuedSend, route: Route | None) -> MessageQueue:
        """The queue of the next attempt; the route is needed unless the user gave it. What `Sender.resolve`
        raises."""
        if send.destination is not None:
            send.queue = self.sender.resolve(send.destination, send.outgoing.message, route)
            send.destination = None
        if send.queue is not None:
            return send.queue
        assert route is not None
        return self.sender.choose(route, send.failed_on)

    def _wait_for_broker(self, send: _QueuedSend, chosen: MessageQueue) -> None:
        send.chosen = chosen
        key = send.outgoing.topic, chosen.broker_name
        self._wait(send, key, lambda line: self._connect(key, chosen, line))

    async def _connect(self, key: tuple[str, str], queue: MessageQueue, line: _Line) -> None:
        """Connect to the broker unless there is a connection, then send what waits, as the broker accepts it."""
        while self._first(line) is not None:
            try:
                connection = await self.sender.reach(queue)
            except AttemptFailed as failed:
                del self._lines[key]  # repeats connect again
                async for send in self._each(line):
                    self._attempt_failed(send, failed)
                return
            while (next_send := self._first(line)) and self.sender.live_connection(queue) is connection:
                if self._post(next_send, connection):
                    line.popleft()
                    await connection.drained()
                else:
                    await asyncio.sleep(FULL_WAIT_SECONDS)

    def _post(self, queued: _QueuedSend, connection: Connection) -> bool:
        """Send now. False if the connection takes no more requests."""
        assert queued.chosen is not None
        send = _QuickSend(
            self.sender.outcomes, queued.outgoing, queued.chosen, connection, queued.due, queued.result
        )
        send.sends, send.queue, send.round = self, queued.queue, queued.round
        send.retries_done = queued.retries_done
        try:
            self.sender.post(send)
        except AttemptFailed as failed:
            if isinstance(failed.error, TooManyCalls):
                return False
            self._attempt_failed(queued, failed)
        except ClientError as error:
            self._fail(queued, error)
        else:
            self._release(queued)
        return True

    def _attempt_failed(self, send: _QueuedSend, failed: AttemptFailed) -> None:
        self._release(send)
        self.ended(send.round)
        self.failed(send, failed)

    def failed(self, send: "_QuickSend | _QueuedSend", failed: AttemptFailed) -> None:
        """An attempt did not reach the broker, or got no answer: the send is queued again, or fails."""
        if send.result.done():
            return
        if not self._is_repeated(failed.kind, send.retries_done, send.due):
            send.result.set_exception(failed.as_send_failed())
            return
        assert send.chosen is not None
        done, failed_on = send.retries_done + 1, send.chosen.broker_name
        again = _QueuedSend(
            send.outgoing, send.queue, None, send.due, send.round, send.result, done, failed_on
        )
        self._admit(again)
        route = self.sender.known_route(send.outgoing.topic)
        if (send.outgoing.topic, "") in self._lines or (route is None and send.queue is None):
            self._wait_for_route(again)
        else:
            self._wait_for_broker(again, self._choose(again, route))

    # -- as a task

    async def _send(
        self, outgoing: Outgoing, queue: MessageQueue | None, destination: Destination | None, due: float
    ) -> SendResult:
        """Official ASYNC with its repeats: to another broker, unless the queue is given."""
        retries_done, failed_on, sender = 0, None, self.sender
        if destination is not None:
            queue = await sender.queue_for(destination, outgoing.message, due)
        limits = self._limits
        async with nullcontext() if limits is None else limits.room_for(len(outgoing.body), due):
            while True:
                chosen = queue
                if chosen is None:
                    route = sender.known_route(outgoing.topic) or await sender.find_route(outgoing.topic, due)
                    chosen = sender.choose(route, failed_on)
                if self.loop.time() >= due:
                    raise send_timed_out("DEFAULT ASYNC send call timeout")
                try:
                    return await sender.attempt(outgoing, chosen, due, CommunicationMode.ASYNC)
                except AttemptFailed as failed:
                    if not self._is_repeated(failed.kind, retries_done, due):
                        failure = failed.as_send_failed()
                        break
                    failed_on = chosen.broker_name
                    retries_done += 1
        raise failure

    def _is_repeated(self, failure: Failure, retries_done: int, due: float) -> bool:
        left_ms = int((due - self.loop.time()) * 1000)
        retry_times = self.settings.retry_times_when_send_async_failed
        return is_async_repeated(failure, retries_done=retries_done, retry_times=retry_times, left_ms=left_ms)


class _QuickSend(PostedSend):
    """One send whose future the user holds. It counts as under way until the reply, even if that is cancelled."""

    __slots__ = ("queue", "retries_done", "round", "sends")

    sends: AsyncSends
    queue: MessageQueue | None
    """As the user gave it."""
    retries_done: int
    round: _Round

    def ended(self) -> None:
        self.sends.ended(self.round)

    def refused(self, failed: AttemptFailed) -> None:
        """A refusal is final."""
        self.result.set_exception(failed.as_send_failed())

    def unanswered(self, kind: Failure, error: Exception) -> None:
        """The send is queued again, or fails."""
        self.sends.failed(self, self.outcomes.note_failure(kind, error, self.chosen, self.began_ms))
