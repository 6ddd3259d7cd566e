"""Calling a user's listener: coroutine or plain function, one message or a list, with or without the context.

    async def on_message(message): ...                one message
    def on_message(message, context): ...             a plain function runs in a thread
    async def on_messages(messages): ...              as batch_listener: up to consume_message_batch_max_size

It succeeds by returning (nothing, or a status of `values/listener_returns.py`), and fails by raising: `RetryLater` and
`SuspendQueue` say when the message is to be delivered again, for any other exception the settings decide.
"""

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import ClientError, InvalidArgument
from ..hooks.hooks import is_coroutine_function
from ..values.listener_returns import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
)
from ..values.message import MessageExt

_log = logging.getLogger(__name__)

Context = ConsumeConcurrentlyContext | ConsumeOrderlyContext
Status = ConsumeConcurrentlyStatus | ConsumeOrderlyStatus
_Returned = Status | None | Awaitable[Status | None]
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

    def __call__(self, messages: Sequence[MessageExt], context: Context) -> Awaitable[object]:
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
