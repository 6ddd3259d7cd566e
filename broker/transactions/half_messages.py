"""Half messages: the broker keeps them in a topic without consumers until their producer ends the transaction.

    send, TRAN_MSG=true    ->  RMQ_SYS_TRANS_HALF_TOPIC queue 0       REAL_TOPIC, REAL_QID: its real topic and queue
    37 commit              ->  real topic and queue, sysFlag commit,  preparedTransactionOffset: the half record
    37 commit or rollback  ->  RMQ_SYS_TRANS_OP_HALF_TOPIC queue 0    tag d, body: queue offsets of ended half messages

The check reads from the op topic which half messages have ended, even after a restart, or if an official broker wrote
it. 4.9 writes one op message for each; 5.x collects offsets ("3,4,7,") until they exceed transactionOpMsgMaxSize or
transactionOpBatchInterval has passed. Our own check knows collected offsets at once, and a stop writes them; after a
kill those messages are checked again.

Mirrors `TransactionalMessageServiceImpl`, `TransactionalMessageBridge`; owned by the event loop. How a half message is
ended: `ends.py`.
"""

import logging
from collections.abc import Sequence
from typing import Final

from pocketmq.core.properties import BUCKETS, encode_stored
from pocketmq.core.records import Message
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_NONE, with_transaction_type
from pocketmq.protocol.message.topics import HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.store import NewMessage, PutStatus

from ..state.broker_state import BrokerState
from ..storing.messages import own_message, reroute
from ..tables.metric_table import MetricTable
from ..time.timers import Timer

_log = logging.getLogger("pocketmq.transactions")

OP_TAG: Final = "d"
OP_RETRY_SECONDS: Final = 1.0
"""Wait after an op message that the store refused."""
_OP_PROPERTIES: Final = {names.WAIT: "true", names.TAGS: OP_TAG}


def half_message(message: NewMessage, transaction_id: str | None) -> NewMessage:
    """Reroute a message to the half topic; it is changed in place. 5.x also stores the id of the transaction."""
    message.sys_flag = with_transaction_type(message.sys_flag, TRANSACTION_NONE)
    return reroute(message, HALF_TOPIC, 0, (names.TRANSACTION_ID, transaction_id) if transaction_id else ())


class HalfMessages:
    """Remembers which half messages have ended. `stop` writes the rest."""

    state_fields = ("_unwritten", "_unwritten_bytes")
    """A test companion sets them back."""

    def __init__(self, state: BrokerState, open_count: MetricTable) -> None:
        self._state = state
        self._is_5 = state.config.is_5
        self._open_count = open_count
        self._unwritten: dict[int, dict[int, str]] = {}
        """Queue id -> offsets of ended half messages that no op message names yet, oldest first, each with its text."""
        self._unwritten_bytes = 0
        self._timer: Timer | None = None
        self._op_text = encode_stored(_OP_PROPERTIES, BUCKETS[False], self._is_5)

    def stop(self) -> None:
        self._write_ops()
        self.abandon()

    def abandon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def count_down(self, real_topic: str | None, count: int = 1) -> None:
        """Count so many open transactions less."""
        if real_topic is not None and self._is_5:
            self._open_count.add(real_topic, -count, changes=count)

    @property
    def has_unwritten(self) -> bool:
        """Whether half messages have ended that no op message names yet."""
        return bool(self._unwritten)

    def mark_ended(self, queue_id: int, offset: int) -> None:
        """The check skips this half message from now on."""
        config = self._state.config
        self._collect(queue_id, offset, config.transaction_op_batch_interval / 1000)
        if self._unwritten_bytes > config.transaction_op_msg_max_size:
            self._write_ops()

    def mark_unwritten(self, queue_id: int, offset: int, refusal: PutStatus) -> None:
        """The same; the store has refused the op message."""
        _log_refused(refusal)
        self._collect(queue_id, offset, OP_RETRY_SECONDS)

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
        ops: list[tuple[int, list[int]]] = []
        for queue_id, offsets in self._unwritten.items():
            size = limit
            for offset, text in offsets.items():
                if size >= limit or not self._is_5:
                    ops.append((queue_id, []))
                    size = 0
                ops[-1][1].append(offset)
                size += len(text)
        if not ops:
            return
        placed = self._state.store.append_all([self._op_of(*op) for op in ops])
        for (queue_id, written), size in zip(ops, placed.sizes, strict=False):
            offsets = self._unwritten[queue_id]
            self._unwritten_bytes -= sum([len(offsets.pop(offset)) for offset in written])
            if not offsets:
                del self._unwritten[queue_id]
            if self._is_5:
                self._state.statistics.count_put(OP_HALF_TOPIC, 1, size)
        if placed.refusal is not None:
            _log_refused(placed.refusal)

    def _op_of(self, queue_id: int, offsets: Sequence[int]) -> Message:
        texts = self._unwritten[queue_id]
        text = "".join([texts[offset] for offset in offsets])
        return self.op_message(queue_id, text if self._is_5 else text.removesuffix(","))

    def op_message(self, queue_id: int, text: str) -> Message:
        """Names half messages of a queue that have ended."""
        message = own_message(self._state, OP_HALF_TOPIC, queue_id, text.encode(), ())
        message.properties, message.changes = self._op_text, None
        return self._state.store.pack_message(message)


def _log_refused(refusal: PutStatus) -> None:
    _log.error("cannot write the op message for ended transactions: %s", refusal.name)
