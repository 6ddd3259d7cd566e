"""Stores and reads the records of pops: checkpoints (messages in flight) and acks, as timed messages.

    checkpoint   due a second before its messages are delivered again
    ack          due when its checkpoint's time is over

The timer delivers both to the revive topic; their queue is the revive queue of the receipt. So a checkpoint is in its
revive queue before its acks, and `revive.py` finds both in time. Mirrors `PopMessageProcessor.buildCkMsg` and the
storing half of `AckMessageProcessor`. The official buffer that merges acks in memory (`enablePopBufferMerge`, off by
default) has no counterpart here. Acks of one checkpoint that arrive together become one record, as a batch ack does.
"""

import logging
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from pocketmq.core.properties import read_properties
from pocketmq.protocol.bodies.revive import ACK_TAG, BATCH_ACK_TAG, CHECKPOINT_TAG, Ack, CheckPoint
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import revive_topic
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import NewMessage

from ..cluster.durable_log import DurableLog
from ..delayed.delayed import Delayed
from ..delayed.delayed_sends import delay_until
from ..errors import Refusal
from ..network.dispatch import HELD, Answer, Call, Held
from ..state.broker_state import BrokerState
from ..storing.messages import own_message
from ..storing.numbers import number_property

_log = logging.getLogger("pocketmq.pop")

CHECKPOINT_LEAD_MS: Final = 1000
"""How long before its own time a checkpoint is due in the revive topic."""
MAX_BODY_BYTES: Final = 65_536
"""Of a record; no broker writes longer ones."""
_KINDS: Final[dict[str, type[CheckPoint | Ack]]] = {
    CHECKPOINT_TAG: CheckPoint,
    ACK_TAG: Ack,
    BATCH_ACK_TAG: Ack,
}


class ReviveRecord(NamedTuple):
    """A checkpoint or an ack, ready to be stored. `key` is its unique key."""

    tag: str
    body: bytes
    key: str
    queue_id: int
    """Of the revive queue."""
    due_ms: int


class AckedPop(NamedTuple):
    """What the acks of one checkpoint have in common: the checkpoint, and when they are due in which revive queue."""

    topic: str
    group: str
    broker_name: str | None
    queue_id: int
    start_offset: int
    pop_time_ms: int
    revive_queue_id: int
    due_ms: int


AckedMessage = tuple[AckedPop, int]
"""A message by its checkpoint and its offset."""


def ack_record(pop: AckedPop, offset: int) -> ReviveRecord:
    """The ack of one message."""
    topic, group, broker_name, queue_id, start_offset, pop_time_ms, revive_queue_id, due_ms = pop
    body, key = _ack_texts(topic, group, broker_name)
    body %= offset, pop_time_ms, queue_id, start_offset
    return ReviveRecord(ACK_TAG, body, key % (queue_id, offset, pop_time_ms), revive_queue_id, due_ms)


def batch_ack_record(pop: AckedPop, offsets: Sequence[int]) -> ReviveRecord:
    """The ack of several messages."""
    topic, group, broker_name, queue_id, start_offset, pop_time_ms, revive_queue_id, due_ms = pop
    ack = Ack(
        ack_offset=-1,
        start_offset=start_offset,
        group=group,
        topic=topic,
        queue_id=queue_id,
        pop_time=pop_time_ms,
        broker_name=broker_name,
        ack_offsets=list(offsets),
    )
    key = _ack_texts(topic, group, broker_name)[1] % (queue_id, -1, pop_time_ms)
    return ReviveRecord(BATCH_ACK_TAG, ack.encode(), key, revive_queue_id, due_ms)


@lru_cache(maxsize=1024)
def _ack_texts(topic: str, group: str, broker_name: str | None) -> tuple[bytes, str]:
    """Body and unique key of an ack, with `%d` for its numbers.

    Of the body: offset, pop time, queue and start offset; of the key: queue, offset and pop time.
    """
    ack = Ack(group=group, topic=topic, broker_name=broker_name)
    body = _with_places(ack.encode(), "ao", "pt", "q", "so")
    return body, _key_with_places(topic, group, broker_name, ACK_TAG)


def checkpoint_record(point: CheckPoint, revive_queue_id: int) -> ReviveRecord:
    """A checkpoint, due a second before its messages are delivered again."""
    body, key = _checkpoint_texts(point.topic, point.group, point.broker_name)
    diffs = point.diffs
    if (
        diffs is None
        or point.suspend
        or point.bit_map
        or point.revive_offset
        or point.re_put_times is not None
    ):
        body = point.encode()
    else:
        body %= (
            str(diffs)[1:-1].replace(" ", "").encode(),
            point.invisible_time,
            point.num,
            point.pop_time,
            point.queue_id,
            point.revive_time,
            point.start_offset,
        )
    key %= point.queue_id, point.start_offset, point.pop_time
    return ReviveRecord(CHECKPOINT_TAG, body, key, revive_queue_id, point.due_ms - CHECKPOINT_LEAD_MS)


@lru_cache(maxsize=1024)
def _checkpoint_texts(topic: str | None, group: str | None, broker_name: str | None) -> tuple[bytes, str]:
    """Like `_ack_texts`. Of the body: the offsets less the first one, invisible time, number of messages, pop time,
    queue, time of the revival and first offset."""
    point = CheckPoint(group=group, topic=topic, broker_name=broker_name, diffs=[])
    body = _with_places(point.encode(), "it", "n", "pt", "q", "reviveTime", "so")
    return body.replace(b'"d":[]', b'"d":[%b]'), _key_with_places(topic, group, broker_name, CHECKPOINT_TAG)


def _with_places(body: bytes, *names_of_numbers: str) -> bytes:
    """A JSON text with `%d` in place of the zeros of these members."""
    body = body.replace(b"%", b"%%")
    for name in names_of_numbers:
        before, _, behind = body.rpartition(b'"%s":0' % name.encode())
        body = b'%s"%s":%%d%s' % (before, name.encode(), behind)
    return body


def _key_with_places(topic: str | None, group: str | None, broker_name: str | None, tag: str) -> str:
    """A unique key with `%d` for its numbers: queue, offset and pop time."""
    topic, group, broker_name = (str(name).replace("%", "%%") for name in (topic, group, broker_name))
    return f"{topic}@%d@%d@{group}@%d@{broker_name}@{tag}"


def read_revive_record(record: Record) -> tuple[CheckPoint | Ack | None, int | None]:
    """A checkpoint or an ack, and when it is due; `None` for what is neither, or has no time. Raises BodyError."""
    properties = read_properties(record.properties)
    if len(record.body) > MAX_BODY_BYTES:
        raise BodyError(f"a record of {len(record.body)} bytes")
    kind = _KINDS.get(properties.get(names.TAGS, ""))
    found = None if kind is None else kind.decode(bytes(record.body))
    return found, number_property(properties, names.TIMER_DELIVER_MS, 0)


class ReviveLog:
    """Writes checkpoints and acks."""

    def __init__(self, state: BrokerState, delayed: Delayed, durable_log: DurableLog) -> None:
        self._state = state
        self._delayed = delayed
        self._durable_log = durable_log
        self._topic = revive_topic(state.config.broker_cluster_name)
        self._gathered: list[tuple[Sequence[ReviveRecord], Call, Answer]] = []

    def put_checkpoint(self, point: CheckPoint, revive_queue_id: int) -> None:
        """Store a checkpoint. Raises `Refusal` if the store or the timer refuses it."""
        (refusal,) = self.put_records((checkpoint_record(point, revive_queue_id),))
        if refusal is not None:
            raise refusal

    def put_acks(self, acks: Sequence[AckedMessage]) -> list[Refusal | None]:
        """Store acks, those of one checkpoint as one record; of each, why it was refused."""
        offsets: dict[AckedPop, list[int]] = {}
        for pop, offset in acks:
            offsets.setdefault(pop, []).append(offset)
        records = [
            ack_record(pop, of_pop[0]) if len(of_pop) == 1 else batch_ack_record(pop, of_pop)
            for pop, of_pop in offsets.items()
        ]
        refusals = self.put_records(records)
        if not any(refusals):
            return [None] * len(acks)
        of_pops = dict(zip(offsets, refusals, strict=True))
        return [of_pops[pop] for pop, _ in acks]

    def put_with_pass(self, records: Sequence[ReviveRecord], call: Call, answer: Answer) -> Held:
        """Store records together with those of the other requests of this pass, then answer the call once they are
        durable: with `answer`, or why the first refused record was."""
        self._gathered.append((records, call, answer))
        call.connection.at_pass_end(self._put_gathered)
        return HELD

    def _put_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        refusals = iter(self.put_records([record for records, _, _ in gathered for record in records]))
        answers: list[tuple[Call, Answer]] = []
        for records, call, answer in gathered:
            refused = [refusal for refusal in islice(refusals, len(records)) if refusal is not None]
            answers.append(
                (call, Answer(code=refused[0].code, remark=refused[0].remark) if refused else answer)
            )

        def answer_all() -> None:
            for call, answer in answers:
                call.answer(answer)

        self._durable_log.run_when_durable(answer_all, len(answers))

    def put_records(self, records: Sequence[ReviveRecord]) -> list[Refusal | None]:
        """Store records in their order, in one append; of each, why it was refused."""
        refusals: list[Refusal | None] = []
        store, messages = self._state.store, []
        for record in records:
            try:
                messages.append(store.pack_message(self._message(record)))
            except Refusal as refusal:
                refusals.append(refusal)
            else:
                refusals.append(None)
        wanted = [number for number, refusal in enumerate(refusals) if refusal is None]
        while messages:
            try:
                placed = store.append_all(messages)
            except Exception as error:  # our mistake: the calls are answered all the same
                _log.exception("%d records of pops cannot be stored", len(messages))
                failure = Refusal(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
                return [failure if number in wanted else refusal for number, refusal in enumerate(refusals)]
            done = len(placed.runs)
            if placed.refusal is not None:
                refusals[wanted[done]] = Refusal(ResponseCode.SYSTEM_ERROR, placed.refusal.name)
            messages, wanted = messages[done + 1 :], wanted[done + 1 :]
        return refusals

    def _message(self, record: ReviveRecord) -> NewMessage:
        """Raises `Refusal`."""
        tag, body, key, queue_id, due_ms = record
        changes = (names.TIMER_DELIVER_MS, str(due_ms), names.UNIQ_KEY, key, names.TAGS, tag)
        message = own_message(self._state, self._topic, queue_id, body, changes)
        return delay_until(self._delayed, message, due_ms)
