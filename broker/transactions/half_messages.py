"""Half messages: the broker keeps them in a topic without consumers until their producer ends the transaction.

    send, TRAN_MSG=true    ->  RMQ_SYS_TRANS_HALF_TOPIC queue 0       REAL_TOPIC, REAL_QID: its real topic and queue
    37 commit              ->  real topic and queue, sysFlag commit,  preparedTransactionOffset: the half record
    37 commit or rollback  ->  RMQ_SYS_TRANS_OP_HALF_TOPIC queue 0    tag d, body: queue offsets of ended half messages

The check reads from the op topic which half messages have ended, even after a restart, or if an official broker wrote
it. 4.9 writes one op message for each; 5.x collects offsets ("3,4,7,") until they exceed transactionOpMsgMaxSize or
transactionOpBatchInterval has passed. Our own check knows collected offsets at once, and a stop writes them; after a
kill those messages are checked again.

Mirrors `TransactionalMessageServiceImpl`, `TransactionalMessageBridge`, `EndTransactionProcessor`; owned by the event
loop. In 5.x the ends whose requests arrive together are stored in one append.
"""

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from pocketmq.core.properties import BUCKETS, encode_stored
from pocketmq.core.records import Message
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_NONE, with_transaction_type
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import NewMessage, PutStatus

from ..config.broker_config import BrokerConfig
from ..delayed.delayed import Delayed
from ..delayed.delayed_sends import delay_if_asked, time_if_asked
from ..errors import Refusal
from ..network.dispatch import HELD, Answer, Call, Held
from ..state.broker_state import BrokerState
from ..state.refusals import UNSET_REMARK, refusal_of
from ..storing.messages import copy_of, own_message, real_place, reroute
from ..tables.metric_table import MetricTable
from ..time.timers import Timer

_log = logging.getLogger("pocketmq.transactions")

OP_TAG: Final = "d"
OP_RETRY_SECONDS: Final = 1.0
"""Wait after an op message that the store refused."""
_OP_PROPERTIES: Final = {names.WAIT: "true", names.TAGS: OP_TAG}
_WITHOUT_PLACE: Final = (names.REAL_TOPIC, None, names.REAL_QID, None)
_WITHOUT_MARK: Final = (names.TRAN_MSG, None)


class End(NamedTuple):
    """A transaction that ends: what its half message becomes, or `None` for a rollback."""

    call: Call
    half: Record
    real_topic: str | None
    message: Message | None


def half_message(message: NewMessage, transaction_id: str | None) -> NewMessage:
    """Reroute a message to the half topic; it is changed in place. 5.x also stores the id of the transaction."""
    message.sys_flag = with_transaction_type(message.sys_flag, TRANSACTION_NONE)
    return reroute(message, HALF_TOPIC, 0, (names.TRANSACTION_ID, transaction_id) if transaction_id else ())


class HalfMessages:
    """Ends half messages, and remembers which have ended. `stop` writes the rest."""

    state_fields = ("_unwritten", "_unwritten_bytes")
    """A test companion sets them back."""

    def __init__(self, state: BrokerState, delayed: Delayed, open_count: MetricTable) -> None:
        self._state = state
        self._is_5 = state.config.is_5
        self._delayed = delayed
        self._open_count = open_count
        self._ends: list[End] = []
        """Those of the pass that is handled now."""
        self._unwritten: dict[int, dict[int, str]] = {}
        """Queue id -> offsets of ended half messages that no op message names yet, oldest first, each with its text."""
        self._unwritten_bytes = 0
        self._timer: Timer | None = None
        self._op_text = encode_stored(_OP_PROPERTIES, BUCKETS[False], self._is_5)

    def stop(self) -> None:
        """Write the collected offsets."""
        self._write_ops()
        self.abandon()

    def abandon(self) -> None:
        """Stop, and write nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def committed_message(
        self, half: Record, topic: str | None, queue_text: str | None, *, may_wait: bool
    ) -> NewMessage:
        """The message that a half message becomes, for its consumers. `topic` and `queue_text` are the real ones; if it
        `may_wait`, a delay level or a time is among its properties.

        5.x removes them from the stored text, 4.9 does not. Raises ValueError if the record does not name them,
        `Refusal` if its DELAY is not a number.
        """
        place = real_place(topic, queue_text)
        if place is None:
            raise ValueError(f"topic {topic!r}, queue {None if queue_text is None else queue_text[:40]!r}")
        if self._is_5:
            message = copy_of(half, *place, _WITHOUT_PLACE, _WITHOUT_MARK)
        else:
            message = copy_of(half, *place, (), _WITHOUT_PLACE + _WITHOUT_MARK)
        message.sys_flag = with_transaction_type(half.sys_flag, TRANSACTION_COMMIT)
        message.prepared_transaction_offset = half.position
        if may_wait:
            message = time_if_asked(self._delayed, delay_if_asked(self._delayed, message))
        return message

    def end(self, end: End) -> Held:
        """Carry out an end with the others of its pass, and answer its call. In the 4.9 line each commit is followed by
        its op message, so each is stored for itself."""
        self._ends.append(end)
        if self._is_5:
            end.call.connection.at_pass_end(self._carry_out)
        else:
            self._carry_out()
        return HELD

    def _carry_out(self) -> None:
        ends, self._ends = self._ends, []
        answers: list[Answer] = []
        try:
            while len(answers) < len(ends):
                answers += self._carry_out_some(ends[len(answers) :])
        except Exception as error:  # our mistake must not end the connection; some may be in the log
            _log.exception("%d ends of transactions cannot be carried out", len(ends))
            failure = Answer(code=ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")
            answers += [failure] * (len(ends) - len(answers))
        for end, answer in zip(ends, answers, strict=True):
            end.call.answer(answer)

    def _carry_out_some(self, ends: Sequence[End]) -> list[Answer]:
        """Carry out ends up to the first that the store refuses; the answers to them."""
        messages = [end.message for end in ends if end.message is not None]
        placed = self._state.store.append_all(messages) if messages else None
        sizes = iter(placed.sizes if placed is not None else ())
        answers: list[Answer] = []
        stored: dict[tuple[str, str | None], list[int]] = {}
        for _, half, real_topic, message in ends:
            if message is None:
                self.count_down(real_topic)
            elif (size := next(sizes, None)) is not None:
                stored.setdefault((message[0].topic, real_topic), []).append(size)
            else:
                break
            self._mark_ended(half.queue_id, half.queue_offset)
            answers.append(Answer() if message is not None else Answer(remark=UNSET_REMARK))
        self._count_stored(stored)
        if placed is not None and placed.refusal is not None:
            refusal = refused_commit(self._state.config, placed.refusal)
            answers.append(Answer(code=refusal.code, remark=refusal.remark))
        return answers

    def _count_stored(self, stored: dict[tuple[str, str | None], list[int]]) -> None:
        """Count half messages that were stored as messages: the bytes of each, by topic and real topic."""
        if self._is_5:
            for (topic, real_topic), sizes in stored.items():
                self._state.statistics.message_put(topic, len(sizes), sum(sizes), sends=len(sizes))
                self.count_down(real_topic, len(sizes))

    def count_down(self, real_topic: str | None, count: int = 1) -> None:
        """Count so many open transactions less."""
        if real_topic is not None and self._is_5:
            self._open_count.add(real_topic, -count, changes=count)

    def _mark_ended(self, queue_id: int, offset: int) -> None:
        """The check skips this half message from now on."""
        config = self._state.config
        if not self._is_5 and not self._unwritten:
            if not self._write_op(queue_id, str(offset)):
                self._collect(queue_id, offset, OP_RETRY_SECONDS)
            return
        self._collect(queue_id, offset, config.transaction_op_batch_interval / 1000)
        if self._unwritten_bytes > config.transaction_op_msg_max_size:
            self._write_ops()

    def is_ended(self, queue_id: int, offset: int) -> bool:
        """Whether this half message is among those that no op message names yet."""
        offsets = self._unwritten.get(queue_id)
        return offsets is not None and offset in offsets

    def _collect(self, queue_id: int, offset: int, write_in_seconds: float) -> None:
        offsets = self._unwritten.get(queue_id)
        if offsets is None:
            offsets = self._unwritten[queue_id] = {}
        if offset in offsets:
            return  # a client may end a message twice
        offsets[offset] = text = f"{offset},"
        self._unwritten_bytes += len(text)
        if self._timer is None:
            self._timer = self._state.timers.call_later(write_in_seconds, self._tick, is_event=False)

    def _tick(self) -> None:
        self._timer = None
        self._write_ops()
        if self._unwritten:
            self._timer = self._state.timers.call_later(OP_RETRY_SECONDS, self._tick, is_event=False)

    def _write_ops(self) -> None:
        """Write one op message for each queue, or several if one gets too long; keep what the store refuses."""
        limit = max(self._state.config.transaction_op_msg_max_size, 32)
        for queue_id, offsets in list(self._unwritten.items()):
            while offsets:
                chosen, size = [], 0
                for offset, text in offsets.items():
                    chosen.append(offset)
                    size += len(text)
                    if size >= limit or not self._is_5:
                        break
                text = "".join(map(offsets.__getitem__, chosen))
                if not self._write_op(queue_id, text if self._is_5 else str(chosen[0])):
                    return
                for offset in chosen:
                    del offsets[offset]
                self._unwritten_bytes -= size
            del self._unwritten[queue_id]

    def _write_op(self, queue_id: int, text: str) -> bool:
        state = self._state
        message = own_message(state, OP_HALF_TOPIC, queue_id, text.encode(), ())
        message.properties, message.changes = self._op_text, None
        result = state.store.append(message)
        if result.status is not PutStatus.PUT_OK:
            _log.error("cannot write the op message for ended transactions: %s", result.status.name)
            return False
        if self._is_5:
            state.statistics.message_put(OP_HALF_TOPIC, 1, result.size)
        return True


def refused_commit(config: BrokerConfig, status: PutStatus) -> Refusal:
    """The refusal of a send, with the remarks of this request."""
    refusal = refusal_of(config, status)
    match status:
        case PutStatus.MESSAGE_ILLEGAL | PutStatus.PROPERTIES_SIZE_EXCEEDED:
            refusal.remark = refusal.remark.replace("the message", "The message", 1)
        case PutStatus.SERVICE_NOT_AVAILABLE:
            refusal.remark = "Service not available now."
        case PutStatus.OS_PAGE_CACHE_BUSY:
            refusal.code = ResponseCode.SYSTEM_ERROR
            refusal.remark = "OS page cache busy, please try another machine"
        case PutStatus.CREATE_MAPPED_FILE_FAILED:
            refusal.remark = "Create mapped file failed."
    return refusal
