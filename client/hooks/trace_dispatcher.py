"""Records what a client does, and sends it to the trace topic, in batches and in the background (`enable_trace`).

    async with Producer("orders", enable_trace=True) as producer: ...        trace_topic="..." for a topic of one's own

Hooks make a record of each step. Up to `MAX_WAITING` records wait; more are dropped and counted, because tracing must
never slow down the traffic it records. A batch is sent when `trace_msg_batch_num` (at most 20) records wait or 5 s have
passed, and at shutdown. Failures are logged. Mirrors `AsyncTraceDispatcher` and the hooks `SendMessageTraceHookImpl`,
`ConsumeMessageTraceHookImpl`, `EndTransactionTraceHookImpl`, `DefaultRecallMessageTraceHook`.
"""

import asyncio
import itertools
import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.recall_handle import decode_recall_handle
from pocketmq.protocol.message.topics import TRACE_TOPIC
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.requests.send import RecallMessage
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import Request

from ..clock import wall_ms
from ..errors import ClientError, InvalidSetting
from ..settings.client_settings import AccessChannel, ClientSettings, local_ip
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message
from ..values.namespaces import without_namespace
from ..values.results import DEFAULT_REGION, SendStatus
from .hooks import (
    ConsumeMessageContext,
    ConsumeMessageHook,
    EndTransactionContext,
    EndTransactionHook,
    Hooks,
    MessageType,
    SendMessageContext,
    SendMessageHook,
)
from .rpc_hooks import RPCHook
from .trace_records import TraceBean, TraceContext, TraceType, encode_trace, trace_keys

Append = Callable[[TraceContext], None]


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


_log = logging.getLogger(__name__)

MAX_WAITING: Final = 2048
MAX_BATCH: Final = 20
FLUSH_SECONDS: Final = 5.0
SEND_TIMEOUT_MS: Final = 5_000
MAX_MESSAGE_SIZE: Final = 128_000
CLOUD_TOPIC_PREFIX: Final = "rmq_sys_TRACE_DATA_"
GROUP_PREFIX: Final = "_INNER_TRACE_PRODUCER"
INSTANCE_NAME: Final = "PID_CLIENT_INNER_TRACE_PRODUCER"

_numbers = itertools.count(1)


MakeSender = Callable[..., Any]
"""The class `Producer`, a room above: traces are sent by a producer of their own, so that they are not traced."""


class AsyncTraceDispatcher:
    """Of one producer or consumer; `start` and `shutdown` with it. Owned by the event loop.

    `kind` is PRODUCE or CONSUME. The hooks that fill the trace are added to the client's own `hooks`; those of them
    that look at requests are the trace producer's too, which needs a signature as well.
    """

    def __init__(
        self, group: str, kind: str, settings: ClientSettings, hooks: Hooks, make_sender: MakeSender
    ) -> None:
        self.trace_topic = settings.trace_topic or TRACE_TOPIC
        self.dropped = 0
        """Records dropped because too many waited."""
        self._settings = settings
        self._number = next(_numbers)
        self._group = f"{GROUP_PREFIX}-{group}-{kind}-{self._number}"
        self._make_sender = make_sender
        self._rpc_hooks = hooks.rpc
        self._sender: Any = None
        self._region_topics = settings.access_channel is AccessChannel.CLOUD
        self._batch_num = min(settings.trace_msg_batch_num, MAX_BATCH)
        self._waiting: deque[TraceContext] = deque()
        self._enough = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        ids = UniqueIdMaker(pack_host(local_ip(), 0)[:-4], os.getpid(), id(self), wall_ms)
        hooks.add(TraceHook(self.append, self.trace_topic, ids.next))
        if settings.recall_trace_enable:
            hooks.add(RecallTraceHook(self.append))

    def append(self, context: TraceContext) -> None:
        """Add a record, unless too many wait already."""
        if len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
            _log.info("buffer full %d, dropping the trace %r", self.dropped, context)
            return
        self._waiting.append(context)
        if len(self._waiting) >= self._batch_num:
            self._enough.set()

    async def start(self) -> None:
        """Start the trace's own producer and send from now on, unless it was shut down meanwhile. ClientError if the
        producer cannot start."""
        try:
            sender = await self._start_sender(self._sender_settings())
        except InvalidSetting:  # the traces of clients with other settings use the shared instance
            sender = await self._start_sender(self._sender_settings(f"_{self._number}"))
        if self._stopping:
            await sender.shutdown()
            return
        self._sender = sender
        self._task = asyncio.get_running_loop().create_task(
            self._send_forever(sender), name=f"{self._group} trace"
        )

    async def shutdown(self) -> None:
        """Send what waits and what is under way, at most for 5 s, and stop."""
        self._stopping = True
        task, self._task = self._task, None
        if task is None:
            return
        assert self._sender is not None
        self._enough.set()
        try:
            await asyncio.wait({task}, timeout=FLUSH_SECONDS)
            if not task.done():
                _log.warning("%d trace records are not sent", len(self._waiting))
        finally:
            task.cancel()
            try:
                await asyncio.gather(task, return_exceptions=True)
            finally:
                await self._sender.shutdown()

    async def _start_sender(self, settings: ProducerSettings) -> Any:
        sender = self._make_sender(self._group, settings=settings, hooks=self._rpc_hooks)
        await sender.start()
        return sender

    def _sender_settings(self, suffix: str = "") -> ProducerSettings:
        """The client's connection settings, with the name, limits and timeout of the trace."""
        settings = self._settings
        shared = {name: getattr(settings, name) for name in ClientSettings.__struct_fields__}
        addresses = settings.namesrv_addr or os.environ.get("NAMESRV_ADDR", "")
        shared |= {
            "instance_name": f"{INSTANCE_NAME}_{addresses}{suffix}",
            "namespace": "",
            "enable_trace": False,
            "vip_channel_enabled": False,
            "enable_stream_request_type": False,
        }
        return ProducerSettings(**shared, send_msg_timeout=SEND_TIMEOUT_MS, max_message_size=MAX_MESSAGE_SIZE)

    async def _send_forever(self, sender: Any) -> None:
        """Until the shutdown, and then until nothing waits."""
        while not self._stopping or self._waiting:
            if not self._stopping:
                with suppress(TimeoutError):
                    async with asyncio.timeout(FLUSH_SECONDS):
                        await self._enough.wait()
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._batch_num))]
            try:
                await self._send(sender, batch)
            except Exception:
                _log.exception("traces of %s could not be sent", self._group)
            if len(self._waiting) < self._batch_num and not self._stopping:
                self._enough.clear()

    async def _send(self, sender: Any, batch: list[TraceContext]) -> None:
        """One message for each topic traced, several if one would be too long."""
        by_topic: dict[tuple[str, str], list[TraceContext]] = {}
        for context in batch:
            if context.region_id is not None and context.beans:
                trace_topic = (
                    f"{CLOUD_TOPIC_PREFIX}{context.region_id}" if self._region_topics else self.trace_topic
                )
                by_topic.setdefault((context.beans[0].topic, trace_topic), []).append(context)
        for (_, topic), contexts in by_topic.items():
            for message in trace_messages(topic, contexts):
                try:
                    await sender.send(message, timeout_ms=SEND_TIMEOUT_MS)
                except ClientError as error:
                    _log.error("send trace data failed, keys %s: %s", message.keys, error)


def trace_messages(topic: str, contexts: Sequence[TraceContext]) -> list[Message]:
    """The records as messages: a new one begins when one has reached the limit."""
    messages: list[Message] = []
    text, keys = "", dict[str, None]()
    for index, context in enumerate(contexts, 1):
        text += encode_trace(context)
        keys |= dict.fromkeys(trace_keys(context))
        if len(text) >= MAX_MESSAGE_SIZE or index == len(contexts):
            messages.append(Message(topic, text.encode(), keys=" ".join(keys)))
            text, keys = "", {}
    return messages
