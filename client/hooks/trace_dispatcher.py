"""Sends what a client did to the trace topic, in batches and in the background (`enable_trace`).

    async with Producer("orders", enable_trace=True) as producer: ...        trace_topic="..." for a topic of one's own

Up to `MAX_WAITING` records wait; more are dropped and counted, for a trace must not hold up what it tells of. A batch
leaves when `trace_msg_batch_num` (at most 20) records wait or 5 s have passed, and at shutdown. Failures are logged.
Mirrors `AsyncTraceDispatcher`.
"""

import asyncio
import itertools
import logging
import os
from collections import deque
from collections.abc import Sequence
from typing import Final

from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.topics import TRACE_TOPIC
from pocketmq.protocol.message.unique_id import UniqueIdMaker

from ..clock import wall_ms
from ..errors import ClientError
from ..settings.client_settings import AccessChannel, ClientSettings
from ..settings.local_address import local_ip
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message
from .hooks import Hooks
from .rpc_hooks import RPCHook
from .trace_hooks import RecallTraceHook, TraceHook
from .trace_records import TraceContext, encode_trace, trace_keys

_log = logging.getLogger("pocketmq.client")

MAX_WAITING: Final = 2048
MAX_BATCH: Final = 20
FLUSH_SECONDS: Final = 5.0
SEND_TIMEOUT_MS: Final = 5_000
MAX_MESSAGE_SIZE: Final = 128_000
CLOUD_TOPIC_PREFIX: Final = "rmq_sys_TRACE_DATA_"
GROUP_PREFIX: Final = "_INNER_TRACE_PRODUCER"
INSTANCE_NAME: Final = "PID_CLIENT_INNER_TRACE_PRODUCER"

_numbers = itertools.count(1)

Batch = list[TraceContext]


class AsyncTraceDispatcher:
    """Of one producer or consumer; `attach` its hook, `start` and `shutdown` with it. Owned by the event loop.

    `kind` is PRODUCE or CONSUME. `rpc_hooks` are the client's own: a signature is needed here too.
    """

    def __init__(
        self, group: str, kind: str, settings: ClientSettings, rpc_hooks: Sequence[RPCHook] = ()
    ) -> None:
        self.trace_topic = settings.trace_topic or TRACE_TOPIC
        self.dropped = 0
        """Records that found no room."""
        self._settings = settings
        self._group = f"{GROUP_PREFIX}-{group}-{kind}-{next(_numbers)}"
        self._rpc_hooks = tuple(rpc_hooks)
        self._batch_num = min(settings.trace_msg_batch_num, MAX_BATCH)
        self._waiting: deque[TraceContext] = deque()
        self._enough: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._ids = UniqueIdMaker(pack_host(local_ip(), 0)[:-4], os.getpid(), id(self), wall_ms)

    def attach(self, hooks: Hooks) -> None:
        """Let the hooks of a client tell this trace, behind those of its user."""
        hooks.add(TraceHook(self.append, self.trace_topic, self._ids.next))
        if self._settings.recall_trace_enable:
            hooks.add(RecallTraceHook(self.append))

    def append(self, context: TraceContext) -> bool:
        """Take a record; False where there is no room."""
        if len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
            _log.info("buffer full %d, dropping the trace %r", self.dropped, context)
            return False
        self._waiting.append(context)
        if self._enough is not None and len(self._waiting) >= self._batch_num:
            self._enough.set()
        return True

    async def start(self) -> None:
        """Start the trace's own producer, and send from now on, unless it was shut down meanwhile. ClientError where
        that cannot start."""
        from ..producing.producer import Producer

        settings = self._settings
        self._producer = Producer(self._group, settings=self._producer_settings(), hooks=self._rpc_hooks)
        await self._producer.start()
        if self._stopping:
            await self._producer.shutdown()
            return
        self._region_topics = settings.access_channel is AccessChannel.CLOUD
        self._enough = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._send_forever(), name=f"{self._group} trace")

    async def shutdown(self) -> None:
        """Send what waits and what is under way, at most for 5 s, and stop."""
        self._stopping = True
        task, self._task = self._task, None
        if task is None:
            return
        assert self._enough is not None
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
                await self._producer.shutdown()

    def _producer_settings(self) -> ProducerSettings:
        """The client's own connection settings, and the trace's name, limits and timeout."""
        given = self._settings
        shared = {name: getattr(given, name) for name in ClientSettings.__struct_fields__}
        addresses = given.namesrv_addr or os.environ.get("NAMESRV_ADDR", "")
        shared |= {
            "instance_name": f"{INSTANCE_NAME}_{addresses}",
            "namespace": "",
            "enable_trace": False,
            "vip_channel_enabled": False,
            "enable_stream_request_type": False,
        }
        return ProducerSettings(**shared, send_msg_timeout=SEND_TIMEOUT_MS, max_message_size=MAX_MESSAGE_SIZE)

    async def _send_forever(self) -> None:
        """Until the shutdown, and then until nothing waits."""
        assert self._enough is not None
        while not self._stopping or self._waiting:
            if not self._stopping:
                try:
                    async with asyncio.timeout(FLUSH_SECONDS):
                        await self._enough.wait()
                except TimeoutError:
                    pass
            if self._waiting:
                await self._send(self._next_batch())
            if len(self._waiting) < self._batch_num and not self._stopping:
                self._enough.clear()

    def _next_batch(self) -> Batch:
        return [self._waiting.popleft() for _ in range(min(len(self._waiting), self._batch_num))]

    async def _send(self, batch: Batch) -> None:
        """One message for each topic traced, more where one would be too long."""
        by_topic: dict[tuple[str, str], Batch] = {}
        for context in batch:
            if context.region_id is not None and context.beans:
                trace_topic = (
                    f"{CLOUD_TOPIC_PREFIX}{context.region_id}" if self._region_topics else self.trace_topic
                )
                by_topic.setdefault((context.beans[0].topic, trace_topic), []).append(context)
        messages = [
            message
            for (_, topic), contexts in by_topic.items()
            for message in trace_messages(topic, contexts)
        ]
        for message in messages:
            try:
                await self._producer.send(message, timeout_ms=SEND_TIMEOUT_MS)
            except ClientError as error:
                _log.error("send trace data failed, keys %s: %s", message.keys, error)


def trace_messages(topic: str, contexts: Sequence[TraceContext]) -> list[Message]:
    """The records as messages: a new one begins when one has reached the limit."""
    messages: list[Message] = []
    text: list[str] = []
    keys: dict[str, None] = {}
    size = 0
    for context in contexts:
        part = encode_trace(context)
        keys.update(dict.fromkeys(trace_keys(context)))
        text.append(part)
        size += len(part)
        if size >= MAX_MESSAGE_SIZE:
            messages.append(Message(topic, "".join(text).encode(), keys=" ".join(keys)))
            text, keys, size = [], {}, 0
    if text:
        messages.append(Message(topic, "".join(text).encode(), keys=" ".join(keys)))
    return messages
