"""Requests of pop consumption: pop messages, acknowledge them, or have them delivered again later.

Each popped message gets its receipt (POP_CK) from what the reply says about where the messages lie; the texts
themselves are read and written by `pocketmq.protocol.message.pop_receipt`. Acknowledgements do not wait for their
answers: one that is lost brings its message again. Mirrors the pop part of `PullAPIWrapper`,
`MQClientAPIImpl.processPopResponse` and `DefaultMQPushConsumerImpl.ackAsync`, `changePopInvisibleTimeAsync`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from pocketmq.protocol.bodies.client import SubscriptionData
from pocketmq.protocol.bodies.pop import BatchAck, BatchAckMessageRequestBody, bit_set_of
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.pop_receipt import (
    QueuePlace,
    Receipt,
    parse_message_offsets,
    parse_receipt,
    parse_start_offsets,
    retry_flag,
)
from pocketmq.protocol.requests.pop import (
    AckMessage,
    BatchAckMessage,
    ChangeMessageInvisibleTime,
    PopMessage,
    PopMessageReply,
)
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Request

from ..clock import wall_ms
from ..connections.connection import Connection
from ..errors import ClientError, NotReachable, RequestRefused
from ..instance.instance import ClientInstance
from ..values.message import MessageExt, decode_messages


def attach_receipts(
    messages: Sequence[MessageExt], reply: PopMessageReply, *, topic: str, broker_name: str
) -> None:
    """Each message of a pop gets its POP_CK and 1ST_POP_TIME, and the name of the topic that was asked for.

    BodyError if the reply does not say where a message came from.
    """
    starts = parse_start_offsets(reply.start_offset_info) if reply.start_offset_info else None
    offsets = parse_message_offsets(reply.msg_offset_info or "")
    in_order: dict[QueuePlace, list[int]] = {}
    for message in messages:
        in_order.setdefault(_place(message), []).append(message.queue_offset)
    oldest: dict[QueuePlace, int] = {}
    for message in messages:
        properties, place = message.properties, _place(message)
        if names.POP_CK not in properties:
            if starts is None:  # brokers before 5.0: the first message's offset begins the span
                start, offset = oldest.setdefault(place, message.queue_offset), message.queue_offset
            else:
                start, offset = _found(starts, offsets, in_order, message, place)
            receipt = Receipt(
                start,
                reply.pop_time,
                reply.invisible_time,
                reply.revive_qid,
                place[0],
                broker_name,
                message.queue_id,
                offset,
            )
            properties[names.POP_CK] = str(receipt)
        properties.setdefault(names.FIRST_POP_TIME, str(reply.pop_time))
        message.broker_name = broker_name
        message.topic = topic


def receipt_of(message: MessageExt) -> Receipt:
    """Of a popped message. BodyError for any other."""
    return parse_receipt(message.properties.get(names.POP_CK, ""))


def _place(message: MessageExt) -> QueuePlace:
    return retry_flag(message.record.topic), message.queue_id


def _found(
    starts: dict[QueuePlace, int],
    offsets: dict[QueuePlace, list[int]],
    in_order: dict[QueuePlace, list[int]],
    message: MessageExt,
    place: QueuePlace,
) -> tuple[int, int]:
    """Start offset of the span and the message's own, which the reply names in the order of the messages."""
    index = in_order[place].index(message.queue_offset)
    listed = offsets.get(place, [])
    if place not in starts or index >= len(listed):
        raise BodyError(f"the reply to a pop says nothing of {message.record.topic} queue {message.queue_id}")
    return starts[place], listed[index]


_log = logging.getLogger(__name__)

POLL_MS: Final = 15_000
POP_TIMEOUT_SECONDS: Final = 25.0
ACK_TIMEOUT_SECONDS: Final = 3.0
NOTHING: Final = (ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_TIMEOUT)


class PopApi:
    """For one group of one client instance."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._without_batches: set[str] = set()
        """Brokers that accept acknowledgements one by one only: those of 5.0."""

    async def pop(
        self,
        queue: MessageQueue,
        subscription: SubscriptionData,
        *,
        max_count: int,
        invisible_ms: int,
        init_mode: int,
    ) -> list[MessageExt] | None:
        """Pop messages of a queue, or of any queue with id -1; waits up to 15 s for some. None: the broker holds too
        many polls of this kind already.

        `RequestRefused` for a code that is no PopStatus, `NotReachable`, `RouteNotFound`, `BodyError`.
        """
        instance = self._instance
        request = PopMessage(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            max_msg_nums=max_count,
            invisible_time=invisible_ms,
            poll_time=POLL_MS,
            born_time=wall_ms(),
            init_mode=init_mode,
            exp_type=subscription.expression_type,
            exp=subscription.sub_string,
            broker_name=queue.broker_name,
        )
        address = await instance.routes.find_master(queue, main_port=True)
        command = await instance.connections.exchange(address, request, timeout_seconds=POP_TIMEOUT_SECONDS)
        if command.code in NOTHING:
            return []
        if command.code == ResponseCode.POLLING_FULL:
            return None
        if command.code != ResponseCode.SUCCESS:
            raise RequestRefused(command.code, command.remark or "", request.name)
        reply = Connection.read_fields(PopMessageReply, command, request.name)
        messages = decode_messages(
            command.body or b"",
            queue.broker_name,
            reads_body=instance.settings.decode_read_body,
            inflates=instance.settings.decode_decompress_body,
        )
        attach_receipts(messages, reply, topic=queue.topic, broker_name=queue.broker_name)
        return messages

    def ack(self, messages: Sequence[MessageExt], topic: str) -> None:
        """Acknowledge messages of one pop, several in one request. `topic` is the one popped."""
        by_broker: dict[str, list[Receipt]] = {}
        for message in messages:
            receipt = receipt_of(message)
            by_broker.setdefault(receipt.broker_name, []).append(receipt)
        for broker_name, receipts in by_broker.items():
            if len(receipts) == 1 or broker_name in self._without_batches:
                self._ack_singly(receipts, topic)
                continue

            def refused(
                code: int, broker_name: str = broker_name, receipts: list[Receipt] = receipts
            ) -> None:
                if code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    self._without_batches.add(broker_name)
                    self._ack_singly(receipts, topic)

            queue = MessageQueue(topic, broker_name, receipts[0].queue_id)
            body = batch_ack_body(receipts, broker_name, topic, self._group)
            self._post(queue, BatchAckMessage(), body.encode(), refused)

    def _ack_singly(self, receipts: Sequence[Receipt], topic: str) -> None:
        for receipt in receipts:
            queue = MessageQueue(topic, receipt.broker_name, receipt.queue_id)
            request = AckMessage(
                consumer_group=self._group,
                topic=receipt.real_topic(topic, self._group),
                queue_id=receipt.queue_id,
                extra_info=str(receipt),
                offset=receipt.offset,
                broker_name=receipt.broker_name,
            )
            self._post(queue, request)

    def change_invisible_time(self, message: MessageExt, topic: str, invisible_ms: int) -> None:
        """Have a message delivered again after so long."""
        receipt = receipt_of(message)
        request = ChangeMessageInvisibleTime(
            consumer_group=self._group,
            topic=receipt.real_topic(topic, self._group),
            queue_id=receipt.queue_id,
            extra_info=str(receipt),
            offset=receipt.offset,
            invisible_time=invisible_ms,
            broker_name=receipt.broker_name,
        )
        self._post(MessageQueue(topic, receipt.broker_name, receipt.queue_id), request)

    def _post(
        self,
        queue: MessageQueue,
        request: Request[Any],
        body: RawBody | None = None,
        refused: Callable[[int], None] | None = None,
    ) -> None:
        """Write at once if there is a connection; `refused` is called with a code that is not success."""
        address = self._instance.routes.master(queue.broker_name, main_port=True)
        connection = None if address is None else self._instance.connections.live(address)
        if connection is None:
            self._instance.spawn(self._call(queue, request, body, refused), f"{request.name} {queue}")
            return
        try:
            answer = connection.post(request, body, timeout_seconds=ACK_TIMEOUT_SECONDS)
        except NotReachable as error:
            _log.warning("%s of %s: %s", request.name, queue, error)
            return

        def answered(future: asyncio.Future[Command]) -> None:
            error = None if future.cancelled() else future.exception()
            if error is not None:
                _log.warning("%s of %s: %s", request.name, queue, error)
            elif not future.cancelled() and future.result().code != 0:
                command = future.result()
                _log.warning("%s of %s: code %d, %s", request.name, queue, command.code, command.remark)
                if refused is not None:
                    refused(command.code)

        answer.add_done_callback(answered)

    async def _call(
        self,
        queue: MessageQueue,
        request: Request[Any],
        body: RawBody | None,
        refused: Callable[[int], None] | None,
    ) -> None:
        instance = self._instance
        try:
            address = await instance.routes.find_master(queue, main_port=True)
            await instance.connections.call(address, request, body, timeout_seconds=ACK_TIMEOUT_SECONDS)
        except RequestRefused as refusal:
            _log.warning("%s of %s: %s", request.name, queue, refusal)
            if refused is not None:
                refused(refusal.code)
        except ClientError as error:
            _log.warning("%s of %s: %s", request.name, queue, error)


def batch_ack_body(
    receipts: Sequence[Receipt], broker_name: str, topic: str, group: str
) -> BatchAckMessageRequestBody:
    """Acks of messages of one broker: one entry for each span they were popped in."""
    spans: dict[tuple[str, int, int, int], list[Receipt]] = {}
    for receipt in receipts:
        span = receipt.retry_flag, receipt.queue_id, receipt.start_offset, receipt.pop_time_ms
        spans.setdefault(span, []).append(receipt)
    return BatchAckMessageRequestBody(
        broker_name=broker_name,
        acks=[
            BatchAck(
                consumer_group=group,
                topic=topic,
                retry=retry,
                start_offset=start_offset,
                queue_id=queue_id,
                revive_queue_id=together[0].revive_queue_id,
                pop_time=pop_time,
                invisible_time=together[0].invisible_time_ms,
                bit_set=bit_set_of(receipt.offset - start_offset for receipt in together),
            )
            for (retry, queue_id, start_offset, pop_time), together in spans.items()
        ],
    )
