"""Messages to a concurrent listener: in any order, several batches at once, each finished on its own.

Batches wait in one line. At most `consume_thread_min` workers take from it. A worker is started only while a batch
waits and every other worker is busy with a listener that awaits something: a listener that returns at once is served
by one worker, without a task for each message, and what it finished is settled together: nobody else runs between its
calls, so nobody sees them one by one. A listener that awaits something lets other tasks run in the middle of its call;
what ended before is settled by then, so that offsets, rates and the process queue say what they would say if each
message was settled on its own. What a result does is `settlement.py`. Mirrors `ConsumeMessageConcurrentlyService`.
"""

import asyncio
import logging
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue

from ..clock import steady_ms
from ..rebalancing.consumer_context import ConsumerContext, ConsumerStatistics
from ..rebalancing.process_queue import EXPIRED_AT_MOST, EXPIRED_DELAY_LEVEL, ProcessQueue
from ..settings.consumer_settings import PushConsumerSettings
from ..tasks import Tasks
from ..values.listener_returns import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ListenerStatus
from ..values.message import MessageExt
from ..values.results import PullResult
from .listeners import ListenerInvoker
from .send_back import SendBack
from .settlement import LOCAL_RETRY_DELAY_MS, PulledSettlement, Settlement, batches, first_failed

_log = logging.getLogger(__name__)


@types.coroutine
def call_before_each_suspend(
    work: Coroutine[Any, Any, None], call: Callable[[], None]
) -> Generator[Any, Any, None]:
    """`await work`; calls `call` before each time that `work` waits for something."""
    try:
        awaited = work.send(None)
        while True:
            try:
                call()
            except Exception:  # an offset store of the user's; the listener must not pay for it
                _log.exception("messages that were consumed could not be settled")
            try:
                answer = yield awaited
            except BaseException as error:
                awaited = work.throw(error)
            else:
                awaited = work.send(answer)
    except StopIteration:
        return


class InlineBatch(msgspec.Struct, eq=False):
    """Of one worker. `taken` are messages whose listener was called; the last one's may be running."""

    _statistics: ConsumerStatistics
    taken: list[MessageExt] = []
    settlement: PulledSettlement | None = None
    began_ms: int = 0
    """When the first of `taken` was given to the listener."""

    def begin(self, settlement: PulledSettlement, now_ms: int) -> list[MessageExt]:
        """The next messages are of this queue. Returns `taken`, for the worker to append to."""
        self.settlement, self.began_ms = settlement, now_ms
        return self.taken

    def settle_finished(self) -> None:
        """Settle what has ended: the listener of the last message has not, or did not succeed."""
        taken = self.taken
        if taken:
            last = taken.pop()
            try:
                self.settle(last.consume_start_ms)
            finally:
                taken.append(last)
                self.began_ms = last.consume_start_ms

    def settle(self, now_ms: int) -> None:
        """The listener succeeded with all of `taken`: count them, and move the offset beyond them."""
        taken, settlement = self.taken, self.settlement
        if not taken or settlement is None:
            return
        topic = settlement.queue.topic
        self._statistics.consumed(topic, len(taken), 0, now_ms - self.began_ms, calls=len(taken))
        try:
            settlement.finish(taken)
        finally:
            taken.clear()


TURNS_AT_ONCE: Final = 256
"""A worker whose listener never awaits lets other tasks run after so many batches."""
_SUCCESS: Final = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class _PendingBatches(msgspec.Struct):
    """Batches that were delivered together and wait. Workers share the iterator: each batch goes to one of them."""

    batches: Iterator[Sequence[MessageExt]]
    queue: MessageQueue
    settlement: Settlement
    size: int


class ConcurrentDelivery:
    """`deliver` what was pulled, `submit` what was popped; `stop` when the consumer shuts down."""

    def __init__(
        self, context: ConsumerContext[PushConsumerSettings], invoker: ListenerInvoker, send_back: SendBack
    ) -> None:
        self._context, self._settings = context, context.settings
        self._invoker = invoker
        self.send_back = send_back
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_PendingBatches] = deque()
        """Only the first may have no batch left: a worker then removes it."""
        self._workers = Tasks(on_failure=self._start_worker_if_needed)
        self._is_growing = False
        self._retries: set[asyncio.TimerHandle] = set()
        self._stopped = False

    def deliver(self, result: PullResult, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Messages that were pulled."""
        process_queue.put(result.messages)
        settlement = PulledSettlement(self._context, self.send_back, queue, process_queue)
        self.submit(result.messages, queue, settlement)

    def submit(self, messages: Sequence[MessageExt], queue: MessageQueue, settlement: Settlement) -> None:
        """Let these messages wait for a worker, in batches."""
        self._invoker.restore_topics(messages)
        size = self._settings.consume_message_batch_max_size
        for few in batches(messages, TURNS_AT_ONCE * size):
            # `zip` makes tuples of one message: a batch of one is what most listeners get.
            cut = zip(few) if size == 1 and not self._invoker.call.takes_batch else iter(batches(few, size))
            self._waiting.append(_PendingBatches(cut, queue, settlement, -(-len(few) // size)))
        self._start_worker_if_needed()

    async def stop(self, wait_ms: int) -> None:
        """Start no more listener calls, wait so long for running ones, then cancel them."""
        self._stopped = True
        self._clear()
        await self._workers.finish(wait_ms, self.abandon)

    def abandon(self) -> None:
        """Start no more listener calls, and cancel those that run, now."""
        self._stopped = True
        self._clear()
        for timer in self._retries:
            timer.cancel()
        self._workers.cancel()
        self._invoker.call.close()

    def _clear(self) -> None:
        """Take the batches that wait away from the workers too."""
        for line in self._waiting:
            deque(line.batches, maxlen=0)
        self._waiting.clear()

    async def clean_expired(self, process_queues: Iterable[ProcessQueue]) -> None:
        """Send back messages whose listener was called longer ago than `consume_timeout`."""
        for process_queue in process_queues:
            for _ in range(EXPIRED_AT_MOST):
                message = process_queue.first_expired(self._settings.consume_timeout)
                if message is None:
                    break
                _log.warning("%r is in its listener for too long, sending it back", message)
                if not await self.send_back.send_back(message, EXPIRED_DELAY_LEVEL):
                    break
                process_queue.remove_expired(message)

    # -- workers

    def _start_worker_if_needed(self) -> None:
        """Start one more worker in the next loop iteration, if a batch waits then.

        Not at once: the pull that follows leaves in this one, so that the broker works while the listener does.
        """
        if not self._is_growing and self._may_grow:
            self._is_growing = True
            self._loop.call_soon(self._start_worker)

    @property
    def _may_grow(self) -> bool:
        limit = self._settings.consume_thread_min
        return not self._stopped and bool(self._waiting) and len(self._workers) < limit

    def _start_worker(self) -> None:
        """Whether yet another is needed is decided once this one has begun."""
        self._is_growing = False
        if self._may_grow:
            self._workers.spawn(self._work(), f"{self._context.group} listener")
            self._start_worker_if_needed()

    async def _work(self) -> None:
        batch = InlineBatch(self._context.statistics)
        await call_before_each_suspend(self._work_on(batch), batch.settle_finished)

    async def _work_on(self, batch: InlineBatch) -> None:
        waiting, listener, turns = self._waiting, self._invoker.call.single_message_coroutine, 0
        size = self._settings.consume_message_batch_max_size
        is_simple = listener is not None and self._invoker.hooks is None and size == 1
        while waiting:
            line = waiting[0]
            if is_simple and isinstance(line.settlement, PulledSettlement):
                await self._consume_quickly(line, line.settlement, batch)
            else:
                for messages in line.batches:
                    if line.settlement.accepts(messages):
                        await self._consume(messages, line.queue, line.settlement)
            if waiting and waiting[0] is line:
                waiting.popleft()
            turns += line.size
            if turns >= TURNS_AT_ONCE:
                turns = 0
                await asyncio.sleep(0)

    async def _consume_quickly(
        self, line: _PendingBatches, settlement: PulledSettlement, batch: InlineBatch
    ) -> None:
        """`_consume` for a listener of one message, as long as it succeeds; what it returns at once is settled
        together."""
        listener, process_queue = self._invoker.call.single_message_coroutine, settlement.process_queue
        assert listener is not None
        now_ms = steady_ms()
        taken = batch.begin(settlement, now_ms)
        returned: object
        failure: Exception | asyncio.CancelledError | None
        for messages in line.batches:
            if process_queue.dropped:
                continue
            (message,) = messages
            message.consume_start_ms = now_ms
            taken.append(message)
            returned, failure = None, None
            try:
                returned = await listener(message)
            except (Exception, asyncio.CancelledError) as error:
                failure = error
            now_ms = steady_ms()
            if failure is not None or (returned is not None and returned is not _SUCCESS):
                batch.settle_finished()
                taken.clear()
                context = ConsumeConcurrentlyContext(line.queue)
                began_ms, limit_ms = message.consume_start_ms, settlement.listener_limit_ms
                status = self._invoker.conclude(messages, context, returned, failure, began_ms, limit_ms)
                await self._settle(messages, status, context, settlement)
                now_ms = batch.began_ms = steady_ms()
        batch.settle(now_ms)

    async def _consume(
        self, messages: Sequence[MessageExt], queue: MessageQueue, settlement: Settlement
    ) -> None:
        context = ConsumeConcurrentlyContext(queue)
        began_ms = steady_ms()
        for message in messages:
            message.consume_start_ms = began_ms
        status = await self._invoker.invoke(messages, context, settlement.listener_limit_ms)
        await self._settle(messages, status, context, settlement)

    async def _settle(
        self,
        messages: Sequence[MessageExt],
        status: ListenerStatus,
        context: ConsumeConcurrentlyContext,
        settlement: Settlement,
    ) -> None:
        assert isinstance(status, ConsumeConcurrentlyStatus)
        failed = first_failed(status, context.ack_index, len(messages))
        again = await settlement.settle(messages, failed, context.delay_level_when_next_consume)
        if again:
            self._try_again_later(again, context.message_queue, settlement)

    def _try_again_later(
        self, messages: Sequence[MessageExt], queue: MessageQueue, settlement: Settlement
    ) -> None:
        def again() -> None:
            self._retries.discard(timer)
            self._waiting.append(_PendingBatches(iter((messages,)), queue, settlement, 1))
            self._start_worker_if_needed()

        timer = self._loop.call_later(LOCAL_RETRY_DELAY_MS / 1000, again)
        self._retries.add(timer)
