"""What a send and a pull return: `SendResult` and `PullResult`, each with its status.

A status is made from the code of the broker's reply; every other code is a refusal. Official classes: SendResult,
SendStatus, PullResult, PullStatus.
"""

from enum import Enum
from typing import Final

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.response_codes import ResponseCode

from .message import MessageExt

DEFAULT_REGION: Final = "DefaultRegion"


class SendStatus(Enum):
    """What the broker did with a message it accepted (official SendStatus).

    Every status means that the message is stored. Only SEND_OK means that it is flushed and replicated as the broker's
    settings promise.
    """

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class SendResult(msgspec.Struct, frozen=True, gc=False):
    """Where a message was stored (official SendResult).

    `message_id` was made by the client, `offset_message_id` by the broker; for a batch both are lists with commas.
    `recall_handle` of a timed message cancels its delivery (5.x).
    """

    message_id: str
    offset_message_id: str
    queue: MessageQueue
    queue_offset: int
    status: SendStatus = SendStatus.SEND_OK
    transaction_id: str | None = None
    region_id: str = DEFAULT_REGION
    trace_on: bool = True
    recall_handle: str | None = None


class PullStatus(Enum):
    """What a pull found (official PullStatus)."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


class PullResult(msgspec.Struct, frozen=True):
    """What one pull returned (official PullResult). The next pull begins at `next_offset`."""

    status: PullStatus
    messages: list[MessageExt]
    next_offset: int
    min_offset: int
    max_offset: int


SEND_STATUS: Final = {
    int(ResponseCode.SUCCESS): SendStatus.SEND_OK,
    int(ResponseCode.FLUSH_DISK_TIMEOUT): SendStatus.FLUSH_DISK_TIMEOUT,
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): SendStatus.FLUSH_SLAVE_TIMEOUT,
    int(ResponseCode.SLAVE_NOT_AVAILABLE): SendStatus.SLAVE_NOT_AVAILABLE,
}
PULL_STATUS: Final = {
    int(ResponseCode.SUCCESS): PullStatus.FOUND,
    int(ResponseCode.PULL_NOT_FOUND): PullStatus.NO_NEW_MSG,
    int(ResponseCode.PULL_RETRY_IMMEDIATELY): PullStatus.NO_MATCHED_MSG,
    int(ResponseCode.PULL_OFFSET_MOVED): PullStatus.OFFSET_ILLEGAL,
}
"""The status of a send, or of a pull, for the code of its reply; any other code is a refusal."""
