"""Calling a user's listener, and judging the call: its status, its rates, the hooks around it.

    async def on_message(message): ...                one message
    def on_message(message, context): ...             a plain function runs in a thread
    async def on_messages(messages): ...              as batch_listener: up to consume_message_batch_max_size

It succeeds by returning (nothing, or a status of `values/listener_returns.py`), and fails by raising: `RetryLater` and
`SuspendQueue` say when the message is to be delivered again, for any other exception the settings decide. Mirrors what
`ConsumeMessageConcurrentlyService` and `ConsumeMessageOrderlyService` do around a listener.
"""

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pocketmq.protocol.message.topics import is_retry_topic

from ..clock import steady_ms
from ..errors import ClientError, InvalidArgument
from ..hooks.hooks import ConsumeMessageContext, consume_hooks, is_coroutine_function
from ..rebalancing.consumer_context import ConsumerContext
from ..settings.consumer_settings import PushConsumerSettings
from ..values.listener_returns import (
    OUTCOMES,
    ConsumeConcurrentlyContext,
    ConsumeOrderlyContext,
    ListenerContext,
    ListenerStatus,
    is_unknown_status,
    return_type,
    status_of,
)
from ..values.message import MessageExt
from ..values.namespaces import Namespace
from .send_back import topic_for_listener

_log = logging.getLogger(__name__)

_Returned = ListenerStatus | None | Awaitable[ListenerStatus | None]
Listener = (
    Callable[[MessageExt], _Returned]
    | Callable[[MessageExt, ConsumeConcurrentlyContext], _Returned]
    | Callable[[MessageExt, ConsumeOrderlyContext], _Returned]
)
"""Takes a message and, if it wants, the context as second argument."""
BatchListener = (
    Callable[[list[MessageExt]], _Returned]
    | Callable[[list[MessageExt], ConsumeConcurrentlyContext], _Returned]
    | Callable[[list[MessageExt], ConsumeOrderlyContext], _Returned]
)
"""Takes a list of messages and, if it wants, the context as second argument."""


class RetryLater(Exception):  # named for how it reads: raise RetryLater(delay_level=4)
    """Raised by a concurrent listener: try again, after a delay level; 0 lets the broker decide, -1 gives up."""

    def __init__(self, delay_level: int = 0) -> None:
        super().__init__(f"try again at delay level {delay_level}")
        self.delay_level = delay_level


class SuspendQueue(Exception):
    """Raised by an ordered listener: the same messages again after a pause in ms; -1 uses the setting."""

    def __init__(self, suspend_ms: int = -1) -> None:
        super().__init__(f"try again after {suspend_ms} ms")
        self.suspend_ms = suspend_ms


class ListenerCall:
    """One listener, called the same way whatever its shape. `close` ends its threads."""

    def __init__(self, listener: Callable[..., Any], *, takes_batch: bool, threads: int) -> None:
        if not callable(listener):
            raise InvalidArgument(f"a listener must be a function, not {type(listener).__name__}")
        self._listener = listener
        self.takes_batch = takes_batch
        self._takes_context = _accepts_two(listener)
        self._is_coroutine = is_coroutine_function(listener)
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        is_simple = self._is_coroutine and not takes_batch and not self._takes_context
        self.single_message_coroutine: Callable[[MessageExt], Awaitable[object]] | None = (
            listener if is_simple else None
        )
        """The listener, if it is a coroutine function of one message and nothing else."""

    def __call__(self, messages: Sequence[MessageExt], context: ListenerContext) -> Awaitable[object]:
        """What the listener returns, or raises."""
        first: object = messages if self.takes_batch else messages[0]
        arguments = (first, context) if self._takes_context else (first,)
        if self._is_coroutine:
            awaitable: Awaitable[object] = self._listener(*arguments)
            return awaitable
        return self._in_thread(arguments)

    def close(self) -> None:
        """End the threads; a call that still runs in one goes on, but its result is ignored."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, arguments: tuple[object, ...]) -> object:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="pocketmq-listener")
        call = functools.partial(contextvars.copy_context().run, self._listener, *arguments)
        returned: object = await asyncio.get_running_loop().run_in_executor(self._pool, call)
        return await returned if inspect.isawaitable(returned) else returned


def asks_for_later(failure: BaseException, context: ListenerContext) -> bool:
    """Whether a listener asked by an exception of its kind for another delivery; when is in the context then."""
    if isinstance(failure, RetryLater) and isinstance(context, ConsumeConcurrentlyContext):
        context.delay_level_when_next_consume = failure.delay_level
    elif isinstance(failure, SuspendQueue) and isinstance(context, ConsumeOrderlyContext):
        context.suspend_current_queue_time_millis = failure.suspend_ms
    else:
        return False
    return True


def failure_of(raised: Exception | asyncio.CancelledError) -> Exception:
    """The failure of a listener. If it waited for something that was cancelled, that is a failure like any other; if
    the consumer cancelled the listener itself, the cancellation is raised again."""
    if isinstance(raised, Exception):
        return raised
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise raised
    failure = ClientError("the listener waited for something that was cancelled")
    failure.__cause__ = raised
    return failure


def _accepts_two(listener: Callable[..., Any]) -> bool:
    """Whether the listener takes the context: a second argument without default."""
    try:
        parameters = inspect.signature(listener).parameters.values()
    except (TypeError, ValueError):
        return False
    places = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]
    if not places and not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        raise InvalidArgument("a listener must take the message as its first argument")
    return len(places) >= 2


class ListenerInvoker:
    """Calls the listener of one consumer; `on_error` of the user gets what it raised, with the messages."""

    def __init__(
        self,
        context: ConsumerContext[PushConsumerSettings],
        call: ListenerCall,
        on_error: Callable[[Exception, Sequence[MessageExt]], None] | None = None,
    ) -> None:
        self.call = call
        self.hooks = consume_hooks(context.hooks, context.group, context.settings)
        self._group = context.group
        self._statistics = context.statistics
        self._on_error = on_error
        self._namespace = Namespace(context.settings.namespace)

    async def invoke(
        self, messages: Sequence[MessageExt], context: ListenerContext, limit_ms: int
    ) -> ListenerStatus:
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
        context: ListenerContext,
        returned: object,
        failure: Exception | asyncio.CancelledError | None,
        began_ms: int,
        limit_ms: int,
        hook_context: ConsumeMessageContext | None = None,
    ) -> ListenerStatus:
        """The status of a call, counted and shown to hooks."""
        later, raised = OUTCOMES[type(context)][1], False
        if failure is None:
            status = status_of(returned, context)
            if is_unknown_status(returned):
                kind = type(later).__name__
                _log.warning("the listener of %s returned %r, which is not a %s", self._group, returned, kind)
        elif asks_for_later(failure, context):
            returned = status = later
        else:
            self._report(failure_of(failure), messages)
            status, raised = later, True
        is_ok, count = status is not later, len(messages)
        took_ms = steady_ms() - began_ms
        topic = context.message_queue.topic
        self._statistics.consumed(topic, count if is_ok else 0, 0 if is_ok else count, took_ms)
        if self.hooks is not None and hook_context is not None:
            outcome = return_type(returned, raised=raised, took_ms=took_ms, timeout_ms=limit_ms)
            self.hooks.after(hook_context, status.value, is_success=is_ok, return_type=outcome)
        return status

    def restore_topics(self, messages: Sequence[MessageExt]) -> None:
        """Messages of the retry topics get the topic they were sent to, and none shows the namespace."""
        namespace = self._namespace
        ordinary = ""
        for message in messages:
            topic = message.topic
            if topic is ordinary:
                continue
            if is_retry_topic(topic):
                message.topic = topic = topic_for_listener(topic, message.properties, self._group)
            elif not namespace.name:
                ordinary = topic
            if namespace.name:
                message.topic = namespace.unwrap(topic)

    def _report(self, error: Exception, messages: Sequence[MessageExt]) -> None:
        _log.warning("the listener of %s failed on %r", self._group, list(messages), exc_info=error)
        if self._on_error is not None:
            try:
                self._on_error(error, messages)
            except Exception:
                _log.exception("the on_error of %s failed", self._group)

    async def call_once(
        self, message: MessageExt, context: ListenerContext
    ) -> tuple[object, Exception | None]:
        """What the listener returned or raised for one message."""
        self.restore_topics((message,))
        try:
            return await self.call([message], context), None
        except Exception as error:
            return (OUTCOMES[type(context)][1], None) if asks_for_later(error, context) else (None, error)
