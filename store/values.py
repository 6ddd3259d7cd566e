"""What goes into the store and what comes back: the values of `MessageStore`'s methods.

Names and numbers follow PutMessageStatus, GetMessageStatus, MessageExtBrokerInner, GetMessageResult and
QueryMessageResult. Not here: which response code a status becomes, that is the broker's.
"""

from enum import Enum, auto

import msgspec

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


class GetStatus(Enum):
    """How a read ended."""

    FOUND = auto()
    NO_MATCHED_MESSAGE = auto()
    MESSAGE_WAS_REMOVING = auto()
    OFFSET_FOUND_NULL = auto()
    OFFSET_OVERFLOW_BADLY = auto()
    OFFSET_OVERFLOW_ONE = auto()
    OFFSET_TOO_SMALL = auto()
    NO_MATCHED_LOGIC_QUEUE = auto()
    NO_MESSAGE_IN_QUEUE = auto()
    OFFSET_RESET = auto()
    """Given by the broker, not the store: an administrator moved the group, the next offset says where to."""


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
    """Where a message was stored; offsets are -1 when it was not."""

    status: PutStatus
    position: int = -1
    size: int = 0
    queue_offset: int = -1
    store_timestamp: int = 0


class GetResult(msgspec.Struct):
    """Messages of one queue. Joined, `views` are `count` whole records in queue order."""

    status: GetStatus
    views: list[memoryview]
    """Views of the mapped log; records that lie back to back share one view unless a record filter was given."""
    count: int
    next_offset: int
    min_offset: int
    max_offset: int
    size_bytes: int = 0
    suggest_slave: bool = False
    """The log has run ahead of this reader by more than the memory budget (suggestPullingFromSlave)."""
    last_position: int = 0
    """Log position of the last unit looked at; 0 when none was."""


class QueryResult(msgspec.Struct):
    """Records found by key, in log order, one view for each."""

    views: list[memoryview]
    index_last_update_timestamp: int = 0
    index_last_update_position: int = 0

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.views))


class Hotness(msgspec.Struct, frozen=True):
    """The numbers behind a hot/cold answer, for explanations."""

    policy: str
    log_end_offset: int
    position: int
    distance_bytes: int
    memory_budget_bytes: int
    hot: bool
