"""Reading by offset: pull, and the offsets of queues and groups. The official proxy serves them in CLUSTER mode."""

from collections.abc import Sequence
from typing import Annotated

from ..wire import declare
from ..wire.declare import Int32, Int64, OneOf
from .codes import Status
from .enumerations import LiteSubscriptionAction, OffsetPolicy, QueryOffsetPolicy
from .message import Message
from .resources import FilterExpression, MessageQueue, Resource
from .times import Duration, Timestamp


class PullMessageRequest(declare.Message, frozen=True, kw_only=True):
    group: Annotated[Resource, 1] = Resource()
    message_queue: Annotated[MessageQueue, 2] = MessageQueue()
    offset: Annotated[Int64, 3] = 0
    batch_size: Annotated[Int32, 4] = 0
    filter_expression: Annotated[FilterExpression, 5] = FilterExpression()
    long_polling_timeout: Annotated[Duration, 6] = Duration()


class PullMessageResponse(declare.Message, frozen=True, kw_only=True):
    """One message of the stream: a status, a message, or the offset to go on from."""

    status: Annotated[Status | None, 1, OneOf("content")] = None
    message: Annotated[Message | None, 2, OneOf("content")] = None
    next_offset: Annotated[Int64 | None, 3, OneOf("content")] = None


class UpdateOffsetRequest(declare.Message, frozen=True, kw_only=True):
    group: Annotated[Resource, 1] = Resource()
    message_queue: Annotated[MessageQueue, 2] = MessageQueue()
    offset: Annotated[Int64, 3] = 0


class UpdateOffsetResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()


class GetOffsetRequest(declare.Message, frozen=True, kw_only=True):
    group: Annotated[Resource, 1] = Resource()
    message_queue: Annotated[MessageQueue, 2] = MessageQueue()


class GetOffsetResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
    offset: Annotated[Int64, 2] = 0


class QueryOffsetRequest(declare.Message, frozen=True, kw_only=True):
    message_queue: Annotated[MessageQueue, 1] = MessageQueue()
    query_offset_policy: Annotated[QueryOffsetPolicy, 2] = QueryOffsetPolicy.BEGINNING
    timestamp: Annotated[Timestamp | None, 3] = None


class QueryOffsetResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
    offset: Annotated[Int64, 2] = 0


class OffsetOption(declare.Message, frozen=True, kw_only=True):
    policy: Annotated[OffsetPolicy | None, 1, OneOf("offset_type")] = None
    offset: Annotated[Int64 | None, 2, OneOf("offset_type")] = None
    tail_n: Annotated[Int64 | None, 3, OneOf("offset_type")] = None
    timestamp: Annotated[Int64 | None, 4, OneOf("offset_type")] = None


class SyncLiteSubscriptionRequest(declare.Message, frozen=True, kw_only=True):
    action: Annotated[LiteSubscriptionAction, 1] = LiteSubscriptionAction.PARTIAL_ADD
    topic: Annotated[Resource, 2] = Resource()
    group: Annotated[Resource, 3] = Resource()
    lite_topic_set: Annotated[Sequence[str], 4] = ()
    version: Annotated[Int64 | None, 5] = None
    offset_option: Annotated[OffsetOption | None, 6] = None


class SyncLiteSubscriptionResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
