"""Calls the send hooks around each attempt. Exists only if a producer has such hooks.

`before` may raise: a `CheckForbiddenHook` forbids that way. Mirrors the hook calls of
`DefaultMQProducerImpl.sendKernelImpl`.
"""

from typing import Final

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.message_queue import MessageQueue

from ..hooks.hooks import (
    CheckForbiddenContext,
    CommunicationMode,
    Hooks,
    MessageType,
    SendMessageContext,
    call_hooks,
)
from ..instance.instance import ClientInstance
from ..settings.producer_settings import ProducerSettings
from ..values.message import DELAY_PROPERTIES
from ..values.results import SendResult
from .outgoing import Outgoing

START_DELIVER_TIME: Final = "__STARTDELIVERTIME"
"""The delay of the cloud service: official hooks look at it, brokers do not."""


class SendHooks(msgspec.Struct, frozen=True, eq=False):
    """Of one sender."""

    _instance: ClientInstance
    _hooks: Hooks
    _group: str
    _settings: ProducerSettings

    def before(
        self, outgoing: Outgoing, queue: MessageQueue, address: str, mode: CommunicationMode
    ) -> SendMessageContext:
        """Ask the CheckForbiddenHooks, and raise what they raise; then call the first half of the send hooks."""
        hooks = self._hooks
        if hooks.check_forbidden:
            question = CheckForbiddenContext(
                name_server_address=";".join(self._instance.routes.name_servers.servers),
                group=self._group,
                message=outgoing.message,
                queue=queue,
                broker_address=address,
                communication_mode=mode,
                unit_mode=self._settings.unit_mode,
            )
            for hook in hooks.check_forbidden:
                hook.check_forbidden(question)
        context = SendMessageContext(
            producer_group=self._group,
            message=outgoing.message,
            properties=outgoing.properties,
            body_size=len(outgoing.body),
            queue=queue,
            broker_address=address,
            born_host=self._instance.client_ip,
            communication_mode=mode,
            message_type=message_type(outgoing.properties),
            namespace=self._settings.namespace or "",
        )
        call_hooks([hook.send_message_before for hook in hooks.send], context)
        return context

    def after(
        self, context: SendMessageContext, *, result: SendResult | None = None, error: Exception | None = None
    ) -> None:
        """Call the second half: the attempt ended, or was only written."""
        context.send_result, context.exception = result, error
        call_hooks([hook.send_message_after for hook in self._hooks.send], context)


def message_type(properties: dict[str, str]) -> MessageType:
    """The kind of a message with these properties."""
    if any(properties.get(name) for name in (*DELAY_PROPERTIES, START_DELIVER_TIME)):
        return MessageType.DELAY_MSG
    if properties.get(names.TRAN_MSG) == "true":
        return MessageType.TRANS_MSG_HALF
    return MessageType.NORMAL_MSG
