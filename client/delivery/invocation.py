"""One call of a listener, whatever its kind: hooks around it, its status, its rates.

    invoke       call it and judge what it returned or raised
    conclude     judge a call that is over
    call_once    call it for one message that is in no queue (309)

Mirrors what `ConsumeMessageConcurrentlyService` and `ConsumeMessageOrderlyService` do around a listener.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import overload

from ..clock import steady_ms
from ..hooks.hooks import ConsumeMessageContext, consume_hooks
from ..rebalancing.consumer_context import ConsumerContext
from ..settings.consumer_settings import PushConsumerSettings
from ..values.listener_returns import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    concurrent_status,
    is_unknown_status,
    orderly_status,
    return_type,
)
from ..values.message import MessageExt
from .listeners import Context, ListenerCall, RetryLater, Status, SuspendQueue, failure_of

_log = logging.getLogger(__name__)


class ListenerInvoker:
    """Of one consumer. `restore_topics` gives messages of the retry topics the topic they were sent to; `on_failure`
    gets what a listener raised."""

    def __init__(
        self,
        context: ConsumerContext[PushConsumerSettings],
        call: ListenerCall,
        restore_topics: Callable[[Sequence[MessageExt]], None],
        on_failure: Callable[[Exception, Sequence[MessageExt]], None],
    ) -> None:
        self.call = call
        self.restore_topics = restore_topics
        self.hooks = consume_hooks(context.hooks, context.group, context.settings)
        self._group = context.group
        self._statistics = context.statistics
        self._on_failure = on_failure

    @overload
    async def invoke(
        self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext, limit_ms: int
    ) -> ConsumeConcurrentlyStatus: ...
    @overload
    async def invoke(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext, limit_ms: int
    ) -> ConsumeOrderlyStatus: ...
    async def invoke(self, messages: Sequence[MessageExt], context: Context, limit_ms: int) -> Status:
        """Call the listener; a call of more than `limit_ms` counts as timed out for hooks. What it raises is a status
        too, except its own cancellation."""
        hook_context = None if self.hooks is None else self.hooks.before(messages, context.message_queue)
        returned: object = None
        failure: Exception | asyncio.CancelledError | None = None
        began_ms = steady_ms()
        try:
            returned = await self.call(messages, context)
        except (Exception, asyncio.CancelledError) as error:
            failure = error
        return self.conclude(messages, context, returned, failure, began_ms, limit_ms, hook_context)

    def conclude(
        self,
        messages: Sequence[MessageExt],
        context: Context,
        returned: object,
        failure: Exception | asyncio.CancelledError | None,
        began_ms: int,
        limit_ms: int,
        hook_context: ConsumeMessageContext | None = None,
    ) -> Status:
        """The status of a call, counted and shown to hooks."""
        is_ordered, raised = isinstance(context, ConsumeOrderlyContext), False
        later: Status = (
            ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            if is_ordered
            else ConsumeConcurrentlyStatus.RECONSUME_LATER
        )
        if failure is None:
            status: Status = orderly_status(returned) if is_ordered else concurrent_status(returned)
            if is_unknown_status(returned):
                kind = type(later).__name__
                _log.warning("the listener of %s returned %r, which is not a %s", self._group, returned, kind)
        elif isinstance(failure, RetryLater) and isinstance(context, ConsumeConcurrentlyContext):
            context.delay_level_when_next_consume = failure.delay_level
            returned = status = later
        elif isinstance(failure, SuspendQueue) and isinstance(context, ConsumeOrderlyContext):
            context.suspend_current_queue_time_millis = failure.suspend_ms
            returned = status = later
        else:
            self._on_failure(failure_of(failure), messages)
            status, raised = later, True
        is_ok, count = status is not later, len(messages)
        took_ms = steady_ms() - began_ms
        topic = context.message_queue.topic
        self._statistics.consumed(topic, count if is_ok else 0, 0 if is_ok else count, took_ms)
        if self.hooks is not None and hook_context is not None:
            outcome = return_type(returned, raised=raised, took_ms=took_ms, timeout_ms=limit_ms)
            self.hooks.after(hook_context, status.value, is_success=is_ok, return_type=outcome)
        return status

    async def call_once(self, message: MessageExt, context: Context) -> tuple[object, Exception | None]:
        """What the listener returned or raised for one message."""
        self.restore_topics((message,))
        try:
            return await self.call([message], context), None
        except Exception as error:
            if isinstance(error, RetryLater) and isinstance(context, ConsumeConcurrentlyContext):
                return ConsumeConcurrentlyStatus.RECONSUME_LATER, None
            if isinstance(error, SuspendQueue) and isinstance(context, ConsumeOrderlyContext):
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, None
            return None, error
