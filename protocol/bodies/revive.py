"""What the revive topic stores: the messages that a group has not acknowledged (checkpoint), and their acks.

    tag ck     {"bm":0,"bn":"broker-a","c":"group","d":[0,1],"it":60000,"n":2,"pt":...,"q":0,"reviveTime":...,"ro":0,
                "so":100,"sp":false,"t":"topic"}
    tag ack    {"ao":101,"bn":"broker-a","c":"group","pt":...,"q":0,"so":100,"t":"topic"}
    tag bAck   the same with "aol":[100,101] and "ao":-1

`d` are the offsets of the messages minus `so`. Without `d` they are the `n` offsets from `so` on. A checkpoint and its
acks share group, topic, queue, `so`, `pt` and `bn`. Mirrors `PopCheckPoint`, `AckMsg` and `BatchAckMsg`.
"""

from typing import Final

from msgspec import field

from .body import Body

CHECKPOINT_TAG: Final = "ck"
ACK_TAG: Final = "ack"
BATCH_ACK_TAG: Final = "bAck"
REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
"""The group whose offsets say how far the revive queues are processed: the last processed one, not the next."""

MergeKey = tuple[str, str, int, int, int, str]


class CheckPoint(Body, frozen=True):
    """Messages of one queue that one pop delivered. Times in ms."""

    start_offset: int = field(name="so", default=0)
    pop_time: int = field(name="pt", default=0)
    invisible_time: int = field(name="it", default=0)
    bit_map: int = field(name="bm", default=0)
    num: int = field(name="n", default=0)
    queue_id: int = field(name="q", default=0)
    topic: str | None = field(name="t", default=None)
    group: str | None = field(name="c", default=None)
    revive_offset: int = field(name="ro", default=0)
    diffs: list[int] | None = field(name="d", default=None)
    broker_name: str | None = field(name="bn", default=None)
    re_put_times: str | None = field(name="rp", default=None)
    suspend: bool = field(name="sp", default=False)

    revive_time: int = 0
    """When unacknowledged messages are delivered again. Written, never read: `due_ms` is the same."""

    @property
    def due_ms(self) -> int:
        return self.pop_time + self.invisible_time

    def offsets(self) -> list[int]:
        if self.diffs:
            return [self.start_offset + diff for diff in self.diffs]
        return list(range(self.start_offset, self.start_offset + max(self.num, 0)))

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
