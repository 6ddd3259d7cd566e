"""Batches to brokers: several in flight, each acknowledged, repeated while a broker does not answer.

A `BatchSender` belongs to one task. Requests that may go to any queue take turns over the writable queues; those of one
fixed queue follow each other, so that its messages keep their order. A request without an answer is sent again, and so
a message may be stored twice; its UNIQ_KEY is the same both times. A refusal that time will not change fails the task.
Bound in memory: `in_flight` requests.
"""

import asyncio
import itertools
import time
from typing import Any, Final

import msgspec
from pocketmq.client.connections.connection import Connection
from pocketmq.client.errors import RequestRefused, RouteNotFound
from pocketmq.protocol.message.java_strings import java_hash
from pocketmq.protocol.message.properties import UNIQ_KEY, WAIT, decode_properties, encode_properties_text
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessageReply, SendMessageV2
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import PipelineError, SendError
from ..planning.positions import Queue
from .wire import Wire

DEFAULT_QUEUE_NUMS: Final = 4
STORED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
)
"""The message is in the log; of all but the first the broker says that it is not yet where it was asked to be."""


class StoredMessage(msgspec.Struct, frozen=True):
    """Where a message went: what ends its transaction, where it is a half message."""

    topic: str
    broker_name: str
    offset_message_id: str
    queue_offset: int
    transaction_id: str | None
    message_id: str


class BatchSender:
    """Sends for one task. `finish` returns when everything is acknowledged."""

    def __init__(
        self,
        wire: Wire,
        *,
        group: str,
        in_flight: int,
        timeout_ms: int,
        retry_timeout_ms: int,
        retries: int | None = None,
        rows_per_second: int | None = None,
    ) -> None:
        self._wire = wire
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
        self._begun = time.monotonic()
        self.rows = 0
        self.requests = 0
        self.unconfirmed_requests = 0
        self.stored: list[StoredMessage] = []

    # -- for the task

    def send_batch(self, topic: str, body: Any, rows: int, *, queue: Queue | None = None) -> None:
        """Queue a batch body; waits while as many as allowed are under way. Raises what an earlier one ran into."""
        # Only that: 4.9 brokers put the properties of a batch behind those of each of its messages, where they win.
        properties = encode_properties_text({WAIT: "true"})
        request = self._request(SendBatchMessage, topic, properties)
        self._start(request, body, rows, queue)

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
        """Queue one message with its property text."""
        request = self._request(SendMessageV2, topic, properties, flag=flag, sys_flag=sys_flag)
        self._start(request, body, 1, queue)

    def queue_for(self, topic: str, key: str) -> Queue:
        """The queue of a sharding key, as the official SelectMessageQueueByHash picks it."""
        queues = self._wire.run(self._queues(topic))
        return queues[abs(java_hash(key)) % len(queues)]

    def queue_of(self, topic: str, queue_id: int) -> Queue:
        """The queue with a number, on one of the brokers that have it. `PipelineError` where none has."""
        queues = [one for one in self._wire.run(self._queues(topic)) if one.queue_id == queue_id]
        if not queues:
            raise PipelineError(f"column queueId: topic {topic} has no writable queue {queue_id}")
        return queues[next(self._turns) % len(queues)] if len(queues) > 1 else queues[0]

    def finish(self) -> None:
        """Return once everything is acknowledged; raises the first failure."""
        self._wire.run(self._finish())

    def cancel(self, *, after_seconds: float = 0.0) -> None:
        """Forget what is not acknowledged after that time; it may be stored all the same."""
        if self._unfinished and after_seconds > 0:
            self._wire.run(asyncio.wait(self._unfinished, timeout=after_seconds))
        for task in self._unfinished:
            task.cancel()
        self._wire.run(self._settle())

    # -- on the loop

    def _start(self, request: Any, body: Any, rows: int, queue: Queue | None) -> None:
        self._wait_for_rate(rows)
        self._wire.run(self._launch(request, body, rows, queue))

    def _wait_for_rate(self, rows: int) -> None:
        """Not more rows a second than allowed, on the average of this task."""
        self.rows += rows
        if self._rows_per_second is not None:
            due = self._begun + self.rows / self._rows_per_second
            pause = due - time.monotonic()
            if pause > 0:
                self._wire.run(asyncio.sleep(pause))

    async def _launch(self, request: Any, body: Any, rows: int, queue: Queue | None) -> None:
        while len(self._unfinished) >= self._in_flight:
            await asyncio.wait(self._unfinished, return_when=asyncio.FIRST_COMPLETED)
        self._raise_failure()
        before = None if queue is None else self._last_task_of_queue.get(queue)
        task = asyncio.get_running_loop().create_task(self._deliver(request, body, queue, before))
        self._unfinished.add(task)
        task.add_done_callback(self._on_done)
        if queue is not None:
            self._last_task_of_queue[queue] = task
        self.requests += 1
        await asyncio.sleep(0)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._unfinished.discard(task)
        if not task.cancelled() and task.exception() is not None and self._failure is None:
            self._failure = task.exception()

    async def _finish(self) -> None:
        await self._settle()
        self._raise_failure()

    async def _settle(self) -> None:
        while self._unfinished:
            await asyncio.wait(self._unfinished)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _deliver(
        self, request: Any, body: Any, queue: Queue | None, before: "asyncio.Task[None] | None"
    ) -> None:
        if before is not None and not before.done():
            await asyncio.wait((before,))
            if self._failure is not None:
                return  # what goes before it in its queue is not stored, and neither shall this be

        async def ask(fresh: bool) -> None:
            queues = await self._queues(request.topic, fresh=fresh)
            place = queue or queues[next(self._turns) % len(queues)]
            connection = await self._wire.broker(request.topic, place.broker_name)
            sent = msgspec.structs.replace(request, queue_id=place.queue_id, broker_name=place.broker_name)
            command = await connection.exchange(sent, body, timeout_seconds=self._timeout_seconds)
            if command.code not in STORED:
                raise RequestRefused(command.code, command.remark or "", sent.name)
            self.unconfirmed_requests += command.code != ResponseCode.SUCCESS
            if isinstance(request, SendMessageV2) and not request.batch and request.sys_flag:
                self._remember(request, place, Connection.read_fields(sent, command))

        try:
            await self._wire.with_retries(
                f"send to {request.topic}", ask, self._retry_timeout_ms, retries=self._retries
            )
        except PipelineError as error:
            raise SendError(str(error)) from error

    def _remember(self, request: SendMessageV2, place: Queue, reply: SendMessageReply) -> None:
        self.stored.append(
            StoredMessage(
                request.topic,
                place.broker_name,
                reply.msg_id,
                reply.queue_offset,
                reply.transaction_id,
                decode_properties(request.properties or "").get(UNIQ_KEY, ""),
            )
        )

    async def _queues(self, topic: str, *, fresh: bool = False) -> list[Queue]:
        """Writable queues; of a topic that is yet to be made those it will have."""
        try:
            route = await self._wire.route(topic, fresh=fresh)
        except RouteNotFound as missing:
            try:
                template = await self._wire.route(AUTO_CREATE_TOPIC, fresh=fresh)
            except RouteNotFound:
                raise RouteNotFound(
                    f"no broker has topic {topic}, and none makes topics by itself"
                ) from missing
            route = template.for_new_topic(topic, DEFAULT_QUEUE_NUMS)
            self._wire.remember(topic, route)
        queues = [Queue(topic, one.broker_name, one.queue_id) for one in route.write_queues()]
        if not queues:
            raise RouteNotFound(f"topic {topic} has no writable queue now")
        return queues

    def _request(self, kind: Any, topic: str, properties: str, *, flag: int = 0, sys_flag: int = 0) -> Any:
        return kind(
            producer_group=self._group,
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=DEFAULT_QUEUE_NUMS,
            queue_id=0,
            sys_flag=sys_flag,
            born_timestamp=time.time_ns() // 1_000_000,
            flag=flag,
            properties=properties,
            reconsume_times=0,
            batch=kind is SendBatchMessage,
        )
