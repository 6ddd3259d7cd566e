"""What reading returns: the values of `get_message`, `query` and `hotness`.

Names and numbers follow GetMessageStatus, GetMessageResult and QueryMessageResult. Not here: the response code of a
status, which the broker chooses.
"""

from enum import Enum, auto

import msgspec


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
    """Set by the broker, not the store: an administrator reset the group's offset to the next offset."""


class GetResult(msgspec.Struct):
    """Messages of one queue. Joined, `views` are `count` whole records in queue order."""

    status: GetStatus
    views: list[memoryview]
    """Views of the mapped log; records that lie back to back share one view unless a record filter was given. Small
    records that lie apart may be copied, and share a view of the copy."""
    count: int
    next_offset: int
    min_offset: int
    max_offset: int
    size_bytes: int = 0
    suggest_slave: bool = False
    """The log has run ahead of this reader by more than the memory budget (suggestPullingFromSlave)."""
    last_position: int = 0
    """Log position of the last unit read; 0 if none was."""


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
