"""Sends batches to brokers: several requests in flight, each acknowledged, retried while a broker does not answer.

A `BatchSender` belongs to one task. Requests for any queue go to the writable queues in turn. Requests for one queue
wait for each other, so that its messages keep their order. A request without an answer is sent again, so a message may
be stored twice, with the same UNIQ_KEY. A refusal that an old route may explain is asked once more by a fresh one; any
other that a retry cannot change fails the task. Memory is limited to `in_flight` requests, and to `MAX_HALF_MESSAGES`
places of half messages.
"""

import asyncio
import itertools
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from pocketmq.client.connections.connection import Connection
from pocketmq.client.errors import RequestRefused, RouteNotFound
from pocketmq.protocol.message.flags import TRANSACTION_PREPARED
from pocketmq.protocol.message.java_strings import java_hash
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.message.properties import UNIQ_KEY, WAIT, decode_properties, encode_properties_text
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessageReply, SendMessageV2
from pocketmq.protocol.wire.response_codes import ResponseCode

from ...errors import PipelineError, SendError
from ..planning.positions import Queue
from .broker_client import BrokerClient

DEFAULT_QUEUE_NUMS: Final = 4
STORED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
)
"""The message is in the log. All codes but SUCCESS say that it is not yet flushed or replicated as configured."""
STALE_ROUTE: Final = (ResponseCode.TOPIC_NOT_EXIST, ResponseCode.NO_PERMISSION)
"""Refusals of a broker that has the topic no longer, or no longer for writing: others may have it."""
MAX_HALF_MESSAGES: Final = 1_000_000
"""Of one task, which keeps some 60 bytes of each and hands them to the driver."""
Stored = Callable[[Queue, int], None]
"""Called with the queue and the queue offset of a request's first message."""


class HalfMessage(msgspec.Struct, frozen=True):
    """Where a half message was stored: what ends its transaction."""

    topic: str
    broker_name: str
    log_position: int
    queue_offset: int
    transaction_id: str | None
    message_id: str


class HalfMessages:
    """The half messages of one task, by topic and broker; picklable."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], tuple[array[int], array[int], list[str], list[str | None]]] = {}

    def add(self, half: HalfMessage) -> None:
        place = self._places.setdefault((half.topic, half.broker_name), (array("q"), array("q"), [], []))
        positions, offsets, ids, transactions = place
        positions.append(half.log_position)
        offsets.append(half.queue_offset)
        ids.append(half.message_id)
        transactions.append(half.transaction_id)

    def __iter__(self) -> Iterator[HalfMessage]:
        for (topic, broker_name), (positions, offsets, ids, transactions) in self._places.items():
            for position, offset, message_id, transaction in zip(
                positions, offsets, ids, transactions, strict=True
            ):
                yield HalfMessage(topic, broker_name, position, offset, transaction, message_id)


class BatchSender:
    """Sends for one task. `finish` returns when everything is acknowledged."""

    def __init__(
        self,
        client: BrokerClient,
        *,
        group: str,
        in_flight: int,
        timeout_ms: int,
        retry_timeout_ms: int,
        retries: int | None = None,
        rows_per_second: int | None = None,
    ) -> None:
        self._client = client
        self._group = group
        self._in_flight = in_flight
        self._timeout_seconds = timeout_ms / 1000
        self._retry_timeout_ms = retry_timeout_ms
        self._retries = retries
        self._rows_per_second = rows_per_second
        self._turns = itertools.count(time.monotonic_ns())
        self._unfinished: set[asyncio.Task[None]] = set()
        self._last_task_of_queue: dict[Queue, asyncio.Task[None]] = {}
        self._failure: BaseException | None = None
        self._started_at = time.monotonic()
        self.rows = 0
        self.unflushed_requests = 0
        self.half_messages = HalfMessages()

    # -- for the task

    def send_batch(self, topic: str, body: Any, rows: int, *, queue: Queue | None = None) -> None:
        """Start sending a batch body."""
        self.send(self.request(topic), body, rows, queue=queue)

    def send_one(
        self,
        topic: str,
        body: Any,
        properties: str,
        flag: int,
        *,
        queue: Queue | None = None,
        sys_flag: int = 0,
    ) -> None:
        """Start sending one message with its property text. `sys_flag` says whether it is a half message."""
        if sys_flag & TRANSACTION_PREPARED and self.rows >= MAX_HALF_MESSAGES:
            raise PipelineError(
                f"a task of a transactional write can send at most {MAX_HALF_MESSAGES:,} messages: "
                "use more partitions, smaller batches, or another guarantee"
            )
        self.send(self.request(topic, properties, flag=flag, sys_flag=sys_flag), body, 1, queue=queue)

    def send(
        self, request: Any, body: Any, rows: int, *, queue: Queue | None = None, stored: Stored | None = None
    ) -> None:
        """Start sending a request of `request`; waits while `in_flight` requests are unfinished.

        `stored(queue, offset)` is called with the place of its first message once the broker has it. Raises the error
        of an earlier one.
        """
        self._wait_for_rate(rows)
        self._client.run(self._launch(request, body, queue, stored))

    def queue_for(self, topic: str, key: str) -> Queue:
        """The queue of a sharding key, chosen as by the official SelectMessageQueueByHash."""
        queues = self._client.run(find_writable_queues(self._client, topic))
        return queues[abs(java_hash(key)) % len(queues)]

    def queue_of(self, topic: str, queue_id: int, broker_name: str | None = None) -> Queue:
        """The queue with this id. `PipelineError` if no broker has it.

        Of several brokers that have it, the one with this name is chosen. If there is none, the name, or without a name
        the id, decides: all rows with the same values go to the same queue, in every task and batch.
        """
        writable = self._client.run(find_writable_queues(self._client, topic))
        queues = [queue for queue in writable if queue.queue_id == queue_id]
        if not queues:
            raise PipelineError(f"column queueId: topic {topic} has no writable queue {queue_id}")
        named = next((queue for queue in queues if queue.broker_name == broker_name), None)
        number = queue_id if broker_name is None else abs(java_hash(broker_name))
        return named or queues[number % len(queues)]

    def finish(self) -> None:
        """Return once every request is acknowledged; raises the first failure."""
        self._client.run(self._settle())
        self._raise_failure()

    def cancel(self, *, after_seconds: float = 0.0) -> None:
        """Give up on requests that are not acknowledged after this time. Their messages may be stored nevertheless."""
        if self._unfinished and after_seconds > 0:
            self._client.run(asyncio.wait(self._unfinished, timeout=after_seconds))
        for task in self._unfinished:
            task.cancel()
        self._client.run(self._settle())

    # -- on the loop

    def _wait_for_rate(self, rows: int) -> None:
        """Keep the average of this task at or below `rows_per_second`."""
        self.rows += rows
        if self._rows_per_second is not None:
            due = self._started_at + self.rows / self._rows_per_second
            pause = due - time.monotonic()
            if pause > 0:
                self._client.run(asyncio.sleep(pause))

    async def _launch(self, request: Any, body: Any, queue: Queue | None, stored: Stored | None) -> None:
        while len(self._unfinished) >= self._in_flight:
            await asyncio.wait(self._unfinished, return_when=asyncio.FIRST_COMPLETED)
        self._raise_failure()
        before = None if queue is None else self._last_task_of_queue.get(queue)
        task = asyncio.get_running_loop().create_task(self._deliver(request, body, queue, before, stored))
        self._unfinished.add(task)
        task.add_done_callback(self._on_done)
        if queue is not None:
            self._last_task_of_queue[queue] = task
        await asyncio.sleep(0)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._unfinished.discard(task)
        if not task.cancelled() and task.exception() is not None and self._failure is None:
            self._failure = task.exception()

    async def _settle(self) -> None:
        while self._unfinished:
            await asyncio.wait(self._unfinished)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _deliver(
        self,
        request: Any,
        body: Any,
        queue: Queue | None,
        before: "asyncio.Task[None] | None",
        stored: Stored | None,
    ) -> None:
        if before is not None:
            if not before.done():
                await asyncio.wait((before,))
            if self._failure is not None or before.cancelled() or before.exception() is not None:
                return  # the request before it in its queue was not stored, so this one must not be
        await self.deliver(request, body, queue, stored)

    async def deliver(
        self, request: Any, body: Any, queue: Queue | None, stored: Stored | None = None
    ) -> None:
        """Send a request of `request` and wait until it is acknowledged, for coroutines of the client's loop.

        `SendError` if it is refused, or not acknowledged after all retries.
        """

        async def send(fresh: bool) -> None:
            queues = await find_writable_queues(self._client, request.topic, fresh=fresh)
            target = queue or queues[next(self._turns) % len(queues)]
            connection = await self._client.broker(request.topic, target.broker_name)
            sent = msgspec.structs.replace(request, queue_id=target.queue_id, broker_name=target.broker_name)
            command = await connection.post(sent, body, timeout_seconds=self._timeout_seconds)
            if command.code not in STORED:
                raise RequestRefused(command.code, command.remark or "", sent.name)
            self.unflushed_requests += command.code != ResponseCode.SUCCESS
            is_half = isinstance(request, SendMessageV2) and request.sys_flag & TRANSACTION_PREPARED
            if stored is None and not is_half:
                return
            reply = Connection.read_fields(sent.reply_type, command, sent.name)
            if stored is not None:
                stored(target, reply.queue_offset)
            if is_half:
                self._remember(request, target, reply)

        async def ask(fresh: bool) -> None:
            try:
                await send(fresh)
            except RequestRefused as refusal:
                if fresh or refusal.code not in STALE_ROUTE:
                    raise
                await send(True)

        try:
            await self._client.with_retries(
                f"send to {request.topic}", ask, self._retry_timeout_ms, retries=self._retries
            )
        except PipelineError as error:
            raise SendError(str(error)) from error

    def _remember(self, request: SendMessageV2, target: Queue, reply: SendMessageReply) -> None:
        self.half_messages.add(
            HalfMessage(
                request.topic,
                target.broker_name,
                decode_message_id(reply.msg_id).position,
                reply.queue_offset,
                reply.transaction_id,
                decode_properties(request.properties or "").get(UNIQ_KEY, ""),
            )
        )

    def request(self, topic: str, properties: str | None = None, **fields: int) -> Any:
        """A request for one message with its property text, or without one for a batch."""
        kind: Any = SendBatchMessage if properties is None else SendMessageV2
        if properties is None:
            # Only WAIT: 4.9 brokers append the properties of a batch to those of each message, and there they win.
            properties = encode_properties_text({WAIT: "true"})
        fields = {"flag": 0, "sys_flag": 0, "reconsume_times": 0, "born_timestamp": now_ms(), **fields}
        return kind(
            producer_group=self._group,
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=DEFAULT_QUEUE_NUMS,
            queue_id=0,
            properties=properties,
            batch=kind is SendBatchMessage,
            **fields,
        )


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def find_writable_queues(client: BrokerClient, topic: str, *, fresh: bool = False) -> list[Queue]:
    """The writable queues of a topic; for a topic that a send will create, the queues it will have. `RouteNotFound` if
    there is none."""
    try:
        route = await client.route(topic, fresh=fresh)
    except RouteNotFound as missing:
        try:
            template = await client.route(AUTO_CREATE_TOPIC, fresh=fresh)
        except RouteNotFound:
            raise RouteNotFound(
                f"no broker has topic {topic}, and none creates topics automatically"
            ) from missing
        route = template.for_new_topic(topic, DEFAULT_QUEUE_NUMS)
        client.remember(topic, route)
    queues = [Queue(topic, queue.broker_name, queue.queue_id) for queue in route.queues]
    if not queues:
        raise RouteNotFound(f"topic {topic} has no writable queue now")
    return queues
