"""The hooks that record what a client does; `trace_dispatcher.py` sends the records.

Not traced: messages of the trace topic itself, sends that raised, messages a broker says not to trace, and those with
the property TRACE_ON=false. Recalls are traced with `recall_trace_enable`. Mirrors `SendMessageTraceHookImpl`,
`ConsumeMessageTraceHookImpl`, `EndTransactionTraceHookImpl`, `DefaultRecallMessageTraceHook`.
"""

from collections.abc import Callable
from typing import Any

from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.recall_handle import decode_recall_handle
from pocketmq.protocol.requests.send import RecallMessage
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import Request

from ..clock import wall_ms
from ..settings.client_settings import AccessChannel
from ..values.namespaces import without_namespace
from ..values.results import DEFAULT_REGION, SendStatus
from .hooks import (
    ConsumeMessageContext,
    ConsumeMessageHook,
    EndTransactionContext,
    EndTransactionHook,
    MessageType,
    SendMessageContext,
    SendMessageHook,
)
from .rpc_hooks import RPCHook
from .trace_records import TraceBean, TraceContext, TraceType

Append = Callable[[TraceContext], bool]


class TraceHook(SendMessageHook, ConsumeMessageHook, EndTransactionHook):
    """Gives `append` a TraceContext for each step. `new_id` makes the ids that connect SubBefore and SubAfter."""

    def __init__(self, append: Append, trace_topic: str, new_id: Callable[[], str]) -> None:
        self._append = append
        self._trace_topic = trace_topic
        self._new_id = new_id

    # -- sends

    def send_message_before(self, context: SendMessageContext) -> None:
        topic = context.message.topic
        if topic.startswith(self._trace_topic):
            return
        bean = TraceBean(
            topic=without_namespace(topic),
            tags=context.message.tags or None,
            keys=context.message.keys or None,
            store_host=context.broker_address,
            body_length=context.body_size,
            msg_type=context.message_type,
        )
        context.trace_context = TraceContext(
            trace_type=TraceType.PUB,
            timestamp_ms=wall_ms(),
            group_name=without_namespace(context.producer_group),
            beans=[bean],
        )

    def send_message_after(self, context: SendMessageContext) -> None:
        made, result = context.trace_context, context.send_result
        if not isinstance(made, TraceContext) or result is None or not result.trace_on:
            return
        bean = made.beans[0]
        made.cost_ms = wall_ms() - made.timestamp_ms
        made.is_success = result.status is SendStatus.SEND_OK
        made.region_id = result.region_id
        bean.msg_id = result.message_id
        bean.offset_msg_id = result.offset_message_id
        self._append(made)

    # -- consumption

    def consume_message_before(self, context: ConsumeMessageContext) -> None:
        before = TraceContext(
            trace_type=TraceType.SUB_BEFORE,
            timestamp_ms=wall_ms(),
            group_name=without_namespace(context.consumer_group),
            request_id=self._new_id(),
        )
        for message in context.messages:
            properties = message.properties
            if properties.get(names.TRACE_ON) == "false":
                continue
            before.region_id = properties.get(names.MSG_REGION)
            before.beans.append(
                TraceBean(
                    topic=without_namespace(message.topic),
                    msg_id=message.message_id,
                    tags=message.tags or None,
                    keys=message.keys or None,
                    body_length=message.store_size,
                    retry_times=message.reconsume_times,
                )
            )
        if before.beans:
            context.trace_context = before
            self._append(before)

    def consume_message_after(self, context: ConsumeMessageContext) -> None:
        before = context.trace_context
        if not isinstance(before, TraceContext):
            return
        ended_ms = wall_ms()
        self._append(
            TraceContext(
                trace_type=TraceType.SUB_AFTER,
                timestamp_ms=ended_ms,
                region_id=before.region_id,
                group_name=before.group_name,
                request_id=before.request_id,
                access_channel=AccessChannel(context.access_channel),
                is_success=context.is_success,
                cost_ms=(ended_ms - before.timestamp_ms) // len(context.messages),
                context_code=int(context.return_type),
                beans=before.beans,
            )
        )

    # -- transactions

    def end_transaction(self, context: EndTransactionContext) -> None:
        if context.topic.startswith(self._trace_topic):
            return
        bean = TraceBean(
            topic=without_namespace(context.topic),
            msg_id=context.msg_id,
            tags=context.tags or None,
            keys=context.keys or None,
            store_host=context.broker_address,
            msg_type=MessageType.TRANS_MSG_COMMIT,
            transaction_id=context.transaction_id,
            transaction_state=context.state,
            from_transaction_check=context.from_transaction_check,
        )
        self._append(
            TraceContext(
                trace_type=TraceType.END_TRANSACTION,
                timestamp_ms=wall_ms(),
                region_id=context.properties.get(names.MSG_REGION) or DEFAULT_REGION,
                group_name=without_namespace(context.producer_group),
                beans=[bean],
            )
        )


class RecallTraceHook(RPCHook):
    """Traces recalls by their answers, if the broker names its region in them."""

    def __init__(self, append: Append) -> None:
        self._append = append

    def after_response(self, address: str, request: Request[Any], response: Command) -> None:
        region = (response.fields or {}).get(names.MSG_REGION)
        if not isinstance(request, RecallMessage) or region is None:
            return
        try:
            msg_id = decode_recall_handle(request.recall_handle).message_id
        except BodyError:
            return
        self._append(
            TraceContext(
                trace_type=TraceType.RECALL,
                timestamp_ms=wall_ms(),
                region_id=region,
                group_name=without_namespace(request.producer_group or ""),
                is_success=response.code == 0,
                beans=[TraceBean(topic=without_namespace(request.topic), msg_id=msg_id)],
            )
        )
