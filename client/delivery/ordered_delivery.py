"""Messages to an ordered listener: queue by queue, in order, and only while this consumer has the broker's lock.

One task for each queue takes messages as long as there are any, at most 60 s at a stretch; `consume_thread_min` queues
run at once. The listener runs under the consume lock of its queue, which must be held to give the queue up. Then:

    auto-commit  status                     then
    yes          SUCCESS, COMMIT, ROLLBACK  commit, go on (the last two are logged as a mistake)
    yes          SUSPEND, pause needed      the batch is delivered again after the pause
    yes          SUSPEND, else              commit, go on: all its messages went to the dead letters
    no           SUCCESS                    go on; the messages stay taken
    no           COMMIT                     commit everything taken, go on
    no           ROLLBACK                   everything taken is delivered again after the pause
    no           SUSPEND, pause needed      the batch is delivered again after the pause
    no           SUSPEND, else              go on; the messages stay taken

A pause is needed unless every message of the batch used up its tries and was sent to the retry topic, from where the
broker moves it to the dead letters. The whole batch is delivered again then, also what was sent. Tries are counted in
the client alone and start anew with the next owner. Mirrors `ConsumeMessageOrderlyService`.
"""

import asyncio
import logging
import weakref
from typing import Final

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue

from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.process_queue import ProcessQueue
from ..rebalancing.queue_locks import QueueLocks
from ..settings.consumer_settings import PushConsumerSettings
from ..tasks import Tasks
from ..values.listener_returns import ConsumeOrderlyContext, ConsumeOrderlyStatus, ListenerStatus
from ..values.message import MessageExt
from ..values.results import PullResult
from .listeners import ListenerInvoker
from .send_back import SendBack, ordered_reconsume_limit

MAX_TIME_CONSUME_CONTINUOUSLY_MS: Final = 60_000
"""A queue gives way to others after this long."""
LOCK_RETRY_DELAY_MS: Final = 100
"""No lock at the start of a task: ask the broker for it after this time; LOST_LOCK_DELAY_MS in the middle of one."""
LOST_LOCK_DELAY_MS: Final = 10
LOCKED_RESUME_DELAY_MS: Final = 10
"""The lock came: go on after this time; NOT_LOCKED_RESUME_DELAY_MS if it did not."""
NOT_LOCKED_RESUME_DELAY_MS: Final = 3_000
_MIN_SUSPEND_MS: Final = 10
_MAX_SUSPEND_MS: Final = 30_000


def suspend_ms(context_ms: int, setting_ms: int) -> int:
    """The pause before a batch is delivered again: the context's, or with -1 the setting's, within 10 ms and 30 s."""
    wanted_ms = setting_ms if context_ms == -1 else context_ms
    return min(max(wanted_ms, _MIN_SUSPEND_MS), _MAX_SUSPEND_MS)


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

    def deliver(self, result: PullResult, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Messages that were pulled; a task takes them from the process queue."""
        if process_queue.put(result.messages) and not self._stopped:
            self._tasks.spawn(self._run(queue, process_queue), f"{self._context.group} {queue}")

    def consume_lock(self, process_queue: ProcessQueue) -> asyncio.Lock:
        """Held while the listener works on the queue's messages."""
        lock = self._consume_locks.get(process_queue)
        if lock is None:
            lock = self._consume_locks[process_queue] = asyncio.Lock()
        return lock

    async def stop(self, wait_ms: int) -> None:
        self._stopped = True
        await self._tasks.finish(wait_ms, self.abandon)

    def abandon(self) -> None:
        self._stopped = True
        self._tasks.cancel()
        self._invoker.call.close()

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
        status: ListenerStatus,
        context: ConsumeOrderlyContext,
    ) -> int | None:
        later_ms = suspend_ms(
            context.suspend_current_queue_time_millis, self._settings.suspend_current_queue_time_millis
        )
        offset, is_auto = -1, context.auto_commit
        if status is ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT:
            if await self._count_tries(messages):
                process_queue.consume_again(messages)
                return later_ms
            offset = process_queue.commit() if is_auto else -1
        elif is_auto or status is ConsumeOrderlyStatus.COMMIT:
            if is_auto and status is not ConsumeOrderlyStatus.SUCCESS:
                _log.warning("%s needs a context with auto_commit = False; treated as SUCCESS", status.value)
            offset = process_queue.commit()
        elif status is ConsumeOrderlyStatus.ROLLBACK:
            process_queue.rollback()
            return later_ms
        if offset >= 0 and not process_queue.dropped:
            self._context.offsets.update(queue, offset)
        return None

    async def _count_tries(self, messages: list[MessageExt]) -> bool:
        """Count a try of each message that will be delivered again; whether there are any. One without tries left is
        not, if it can be sent to the dead letters."""
        limit = ordered_reconsume_limit(self._settings.max_reconsume_times)
        again = [
            message
            for message in messages
            if message.reconsume_times < limit or not await self.send_back.send_to_dead_letters(message)
        ]
        for message in again:
            message.reconsume_times += 1
        return bool(again)
