"""What consumers ask about messages: receive, acknowledge, change the invisible time, give up."""

from collections.abc import Sequence
from typing import Annotated

from ..wire import declare
from ..wire.declare import Int32, OneOf
from .codes import Status
from .message import Message
from .resources import FilterExpression, MessageQueue, Resource
from .times import Duration, Timestamp


class ReceiveMessageRequest(declare.Message, frozen=True, kw_only=True):
    group: Annotated[Resource, 1] = Resource()
    message_queue: Annotated[MessageQueue, 2] = MessageQueue()
    filter_expression: Annotated[FilterExpression, 3] = FilterExpression()
    batch_size: Annotated[Int32, 4] = 0
    invisible_duration: Annotated[Duration | None, 5] = None
    auto_renew: Annotated[bool, 6] = False
    long_polling_timeout: Annotated[Duration | None, 7] = None
    attempt_id: Annotated[str | None, 8] = None


class ReceiveMessageResponse(declare.Message, frozen=True, kw_only=True):
    """One message of the stream: a status, a message, or the time of the delivery."""

    status: Annotated[Status | None, 1, OneOf("content")] = None
    message: Annotated[Message | None, 2, OneOf("content")] = None
    delivery_timestamp: Annotated[Timestamp | None, 3, OneOf("content")] = None


class AckMessageEntry(declare.Message, frozen=True, kw_only=True):
    message_id: Annotated[str, 1] = ""
    receipt_handle: Annotated[str, 2] = ""
    lite_topic: Annotated[str | None, 3] = None


class AckMessageRequest(declare.Message, frozen=True, kw_only=True):
    group: Annotated[Resource, 1] = Resource()
    topic: Annotated[Resource, 2] = Resource()
    entries: Annotated[Sequence[AckMessageEntry], 3] = ()


class AckMessageResultEntry(declare.Message, frozen=True, kw_only=True):
    message_id: Annotated[str, 1] = ""
    receipt_handle: Annotated[str, 2] = ""
    status: Annotated[Status, 3] = Status()


class AckMessageResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
    entries: Annotated[Sequence[AckMessageResultEntry], 2] = ()


class ChangeInvisibleDurationRequest(declare.Message, frozen=True, kw_only=True):
    group: Annotated[Resource, 1] = Resource()
    topic: Annotated[Resource, 2] = Resource()
    receipt_handle: Annotated[str, 3] = ""
    invisible_duration: Annotated[Duration, 4] = Duration()
    message_id: Annotated[str, 5] = ""
    lite_topic: Annotated[str | None, 6] = None
    suspend: Annotated[bool | None, 7] = None


class ChangeInvisibleDurationResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
    receipt_handle: Annotated[str, 2] = ""


class ForwardMessageToDeadLetterQueueRequest(declare.Message, frozen=True, kw_only=True):
    group: Annotated[Resource, 1] = Resource()
    topic: Annotated[Resource, 2] = Resource()
    receipt_handle: Annotated[str, 3] = ""
    message_id: Annotated[str, 4] = ""
    delivery_attempt: Annotated[Int32, 5] = 0
    max_delivery_attempts: Annotated[Int32, 6] = 0
    lite_topic: Annotated[str | None, 7] = None


class ForwardMessageToDeadLetterQueueResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
