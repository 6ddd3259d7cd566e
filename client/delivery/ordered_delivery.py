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

from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.process_queue import ProcessQueue
from ..rebalancing.queue_locks import QueueLocks
from ..settings.consumer_settings import PushConsumerSettings
from ..tasks import Tasks
from ..values.listener_returns import ConsumeOrderlyContext, ConsumeOrderlyStatus
from ..values.message import MessageExt
from .invocation import ListenerInvoker
from .listeners import Context
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
from .send_back import SendBack

_log = logging.getLogger(__name__)


FAILURE_PAUSE_MS: Final = 1_000


class _Pause(msgspec.Struct, frozen=True):
    """Go on after `ms`; `relock`: ask the broker for the lock then, and wait again by its answer."""

    ms: int
    relock: bool = False


class OrderedDelivery:
    """`deliver` what was pulled; `stop` when the consumer shuts down."""

    def __init__(
        self,
        context: ConsumerContext[PushConsumerSettings],
        invoker: ListenerInvoker,
        send_back: SendBack,
        locks: QueueLocks | None,
    ) -> None:
        """`locks`: None for a broadcasting consumer, which needs none."""
        self._context, self._settings = context, context.settings
        self._invoker = invoker
        self.send_back = send_back
        self._locks = locks
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(context.settings.consume_thread_min)
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
            self._tasks.spawn(self._run(queue, process_queue), f"{self._context.group} {queue}")

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
        self._invoker.call.close()

    async def call_once(self, message: MessageExt) -> tuple[object, Exception | None, Context]:
        """Call the listener for one message that is in no queue: what it returned or raised."""
        context = ConsumeOrderlyContext(message.queue)
        return *await self._invoker.call_once(message, context), context

    # -- one queue

    async def _run(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        queue_lock = self._queue_locks.setdefault(queue, asyncio.Lock())
        while not self._stopped:
            async with queue_lock, self._slots:
                try:
                    pause = await self._slice(queue, process_queue)
                except Exception:  # of a user's offset store: the queue must not stand still for ever
                    _log.exception("%s could not settle messages of %s", self._context.group, queue)
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
            messages = process_queue.take(self._settings.consume_message_batch_max_size)
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
        self._invoker.restore_topics(messages)
        context = ConsumeOrderlyContext(queue)
        async with self.consume_lock(process_queue):
            if process_queue.dropped:
                return None
            status = await self._invoker.invoke(messages, context, self._settings.consume_timeout * 60_000)
        return await self._settle(messages, queue, process_queue, status, context)

    async def _settle(
        self,
        messages: list[MessageExt],
        queue: MessageQueue,
        process_queue: ProcessQueue,
        status: ConsumeOrderlyStatus,
        context: ConsumeOrderlyContext,
    ) -> int | None:
        limit = ordered_reconsume_limit(self._settings.max_reconsume_times)
        not_sent = []
        if status is ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT:
            not_sent = [
                message
                for message in exhausted(messages, limit)
                if not await self.send_back.send_to_dead_letters(message)
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
            self._context.offsets.update(queue, outcome.offset)
        if not outcome.pauses:
            return None
        return suspend_ms(
            context.suspend_current_queue_time_millis, self._settings.suspend_current_queue_time_millis
        )
