"""Pulled messages to an ordered listener: queue by queue, in order, and only while the broker's lock is ours.

One task a queue takes messages as long as there are any, at most 60 s at a stretch; `consume_thread_min` queues run
at once. The listener runs under the queue's consume lock, which whoever gives the queue away must have. What a result
does is `ordered_results.py`. Mirrors `ConsumeMessageOrderlyService`.
"""

import asyncio
import logging
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue

from ..clock import steady_ms
from ..hooks.consume_hooks import ConsumeHooks
from ..offsets.offset_store import OffsetStore
from ..rebalancing.process_queue import ProcessQueue
from ..settings.consumer_settings import PushConsumerSettings
from ..tasks import until_ended
from ..values.listener_returns import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    is_nonsense,
    orderly_status,
    return_type,
)
from ..values.message import MessageExt
from .listeners import ListenerCall, SuspendQueue, failure_of
from .ordered_results import (
    LOCK_RETRY_DELAY_MS,
    LOCKED_RESUME_DELAY_MS,
    LOST_LOCK_DELAY_MS,
    MAX_TIME_CONSUME_CONTINUOUSLY_MS,
    NOT_LOCKED_RESUME_DELAY_MS,
    exhausted,
    max_reconsume_times,
    settle,
    suspend_ms,
)

if TYPE_CHECKING:
    from .statistics import ConsumerStatistics

_log = logging.getLogger(__name__)


class OrderedOwner(Protocol):
    """What ordered delivery asks of its consumer."""

    settings: PushConsumerSettings
    offsets: OffsetStore
    statistics: "ConsumerStatistics"

    @property
    def group(self) -> str: ...
    @property
    def is_clustering(self) -> bool: ...
    def for_listener(self, messages: Sequence[MessageExt]) -> None: ...
    async def lock(self, queue: MessageQueue) -> bool: ...
    async def send_to_dead_letters(self, message: MessageExt) -> bool:
        """Send a message without tries left to the retry topic, whence the broker files it away."""
        ...

    def listener_failed(self, error: Exception, messages: Sequence[MessageExt]) -> None: ...


class _Pause(msgspec.Struct, frozen=True):
    """Go on after `ms`; `relock`: ask the broker for the lock then, and wait again by its answer."""

    ms: int
    relock: bool = False


class OrderedDelivery:
    """`submit` what was pulled; `stop` when the consumer shuts down."""

    def __init__(self, owner: OrderedOwner, call: ListenerCall, hooks: ConsumeHooks | None = None) -> None:
        self._owner = owner
        self._call = call
        self._hooks = hooks
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(owner.settings.consume_thread_min)
        self._tasks: set[asyncio.Task[None]] = set()
        self._queue_locks: dict[MessageQueue, asyncio.Lock] = {}
        # A queue that comes back while its last listener still runs has a new state: this keeps the two apart.
        self._consume_locks: weakref.WeakKeyDictionary[ProcessQueue, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )
        self._stopped = False

    def submit(self, queue: MessageQueue, state: ProcessQueue) -> None:
        """The queue has messages and no task: give it one."""
        if self._stopped:
            return
        task = self._loop.create_task(self._run(queue, state), name=f"{self._owner.group} {queue}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def consume_lock(self, state: ProcessQueue) -> asyncio.Lock:
        """Held while the listener works on the queue's messages."""
        lock = self._consume_locks.get(state)
        if lock is None:
            lock = self._consume_locks[state] = asyncio.Lock()
        return lock

    async def stop(self, wait_ms: int) -> None:
        """Take no more, wait so long for running listeners, then cancel them."""
        self._stopped = True
        tasks = self._tasks - {asyncio.current_task()}
        if tasks and wait_ms > 0:
            await asyncio.wait(tasks, timeout=wait_ms / 1000)
        self.abandon()
        await until_ended(tasks)

    def abandon(self) -> None:
        """Take no more, and cancel what runs, now."""
        self._stopped = True
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()
        self._call.close()

    async def call_once(self, message: MessageExt) -> tuple[object, Exception | None, ConsumeOrderlyContext]:
        """Call the listener for one message, whatever comes of it: what it returned or raised."""
        context = ConsumeOrderlyContext(message.queue)
        self._owner.for_listener((message,))
        try:
            return await self._call([message], context), None, context
        except SuspendQueue:
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, None, context
        except Exception as error:
            return None, error, context

    # -- one queue

    async def _run(self, queue: MessageQueue, state: ProcessQueue) -> None:
        queue_lock = self._queue_locks.setdefault(queue, asyncio.Lock())
        while not self._stopped:
            async with queue_lock, self._slots:
                pause = await self._slice(queue, state)
            if pause is None:
                return
            await asyncio.sleep(pause.ms / 1000)
            if pause.relock:
                if state.dropped:
                    return
                locked = await self._owner.lock(queue)
                delay_ms = LOCKED_RESUME_DELAY_MS if locked else NOT_LOCKED_RESUME_DELAY_MS
                await asyncio.sleep(delay_ms / 1000)

    async def _slice(self, queue: MessageQueue, state: ProcessQueue) -> _Pause | None:
        """Consume until nothing is left (None) or something asks for a pause."""
        owner = self._owner
        if state.dropped:
            return None
        if owner.is_clustering and (not state.locked or state.is_lock_expired):
            return _Pause(LOCK_RETRY_DELAY_MS, relock=True)
        began = self._loop.time()
        while not self._stopped:
            if state.dropped:
                return None
            if owner.is_clustering and (not state.locked or state.is_lock_expired):
                return _Pause(LOST_LOCK_DELAY_MS, relock=True)
            if (self._loop.time() - began) * 1000 > MAX_TIME_CONSUME_CONTINUOUSLY_MS:
                return _Pause(LOCKED_RESUME_DELAY_MS)
            messages = state.take(owner.settings.consume_message_batch_max_size)
            if not messages:
                return None
            pause_ms = await self._consume(messages, queue, state)
            if pause_ms is not None:
                return _Pause(pause_ms)
        return None

    async def _consume(
        self, messages: list[MessageExt], queue: MessageQueue, state: ProcessQueue
    ) -> int | None:
        """Call the listener and act on its result: the pause in ms, None to go on."""
        owner = self._owner
        owner.for_listener(messages)
        context = ConsumeOrderlyContext(queue)
        seen = None if self._hooks is None else self._hooks.before(messages, queue)
        returned, raised = None, False
        began_ms = steady_ms()
        async with self.consume_lock(state):
            if state.dropped:
                return None
            try:
                returned = await self._call(messages, context)
                status = orderly_status(returned)
                if is_nonsense(returned):
                    _log.warning("the listener of %s returned %r, which is no status", owner.group, returned)
            except SuspendQueue as suspend:
                context.suspend_current_queue_time_millis = suspend.suspend_ms
                returned = status = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            except (Exception, asyncio.CancelledError) as error:
                owner.listener_failed(failure_of(error), messages)
                status, raised = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, True
        is_ok = status is not ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        count = len(messages)
        took_ms = steady_ms() - began_ms
        owner.statistics.consumed(queue.topic, count if is_ok else 0, 0 if is_ok else count, took_ms)
        if self._hooks is not None and seen is not None:
            limit_ms = owner.settings.consume_timeout * 60_000
            kind = return_type(returned, raised=raised, took_ms=took_ms, timeout_ms=limit_ms)
            self._hooks.after(seen, status.value, is_success=is_ok, return_type=kind)
        return await self._settle(messages, queue, state, status, context)

    async def _settle(
        self,
        messages: list[MessageExt],
        queue: MessageQueue,
        state: ProcessQueue,
        status: ConsumeOrderlyStatus,
        context: ConsumeOrderlyContext,
    ) -> int | None:
        owner = self._owner
        limit = max_reconsume_times(owner.settings.max_reconsume_times)
        not_sent = []
        if status is ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT:
            not_sent = [
                message
                for message in exhausted(messages, limit)
                if not await owner.send_to_dead_letters(message)
            ]
        elif context.auto_commit and status is not ConsumeOrderlyStatus.SUCCESS:
            _log.warning("%s needs a context with auto_commit = False; taken for SUCCESS", status.value)
        outcome = settle(
            state, messages, status, auto_commit=context.auto_commit, max_times=limit, not_sent=not_sent
        )
        if outcome.offset >= 0 and not state.dropped:
            owner.offsets.update(queue, outcome.offset)
        if not outcome.pauses:
            return None
        return suspend_ms(
            context.suspend_current_queue_time_millis, owner.settings.suspend_current_queue_time_millis
        )

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)
