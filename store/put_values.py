"""A message to append, and what an append returns.

Names and numbers follow PutMessageStatus and MessageExtBrokerInner. Not here: the response code of a status, which the
broker chooses.
"""

from collections.abc import Sequence
from enum import Enum, auto

import msgspec

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

    `properties` are the final bytes as stored and `property_map` the same, parsed: the store reads TAGS, KEYS,
    UNIQ_KEY and DELAY from the map and writes the bytes. Hosts are packed: IP (4 or 16 bytes), then port (int32).
    """

    topic: str
    queue_id: int
    body: bytes | memoryview
    properties: bytes
    property_map: dict[str, str]
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: bytes = _NO_HOST
    store_host: bytes = _NO_HOST
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


class AppendResult(msgspec.Struct, gc=False):
    """Where a message was stored: `position` and `size` in bytes of the log, time in ms. Offsets are -1 if refused."""

    status: PutStatus
    position: int = -1
    size: int = 0
    queue_offset: int = -1
    store_timestamp: int = 0


AlikeMessage = tuple[int, bytes, bytes, int, int]
"""What a message has of its own beside a template: (queue id, body, unique id: ASCII characters, as many as the
template's example has, or nothing if it has no UNIQ_KEY, born timestamp ms, preparedTransactionOffset); a plain tuple,
because every message makes one. If the messages of the template share no text: `whole_text` instead of the unique
id."""


class AlikeBatch(msgspec.Struct, gc=False):
    """Messages of one template for one queue, stored all or none; ids as in `AlikeMessage`."""

    queue_id: int
    born_timestamp: int
    bodies: Sequence[bytes]
    unique_ids: Sequence[bytes]


class ElementBatch(msgspec.Struct, gc=False):
    """Messages for one queue as they lie in the body of a batch request (`protocol/message/batch.py`), stored all or
    none; other fields as in `NewMessage`."""

    topic: str
    queue_id: int
    elements: bytes | memoryview
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_host: bytes
    reconsume_times: int


class Stored(msgspec.Struct, gc=False):
    """Where messages of one template were stored, in their order: positions and sizes in bytes of the log, time in
    ms. The log's end was `end` then."""

    positions: Sequence[int]
    sizes: Sequence[int]
    queue_offsets: Sequence[int]
    end: int
    store_timestamp: int


class RefusedError(StoreError):
    """The store refuses this message; `status` is the official reason."""

    def __init__(self, status: PutStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
