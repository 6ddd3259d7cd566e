"""Hooks: objects of a user that a client calls when it sends, consumes, ends transactions or filters.

    class Counter(SendMessageHook):
        def send_message_after(self, context: SendMessageContext) -> None: ...

    async with Producer("orders", hooks=[Counter()]) as producer: ...

A hook is an object of one of these classes, or of several. Its methods are plain functions that run in the event
loop, so they must not block. An exception of a hook is logged and changes nothing, except in `CheckForbiddenHook`,
whose purpose it is, and in `RPCHook` (`rpc_hooks.py`). Groups and queues in contexts are those brokers know, with the
namespace; messages are the user's. Mirrors the package org.apache.rocketmq.client.hook.
"""

import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum, StrEnum
from typing import Any, Final, TypeVar, get_args

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue

from ..errors import InvalidArgument
from ..settings.client_settings import ClientSettings
from ..values.listener_returns import ConsumeReturnType
from ..values.message import Message, MessageExt
from ..values.results import SendResult
from .rpc_hooks import RPCHook

_log = logging.getLogger(__name__)


class CommunicationMode(StrEnum):
    """How a message is sent."""

    SYNC = "SYNC"
    ASYNC = "ASYNC"
    ONEWAY = "ONEWAY"


class MessageType(IntEnum):
    """What kind of message is sent; the numbers are those of traces."""

    NORMAL_MSG = 0
    TRANS_MSG_HALF = 1
    TRANS_MSG_COMMIT = 2
    DELAY_MSG = 3
    ORDER_MSG = 4


class SendMessageContext(msgspec.Struct, eq=False):
    """One attempt to send. Afterwards `send_result` or `exception` is set; neither is after a one-way send, or after an
    ASYNC one that was only written."""

    producer_group: str
    message: Message
    """As given to the producer; for a batch a message whose body is the whole batch."""
    properties: dict[str, str]
    """As they are sent, with the unique id."""
    body_size: int
    """Bytes of the body as it is sent, compressed or not."""
    queue: MessageQueue
    broker_address: str
    born_host: str
    communication_mode: CommunicationMode
    message_type: MessageType
    namespace: str
    send_result: SendResult | None = None
    exception: Exception | None = None
    trace_context: object = None
    """For the hook's own use between before and after (official mqTraceContext)."""


class CheckForbiddenContext(msgspec.Struct, eq=False):
    """What is about to be sent."""

    name_server_address: str
    group: str
    message: Message
    queue: MessageQueue
    broker_address: str
    communication_mode: CommunicationMode
    unit_mode: bool


class ConsumeMessageContext(msgspec.Struct, eq=False):
    """One call of a listener. The fields from `status` on are set afterwards."""

    consumer_group: str
    messages: Sequence[MessageExt]
    queue: MessageQueue
    namespace: str
    access_channel: str
    status: str = ""
    """Name of a ConsumeConcurrentlyStatus or ConsumeOrderlyStatus."""
    is_success: bool = False
    return_type: ConsumeReturnType = ConsumeReturnType.SUCCESS
    trace_context: object = None


class EndTransactionContext(msgspec.Struct, eq=False):
    """The end of a half message, before its broker learns it. `state` is the name of a LocalTransactionState."""

    producer_group: str
    broker_address: str
    topic: str
    tags: str
    keys: str
    properties: dict[str, str]
    msg_id: str
    transaction_id: str | None
    state: str
    from_transaction_check: bool


class FilterMessageContext(msgspec.Struct, eq=False):
    """Messages that were pulled and passed the tag filter: remove from `messages` what shall not be consumed."""

    consumer_group: str
    messages: list[MessageExt]
    queue: MessageQueue
    unit_mode: bool


class SendMessageHook:
    """Around each attempt to send."""

    def send_message_before(self, context: SendMessageContext) -> None:
        """The attempt begins."""

    def send_message_after(self, context: SendMessageContext) -> None:
        """It ended. For an ASYNC send this is called twice, first without a result when it was written."""


class CheckForbiddenHook:
    """Before each attempt to send."""

    def check_forbidden(self, context: CheckForbiddenContext) -> None:
        """Raise to forbid it. A `ClientError` counts as an attempt that failed and may be tried with another queue."""


class ConsumeMessageHook:
    """Around each call of a push consumer's listener, and for each batch that a lite pull consumer returns."""

    def consume_message_before(self, context: ConsumeMessageContext) -> None:
        """The listener is about to be called."""

    def consume_message_after(self, context: ConsumeMessageContext) -> None:
        """It returned or raised."""


class EndTransactionHook:
    """Before END_TRANSACTION."""

    def end_transaction(self, context: EndTransactionContext) -> None:
        """The request is about to be sent."""


class FilterMessageHook:
    """After the tag filter of each pull and pop."""

    def filter_message(self, context: FilterMessageContext) -> None:
        """Remove messages."""


Hook = (
    RPCHook
    | SendMessageHook
    | CheckForbiddenHook
    | ConsumeMessageHook
    | EndTransactionHook
    | FilterMessageHook
)
_CALLED: Final = tuple(name for kind in get_args(Hook) for name in vars(kind) if not name.startswith("_"))
"""The methods of all kinds."""
ContextT = TypeVar("ContextT")


def is_coroutine_function(function: object) -> bool:
    """Also of an object with an `async def __call__`, and of either with some arguments given."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004  # an object with an `async def __call__`
    )


def check_plain(**functions: Callable[..., Any] | None) -> None:
    """ClientError, with the name, for anything but a plain function or None: callbacks and hooks are called in the
    event loop, where a coroutine function would never run."""
    for name, function in functions.items():
        if function is not None and (not callable(function) or is_coroutine_function(function)):
            kind = "coroutine function" if callable(function) else type(function).__name__
            raise InvalidArgument(f"{name} must be a plain function, called in the event loop, not a {kind}")


class Hooks:
    """The hooks of one client, by kind. `ClientError` for an object that is not a hook."""

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self.rpc: tuple[RPCHook, ...] = ()
        self.send: tuple[SendMessageHook, ...] = ()
        self.check_forbidden: tuple[CheckForbiddenHook, ...] = ()
        self.consume: tuple[ConsumeMessageHook, ...] = ()
        self.end_transaction: tuple[EndTransactionHook, ...] = ()
        self.filter: tuple[FilterMessageHook, ...] = ()
        for hook in hooks:
            if not isinstance(hook, Hook):
                raise InvalidArgument(f"{type(hook).__name__} is not a hook")
            check_plain(**{f"{type(hook).__name__}.{name}": getattr(hook, name, None) for name in _CALLED})
            self.add(hook)

    def add(self, hook: Hook) -> None:
        """One more, called after the others."""
        if isinstance(hook, RPCHook):
            self.rpc += (hook,)
        if isinstance(hook, SendMessageHook):
            self.send += (hook,)
        if isinstance(hook, CheckForbiddenHook):
            self.check_forbidden += (hook,)
        if isinstance(hook, ConsumeMessageHook):
            self.consume += (hook,)
        if isinstance(hook, EndTransactionHook):
            self.end_transaction += (hook,)
        if isinstance(hook, FilterMessageHook):
            self.filter += (hook,)

    def filter_messages(self, context: FilterMessageContext) -> list[MessageExt]:
        """The messages that every filter kept."""
        call_hooks([hook.filter_message for hook in self.filter], context)
        return context.messages


def call_hooks(methods: Iterable[Callable[[ContextT], None]], context: ContextT) -> None:
    """Call hooks one after the other; what one raises is logged, and the next is called."""
    for call in methods:
        try:
            call(context)
        except Exception:
            _log.warning("the hook %r failed", call, exc_info=True)


class ConsumeHooks:
    """Calls the hooks of one consumer around each call of its listener."""

    def __init__(self, hooks: Hooks, group: str, settings: ClientSettings) -> None:
        self._hooks = hooks.consume
        self._group = group
        self._settings = settings

    def before(self, messages: Sequence[MessageExt], queue: MessageQueue) -> ConsumeMessageContext:
        context = ConsumeMessageContext(
            consumer_group=self._group,
            messages=messages,
            queue=queue,
            namespace=self._settings.namespace or "",
            access_channel=self._settings.access_channel.value,
        )
        call_hooks([hook.consume_message_before for hook in self._hooks], context)
        return context

    def after(
        self, context: ConsumeMessageContext, status: str, *, is_success: bool, return_type: ConsumeReturnType
    ) -> None:
        context.status, context.is_success, context.return_type = status, is_success, return_type
        call_hooks([hook.consume_message_after for hook in self._hooks], context)


def consume_hooks(hooks: Hooks, group: str, settings: ClientSettings) -> ConsumeHooks | None:
    """None if no hook looks at consumption."""
    return ConsumeHooks(hooks, group, settings) if hooks.consume else None
