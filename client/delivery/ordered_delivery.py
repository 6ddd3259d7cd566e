"""Messages to an ordered listener: queue by queue, in order, and only while this consumer has the broker's lock.

One task for each queue takes messages as long as there are any, at most 60 s at a stretch; `consume_thread_min` queues
run at once. The listener runs under the consume lock of its queue, which must be held to give the queue up. What a
result does is `ordered_results.py`. Mirrors `ConsumeMessageOrderlyService`.
"""

import asyncio
import logging
import weakref
from collections.abc import Sequence
from typing import Final

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue

from ..clock import steady_ms
from ..rebalancing.process_queue import ProcessQueue
from ..rebalancing.queue_locks import QueueLocks
from ..tasks import Tasks
from ..values.listener_returns import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    is_nonsense,
    orderly_status,
    return_type,
)
from ..values.message import MessageExt
from .delivery_parts import DeliveryParts
from .listeners import SuspendQueue, failure_of
from .ordered_results import (
    LOCK_RETRY_DELAY_MS,
    LOCKED_RESUME_DELAY_MS,
    LOST_LOCK_DELAY_MS,
    MAX_TIME_CONSUME_CONTINUOUSLY_MS,
    NOT_LOCKED_RESUME_DELAY_MS,
    exhausted,
    ordered_reconsume_limit,
    settle,
    suspend_ms,
)

_log = logging.getLogger(__name__)


FAILURE_PAUSE_MS: Final = 1_000


class _Pause(msgspec.Struct, frozen=True):
    """Go on after `ms`; `relock`: ask the broker for the lock then, and wait again by its answer."""

    ms: int
    relock: bool = False


class OrderedDelivery:
    """`deliver` what was pulled; `stop` when the consumer shuts down."""

    def __init__(self, parts: DeliveryParts, locks: QueueLocks | None) -> None:
        """`locks`: None for a broadcasting consumer, which needs none."""
        self._parts = parts
        self._locks = locks
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(parts.settings.consume_thread_min)
        self._tasks = Tasks()
        self._queue_locks: dict[MessageQueue, asyncio.Lock] = {}
        # A queue may be assigned again while a listener still works on its last process queue: each has its own lock.
        self._consume_locks: weakref.WeakKeyDictionary[ProcessQueue, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )
        self._stopped = False

    def deliver(
        self,
        messages: Sequence[MessageExt],
        queue: MessageQueue,
        process_queue: ProcessQueue,
        *,
        starts_task: bool,
    ) -> None:
        """Messages that were just put into the process queue; a task takes them from there."""
        if starts_task and not self._stopped:
            self._tasks.spawn(self._run(queue, process_queue), f"{self._parts.group} {queue}")

    def consume_lock(self, process_queue: ProcessQueue) -> asyncio.Lock:
        """Held while the listener works on the queue's messages."""
        lock = self._consume_locks.get(process_queue)
        if lock is None:
            lock = self._consume_locks[process_queue] = asyncio.Lock()
        return lock

    async def stop(self, wait_ms: int) -> None:
        """Start no more listener calls, wait so long for running ones, then cancel them."""
        self._stopped = True
        await self._tasks.finish(wait_ms, self.abandon)

    def abandon(self) -> None:
        """Start no more listener calls, and cancel those that run, now."""
        self._stopped = True
        self._tasks.cancel()
        self._parts.call.close()

    async def call_once(self, message: MessageExt) -> tuple[object, Exception | None, ConsumeOrderlyContext]:
        """Call the listener for one message that is in no queue: what it returned or raised."""
        context = ConsumeOrderlyContext(message.queue)
        self._parts.restore_topics((message,))
        try:
            return await self._parts.call([message], context), None, context
        except SuspendQueue:
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, None, context
        except Exception as error:
            return None, error, context

    # -- one queue

    async def _run(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        queue_lock = self._queue_locks.setdefault(queue, asyncio.Lock())
        while not self._stopped:
            async with queue_lock, self._slots:
                try:
                    pause = await self._slice(queue, process_queue)
                except Exception:  # of a user's offset store: the queue must not stand still for ever
                    _log.exception("%s could not settle messages of %s", self._parts.group, queue)
                    process_queue.rollback()
                    pause = _Pause(FAILURE_PAUSE_MS)
            if pause is None:
                return
            await asyncio.sleep(pause.ms / 1000)
            if pause.relock and self._locks is not None:
                if process_queue.dropped:
                    return
                locked = await self._locks.lock(queue)
                delay_ms = LOCKED_RESUME_DELAY_MS if locked else NOT_LOCKED_RESUME_DELAY_MS
                await asyncio.sleep(delay_ms / 1000)

    def _lacks_lock(self, process_queue: ProcessQueue) -> bool:
        return self._locks is not None and (not process_queue.locked or process_queue.is_lock_expired)

    async def _slice(self, queue: MessageQueue, process_queue: ProcessQueue) -> _Pause | None:
        """Consume until nothing is left (None) or a pause is needed."""
        parts = self._parts
        if process_queue.dropped:
            return None
        if self._lacks_lock(process_queue):
            return _Pause(LOCK_RETRY_DELAY_MS, relock=True)
        began = self._loop.time()
        while not self._stopped:
            if process_queue.dropped:
                return None
            if self._lacks_lock(process_queue):
                return _Pause(LOST_LOCK_DELAY_MS, relock=True)
            if (self._loop.time() - began) * 1000 > MAX_TIME_CONSUME_CONTINUOUSLY_MS:
                return _Pause(LOCKED_RESUME_DELAY_MS)
            messages = process_queue.take(parts.settings.consume_message_batch_max_size)
            if not messages:
                return None
            pause_ms = await self._consume(messages, queue, process_queue)
            if pause_ms is not None:
                return _Pause(pause_ms)
        return None

    async def _consume(
        self, messages: list[MessageExt], queue: MessageQueue, process_queue: ProcessQueue
    ) -> int | None:
        """Call the listener and act on its result: the pause in ms, None to go on."""
        parts = self._parts
        parts.restore_topics(messages)
        context = ConsumeOrderlyContext(queue)
        hook_context = None if parts.hooks is None else parts.hooks.before(messages, queue)
        returned, raised = None, False
        began_ms = steady_ms()
        async with self.consume_lock(process_queue):
            if process_queue.dropped:
                return None
            try:
                returned = await self._parts.call(messages, context)
                status = orderly_status(returned)
                if is_nonsense(returned):
                    _log.warning("the listener of %s returned %r, which is no status", parts.group, returned)
            except SuspendQueue as suspend:
                context.suspend_current_queue_time_millis = suspend.suspend_ms
                returned = status = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            except (Exception, asyncio.CancelledError) as error:
                parts.listener_failed(failure_of(error), messages)
                status, raised = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, True
        is_ok = status is not ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        count = len(messages)
        took_ms = steady_ms() - began_ms
        parts.statistics.consumed(queue.topic, count if is_ok else 0, 0 if is_ok else count, took_ms)
        if parts.hooks is not None and hook_context is not None:
            limit_ms = parts.settings.consume_timeout * 60_000
            kind = return_type(returned, raised=raised, took_ms=took_ms, timeout_ms=limit_ms)
            parts.hooks.after(hook_context, status.value, is_success=is_ok, return_type=kind)
        return await self._settle(messages, queue, process_queue, status, context)

    async def _settle(
        self,
        messages: list[MessageExt],
        queue: MessageQueue,
        process_queue: ProcessQueue,
        status: ConsumeOrderlyStatus,
        context: ConsumeOrderlyContext,
    ) -> int | None:
        parts = self._parts
        limit = ordered_reconsume_limit(parts.settings.max_reconsume_times)
        not_sent = []
        if status is ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT:
            not_sent = [
                message
                for message in exhausted(messages, limit)
                if not await parts.send_back.send_to_dead_letters(message)
            ]
        elif context.auto_commit and status is not ConsumeOrderlyStatus.SUCCESS:
            _log.warning("%s needs a context with auto_commit = False; treated as SUCCESS", status.value)
        outcome = settle(
            process_queue,
            messages,
            status,
            auto_commit=context.auto_commit,
            max_times=limit,
            not_sent=not_sent,
        )
        if outcome.offset >= 0 and not process_queue.dropped:
            parts.offsets.update(queue, outcome.offset)
        if not outcome.pauses:
            return None
        return suspend_ms(
            context.suspend_current_queue_time_millis, parts.settings.suspend_current_queue_time_millis
        )
