"""Calls the hooks around each call of a listener. Only made if a consumer has such hooks.

Mirrors the hook calls of `ConsumeMessageConcurrentlyService` and its siblings.
"""

from collections.abc import Sequence

from pocketmq.protocol.message.message_queue import MessageQueue

from ..settings.client_settings import ClientSettings
from ..values.listener_returns import ConsumeReturnType
from ..values.message import MessageExt
from .hooks import ConsumeMessageContext, Hooks, call_hooks


class ConsumeHooks:
    """Of one consumer."""

    def __init__(self, hooks: Hooks, group: str, settings: ClientSettings) -> None:
        self._hooks = hooks.consume
        self._group = group
        self._settings = settings

    def before(self, messages: Sequence[MessageExt], queue: MessageQueue) -> ConsumeMessageContext:
        """The listener is about to be called."""
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
        """It returned or raised."""
        context.status, context.is_success, context.return_type = status, is_success, return_type
        call_hooks([hook.consume_message_after for hook in self._hooks], context)


def consume_hooks(hooks: Hooks, group: str, settings: ClientSettings) -> ConsumeHooks | None:
    """None if no hook looks at consumption."""
    return ConsumeHooks(hooks, group, settings) if hooks.consume else None
