"""Messages of one topic as one batch: which lists are refused, how a long one is cut, single sends that become one.

The official client refuses a list larger than max_message_size and leaves cutting to its user; here it is cut into runs
that fit, in order. With `auto_batch` (5.x) messages of one topic, queue, tag and wait flag wait together until they are
`batch_max_bytes`, or the first of them has waited `batch_max_delay_ms`; then they leave as one batch, and each send
gets its own part of the result. Messages that must travel alone or have a timeout of their own, and those beyond
`total_batch_max_bytes`, are sent one by one. Unlike in Java, awaited sends and sends as futures wait together. Mirrors
`MessageBatch.generateFromList`, `DefaultMQProducer.batch` and `ProduceAccumulator`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import BatchElement
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import ClientError, ValidationFailed
from ..settings.producer_settings import ProducerSettings
from ..values.message import DELAY_PROPERTIES, Message
from ..values.results import SendResult

_ELEMENT_HEAD_BYTES: Final = 22
"""Everything of an encoded element but body and properties."""


def check_batch(messages: Sequence[tuple[str, Mapping[str, str]]]) -> None:
    """Raises ValidationFailed unless messages with these topics and properties (as they are sent, with WAIT and delays)
    may travel as one batch: one topic, all waiting for the store or none, no delays, no retry topic.
    `validators.check_message` checks each message on its own.

    4.9 clients refuse delay levels only, and accept timer properties.
    """
    if not messages:
        raise _refusal("no messages")
    first_topic, first_properties = messages[0]
    waits = _waits_for_store(first_properties)
    for topic, properties in messages:
        if any(_positive(properties.get(name)) for name in DELAY_PROPERTIES):
            raise _refusal("Delayed messages are not supported for batching")
        if is_retry_topic(topic):
            raise _refusal("Retry Group is not supported for batching")
        if topic != first_topic:
            raise _refusal("The topic of the messages in one batch should be the same")
        if _waits_for_store(properties) != waits:
            raise _refusal("The waitStoreMsgOK of the messages in one batch should the same")


def split_batch(elements: Iterable[BatchElement], max_message_size: int) -> Iterator[list[BatchElement]]:
    """Runs whose encoded batch has at most `max_message_size` bytes, each as long as it can be.

    A message whose body fits, but whose element does not, is a run of its own, to be sent as an ordinary message.
    Raises ValidationFailed for a body that does not fit, before the run that would hold it. The UNIQ_KEY of an element
    counts.
    """
    run: list[BatchElement] = []
    run_bytes = 0
    for element in elements:
        if len(element.body) > max_message_size:
            raise ValidationFailed(
                f"the message body size over max value, MAX: {max_message_size}", ResponseCode.MESSAGE_ILLEGAL
            )
        size = element_bytes(element)
        if run and run_bytes + size > max_message_size:
            yield run
            run, run_bytes = [], 0
        run.append(element)
        run_bytes += size
    if run:
        yield run


def element_bytes(element: BatchElement) -> int:
    """Bytes of an element in the encoded batch."""
    return _ELEMENT_HEAD_BYTES + len(element.body) + len(element.properties)


def _waits_for_store(properties: Mapping[str, str]) -> bool:
    """Official isWaitStoreMsgOK: true unless the property says otherwise."""
    return properties.get(names.WAIT, "true").lower() == "true"


def _positive(text: str | None) -> bool:
    if text is None:
        return False
    try:
        return int(text) > 0
    except ValueError as error:
        raise _refusal(f"a delay of {text!r}") from error


def _refusal(reason: str) -> ValidationFailed:
    return ValidationFailed(f"Failed to initiate the MessageBatch: {reason}")


HOLD_MS: Final = 10
HOLD_BYTES: Final = 32 * 1024
TOTAL_HOLD_BYTES: Final = 32 * 1024 * 1024


class _Key(NamedTuple):
    topic: str
    queue: MessageQueue | None
    wait_store_ok: bool
    tags: str


class _Waiting(msgspec.Struct, eq=False):
    """The next batch of one key."""

    messages: list[Message] = []
    results: list[asyncio.Future[SendResult]] = []
    keys: dict[str, None] = {}
    body_bytes: int = 0
    wire_bytes: int = 0
    """Of the encoded batch."""
    timer: asyncio.TimerHandle | None = None


SendBatch = Callable[[Sequence[Message], MessageQueue | None, str, str], Awaitable[SendResult]]
"""Sends messages to a queue, or round robin, with the tags and keys of the batch."""


class ProduceAccumulator:
    """Of one producer. `finish` before the connections end."""

    def __init__(self, settings: ProducerSettings, send_batch: SendBatch) -> None:
        self._send_batch = send_batch
        self._hold_ms = settings.batch_max_delay_ms if settings.batch_max_delay_ms > 0 else HOLD_MS
        self._hold_bytes = settings.batch_max_bytes if settings.batch_max_bytes > 0 else HOLD_BYTES
        total = settings.total_batch_max_bytes
        self._total_bytes = total if total > 0 else TOTAL_HOLD_BYTES
        self._max_bytes = settings.max_message_size
        self._held_bytes = 0
        self._waiting: dict[_Key, _Waiting] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def accepts(self, message: Message) -> bool:
        """Whether a message may wait: not with a delay, not of a retry topic, not while too many bytes wait."""
        if message.is_delayed or is_retry_topic(message.topic):
            return False
        return self._held_bytes < self._total_bytes

    def add(
        self, message: Message, queue: MessageQueue | None, wire_bytes: int
    ) -> asyncio.Future[SendResult]:
        """Let a message wait; the future gets its result, or what the batch failed with. `wire_bytes`: what it adds to
        a batch."""
        key = _Key(message.topic, queue, message.wait_store_ok, message.tags)
        waiting = self._waiting.get(key)
        if waiting is not None and waiting.wire_bytes + wire_bytes > self._max_bytes:
            self._leave(key)
            waiting = None
        if waiting is None:
            waiting = self._waiting[key] = _Waiting()
            waiting.timer = self._loop.call_later(self._hold_ms / 1000, self._leave, key)
        result: asyncio.Future[SendResult] = self._loop.create_future()
        waiting.messages.append(message)
        waiting.results.append(result)
        waiting.keys.update(dict.fromkeys(message.keys.split()))
        waiting.body_bytes += len(message.body)
        waiting.wire_bytes += wire_bytes
        self._held_bytes += len(message.body)
        if waiting.body_bytes > self._hold_bytes:
            self._leave(key)
        return result

    async def finish(self) -> None:
        """Send what waits now; return when it and what was under way before has ended."""
        for key in list(self._waiting):
            self._leave(key)
        if self._sending:
            await asyncio.wait(list(self._sending))

    def _leave(self, key: _Key) -> None:
        waiting = self._waiting.pop(key, None)
        if waiting is None:
            return
        if waiting.timer is not None:
            waiting.timer.cancel()
        task = self._loop.create_task(self._send(key, waiting), name=f"batch to {key.topic}")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, key: _Key, waiting: _Waiting) -> None:
        try:
            sent = await self._send_batch(waiting.messages, key.queue, key.tags, " ".join(waiting.keys))
            parts = split_result(sent, len(waiting.messages))
        except Exception as error:
            for result in waiting.results:
                if not result.done():
                    result.set_exception(error)
        else:
            for result, part in zip(waiting.results, parts, strict=True):
                if not result.done():
                    result.set_result(part)
        finally:
            self._held_bytes -= waiting.body_bytes
            for result in waiting.results:
                result.cancel()  # only if the sending was cancelled: otherwise all are done


def split_result(sent: SendResult, count: int) -> list[SendResult]:
    """The result of each message of a batch; one for all if the broker stored the batch as one message."""
    if "," not in sent.message_id:
        return [sent] * count
    ids, offset_ids = sent.message_id.split(","), sent.offset_message_id.split(",")
    if len(ids) != count or len(offset_ids) != count:
        raise ClientError("sendResult is illegal")
    return [
        msgspec.structs.replace(
            sent,
            message_id=ids[index],
            offset_message_id=offset_ids[index],
            queue_offset=sent.queue_offset + index,
        )
        for index in range(count)
    ]
