"""Pulled messages to a concurrent listener: in any order, several at once, each finished by itself.

Batches wait in one line and are taken by at most `consume_thread_min` workers. A worker is started only while
something waits and every other one is busy with a listener that waits: a listener that returns at once is served
by one worker without a task for each message. What a result does is `concurrent_results.py`. Mirrors
`ConsumeMessageConcurrentlyService`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.message.message_queue import MessageQueue

from ..clock import steady_ms
from ..hooks.consume_hooks import ConsumeHooks
from ..offsets.offset_store import OffsetStore
from ..push.pop_queues import PopQueue
from ..push.pop_settlement import PopSettlement, is_pop_timeout
from ..rebalancing.process_queue import EXPIRED_AT_MOST, EXPIRED_DELAY_LEVEL, ProcessQueue
from ..settings.consumer_settings import PushConsumerSettings
from ..tasks import until_ended
from ..values.listener_returns import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    concurrent_status,
    is_nonsense,
    return_type,
)
from ..values.message import MessageExt
from .concurrent_results import LOCAL_RETRY_DELAY_MS, batches, settle, to_send_back
from .listeners import ListenerCall, RetryLater, failure_of

if TYPE_CHECKING:
    from .statistics import ConsumerStatistics

_log = logging.getLogger(__name__)

TURNS_AT_ONCE: Final = 256
"""A worker whose listener never waits lets others run after so many batches."""

_Batch = tuple[Sequence[MessageExt], MessageQueue, ProcessQueue | PopQueue]


class DeliveryOwner(Protocol):
    """What delivery asks of its consumer."""

    settings: PushConsumerSettings
    offsets: OffsetStore
    statistics: "ConsumerStatistics"

    @property
    def group(self) -> str: ...
    def for_listener(self, messages: Sequence[MessageExt]) -> None:
        """Give messages of the retry topic the topic they were sent to."""
        ...

    async def send_back(self, message: MessageExt, delay_level: int) -> bool: ...
    def listener_failed(self, error: Exception, messages: Sequence[MessageExt]) -> None: ...


class ConcurrentDelivery:
    """`submit` what was pulled; `stop` when the consumer shuts down."""

    def __init__(self, owner: DeliveryOwner, call: ListenerCall, hooks: ConsumeHooks | None = None) -> None:
        self.pop_settlement: PopSettlement | None = None
        """Set where the consumer may be told to pop."""
        self._owner = owner
        self._call = call
        self._hooks = hooks
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Batch] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._is_growing = False
        self._retries: set[asyncio.TimerHandle] = set()
        self._stopped = False

    def submit(
        self, messages: Sequence[MessageExt], queue: MessageQueue, state: ProcessQueue | PopQueue
    ) -> None:
        """Hand over pulled or popped messages."""
        size = self._owner.settings.consume_message_batch_max_size
        self._waiting.extend([(batch, queue, state) for batch in batches(messages, size)])
        self._grow()

    async def stop(self, wait_ms: int) -> None:
        """Take no more, wait so long for running listeners, then cancel them."""
        self._stopped = True
        self._waiting.clear()
        workers = self._workers - {asyncio.current_task()}
        if workers and wait_ms > 0:
            await asyncio.wait(workers, timeout=wait_ms / 1000)
        self.abandon()
        await until_ended(workers)

    def abandon(self) -> None:
        """Take no more, and cancel what runs, now."""
        self._stopped = True
        self._waiting.clear()
        for timer in self._retries:
            timer.cancel()
        for worker in self._workers - {asyncio.current_task()}:
            worker.cancel()
        self._call.close()

    async def clean_expired(self, queues: Sequence[ProcessQueue]) -> None:
        """Send back messages whose listener was called longer ago than `consume_timeout`."""
        for state in queues:
            for _ in range(EXPIRED_AT_MOST):
                message = state.first_expired(self._owner.settings.consume_timeout)
                if message is None:
                    break
                _log.warning("%r is in its listener for too long, sending it back", message)
                if not await self._owner.send_back(message, EXPIRED_DELAY_LEVEL):
                    break
                state.remove_expired(message)

    async def call_once(
        self, message: MessageExt
    ) -> tuple[object, Exception | None, ConsumeConcurrentlyContext]:
        """Call the listener for one message, whatever comes of it: what it returned or raised."""
        context = ConsumeConcurrentlyContext(message.queue)
        self._owner.for_listener((message,))
        try:
            return await self._call([message], context), None, context
        except RetryLater:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER, None, context
        except Exception as error:
            return None, error, context

    # -- workers

    def _grow(self) -> None:
        """One more worker, if it has something to do; whether yet another is needed shows when it has begun."""
        limit = self._owner.settings.consume_thread_min
        if self._is_growing or self._stopped or not self._waiting or len(self._workers) >= limit:
            return
        self._is_growing = True
        worker = self._loop.create_task(self._work(), name=f"{self._owner.group} listener")
        self._workers.add(worker)
        worker.add_done_callback(self._ended)
        self._loop.call_soon(self._grown)

    def _grown(self) -> None:
        self._is_growing = False
        self._grow()

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None:
            _log.error("%s failed", worker.get_name(), exc_info=error)
            self._grow()

    async def _work(self) -> None:
        turns = 0
        while self._waiting:
            messages, queue, state = self._waiting.popleft()
            if isinstance(state, PopQueue) and is_pop_timeout(messages):
                state.waiting_acks -= len(messages)
            elif not state.dropped:
                await self._consume(messages, queue, state)
            turns += 1
            if turns % TURNS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _consume(
        self, messages: Sequence[MessageExt], queue: MessageQueue, state: ProcessQueue | PopQueue
    ) -> None:
        owner = self._owner
        owner.for_listener(messages)
        context = ConsumeConcurrentlyContext(queue)
        seen = None if self._hooks is None else self._hooks.before(messages, queue)
        returned, raised = None, False
        began_ms = steady_ms()
        for message in messages:
            message.consume_start_ms = began_ms
        try:
            returned = await self._call(messages, context)
            status = concurrent_status(returned)
            if is_nonsense(returned):
                _log.warning("the listener of %s returned %r, which is no status", owner.group, returned)
        except RetryLater as later:
            context.delay_level_when_next_consume = later.delay_level
            status = ConsumeConcurrentlyStatus.RECONSUME_LATER
            returned = status
        except (Exception, asyncio.CancelledError) as error:
            owner.listener_failed(failure_of(error), messages)
            status, raised = ConsumeConcurrentlyStatus.RECONSUME_LATER, True
        is_ok = status is ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        count = len(messages)
        took_ms = steady_ms() - began_ms
        owner.statistics.consumed(queue.topic, count if is_ok else 0, 0 if is_ok else count, took_ms)
        if self._hooks is not None and seen is not None:
            limit_ms = owner.settings.consume_timeout * 60_000
            if isinstance(state, PopQueue):
                limit_ms = owner.settings.pop_invisible_time
            kind = return_type(returned, raised=raised, took_ms=took_ms, timeout_ms=limit_ms)
            self._hooks.after(seen, status.value, is_success=is_ok, return_type=kind)
        if isinstance(state, PopQueue):
            assert self.pop_settlement is not None
            self.pop_settlement.settle(messages, queue.topic, state, status, context)
        elif not state.dropped:
            await self._settle(messages, queue, state, status, context)

    async def _settle(
        self,
        messages: Sequence[MessageExt],
        queue: MessageQueue,
        state: ProcessQueue,
        status: ConsumeConcurrentlyStatus,
        context: ConsumeConcurrentlyContext,
    ) -> None:
        """Send back what failed, keep what could not be sent for another try here, and move the offset."""
        owner = self._owner
        model = owner.settings.message_model
        not_sent: list[MessageExt] = []
        if status is not ConsumeConcurrentlyStatus.CONSUME_SUCCESS or context.ack_index < len(messages) - 1:
            failed = to_send_back(state, messages, status, ack_index=context.ack_index, message_model=model)
            if model is MessageModel.BROADCASTING:
                _log.warning("a broadcasting consumer failed, its messages are dropped: %r", list(messages))
            level = context.delay_level_when_next_consume
            not_sent = [message for message in failed if not await owner.send_back(message, level)]
        if not_sent:
            self._retry_here(not_sent, queue, state)
        offset = settle(state, messages, not_sent)
        if offset >= 0 and not state.dropped:
            owner.offsets.update(queue, offset, increase_only=True)

    def _retry_here(self, messages: list[MessageExt], queue: MessageQueue, state: ProcessQueue) -> None:
        def again() -> None:
            self._retries.discard(timer)
            self._waiting.append((messages, queue, state))
            self._grow()

        timer = self._loop.call_later(LOCAL_RETRY_DELAY_MS / 1000, again)
        self._retries.add(timer)
