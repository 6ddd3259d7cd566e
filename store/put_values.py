"""A message to append, and what an append returns.

Names and numbers follow PutMessageStatus and MessageExtBrokerInner. Not here: the response code of a status, which the
broker chooses.
"""

from enum import Enum, auto

import msgspec
from pocketmq.core.properties import Changes
from pocketmq.core.records import Added, Run

from .errors import StoreError

_NO_HOST = bytes(8)


class PutStatus(Enum):
    """How an append ended; the first four count as stored."""

    PUT_OK = auto()
    FLUSH_DISK_TIMEOUT = auto()
    FLUSH_SLAVE_TIMEOUT = auto()
    SLAVE_NOT_AVAILABLE = auto()
    SERVICE_NOT_AVAILABLE = auto()
    CREATE_MAPPED_FILE_FAILED = auto()
    MESSAGE_ILLEGAL = auto()
    PROPERTIES_SIZE_EXCEEDED = auto()
    OS_PAGE_CACHE_BUSY = auto()
    UNKNOWN_ERROR = auto()
    IN_SYNC_REPLICAS_NOT_ENOUGH = auto()
    PUT_TO_REMOTE_BROKER_FAIL = auto()
    LMQ_CONSUME_QUEUE_NUM_EXCEEDED = auto()
    WHEEL_TIMER_FLOW_CONTROL = auto()
    WHEEL_TIMER_MSG_ILLEGAL = auto()
    WHEEL_TIMER_NOT_ENABLE = auto()


class NewMessage(msgspec.Struct, gc=False):
    """One message on its way into the log (MessageExtBrokerInner).

    Hosts are packed: IP (4 or 16 bytes), then port (int32).
    """

    topic: str
    queue_id: int
    body: bytes | memoryview
    properties: bytes | memoryview
    """A property text; stored as it is, if there are no changes."""
    changes: Changes | None = None
    """What the stored text has beside it (`core.properties.stored_text`)."""
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: bytes = _NO_HOST
    store_host: bytes = _NO_HOST
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    further_changes: Changes = ()
    """Made only if the message is stored in another topic first (`broker/storing/messages.py`)."""


class AppendResult(msgspec.Struct, gc=False):
    """Where a message was stored: `position` and `size` in bytes of the log, time in ms. Offsets are -1 if refused."""

    status: PutStatus
    position: int = -1
    size: int = 0
    queue_offset: int = -1
    store_timestamp: int = 0


class Placed(msgspec.Struct, gc=False):
    """What an append stored, and what dispatch needs of it. Positions and sizes are bytes of the log, times ms."""

    runs: list[Run]
    """One for each message or batch that was stored, in their order."""
    positions: list[int]
    """Of each record."""
    sizes: list[int]
    end: int
    """Position behind the last record."""
    store_timestamp: int
    entries: bytes
    """The queue entry of each record (`core/records.py`)."""
    keys: bytes
    """Their index keys."""
    texts: list[bytes | None]
    """The property text of each message; None if only the log has it, as for a batch."""
    added: list[Added]
    """What is added to each queue."""
    refusal: PutStatus | None = None
    """Why the message behind the last that was stored is refused; None if all were stored."""


class RefusedError(StoreError):
    """The store refuses this message; `status` is the official reason."""

    def __init__(self, status: PutStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
