"""What the revive topic stores: the messages that a group has not acknowledged (checkpoint), and their acks.

    tag ck     {"bm":0,"bn":"broker-a","c":"group","d":[0,1],"it":60000,"n":2,"pt":...,"q":0,"reviveTime":...,"ro":0,
                "so":100,"sp":false,"t":"topic"}
    tag ack    {"ao":101,"bn":"broker-a","c":"group","pt":...,"q":0,"so":100,"t":"topic"}
    tag bAck   the same with "aol":[100,101] and "ao":-1

`d` are the offsets of the messages minus `so`. Without `d` they are the `n` offsets from `so` on. A checkpoint and its
acks share group, topic, queue, `so`, `pt` and `bn`. Mirrors `PopCheckPoint`, `AckMsg` and `BatchAckMsg`.
"""

from typing import Annotated, Final

from msgspec import Meta, field

from .body import Body

CHECKPOINT_TAG: Final = "ck"
ACK_TAG: Final = "ack"
BATCH_ACK_TAG: Final = "bAck"
REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
"""The group whose offsets say how far the revive queues are processed: the last processed one, not the next."""

MAX_MESSAGES: Final = 127
"""Of one checkpoint: their number is a byte in the official class."""

MergeKey = tuple[str, str, int, int, int, str]
_Offset = Annotated[int, Meta(ge=0, le=(1 << 62))]
_Time = Annotated[int, Meta(ge=-(1 << 62), le=(1 << 62))]
_Count = Annotated[int, Meta(ge=-128, le=MAX_MESSAGES)]
_Diffs = Annotated[list[_Offset], Meta(max_length=MAX_MESSAGES)]


class CheckPoint(Body, frozen=True):
    """Messages of one queue that one pop delivered. Times in ms. `decode` refuses what no broker has written."""

    start_offset: _Offset = field(name="so", default=0)
    pop_time: _Time = field(name="pt", default=0)
    invisible_time: _Time = field(name="it", default=0)
    bit_map: int = field(name="bm", default=0)
    num: _Count = field(name="n", default=0)
    queue_id: int = field(name="q", default=0)
    topic: str | None = field(name="t", default=None)
    group: str | None = field(name="c", default=None)
    revive_offset: int = field(name="ro", default=0)
    diffs: _Diffs | None = field(name="d", default=None)
    broker_name: str | None = field(name="bn", default=None)
    re_put_times: str | None = field(name="rp", default=None)
    suspend: bool = field(name="sp", default=False)

    revive_time: int = 0
    """When unacknowledged messages are delivered again. Written, never read: `due_ms` is the same."""

    @property
    def due_ms(self) -> int:
        return self.pop_time + self.invisible_time

    def offsets(self) -> list[int]:
        """Of the messages that the checkpoint itself does not name as acknowledged (`bm`, official buffer only)."""
        diffs, bits = self.diffs or range(self.num), self.bit_map
        return [self.start_offset + diff for bit, diff in enumerate(diffs) if not bits >> bit & 1]

    def merge_key(self) -> MergeKey:
        return (
            self.topic or "",
            self.group or "",
            self.queue_id,
            self.start_offset,
            self.pop_time,
            self.broker_name or "",
        )


class Ack(Body, frozen=True):
    """One message is consumed, or with `ack_offsets` several."""

    ack_offset: int = field(name="ao", default=0)
    start_offset: int = field(name="so", default=0)
    group: str | None = field(name="c", default=None)
    topic: str | None = field(name="t", default=None)
    queue_id: int = field(name="q", default=0)
    pop_time: int = field(name="pt", default=0)
    broker_name: str | None = field(name="bn", default=None)
    ack_offsets: list[int] | None = field(name="aol", default=None)

    def offsets(self) -> list[int]:
        return [self.ack_offset] if self.ack_offsets is None else self.ack_offsets

    def merge_key(self, own_broker_name: str) -> MergeKey:
        return (
            self.topic or "",
            self.group or "",
            self.queue_id,
            self.start_offset,
            self.pop_time,
            self.broker_name or own_broker_name,
        )
