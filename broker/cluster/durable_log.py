"""The log as broker.conf wants it before an answer: on disk under SYNC_FLUSH, at slaves under SYNC_MASTER.

Mirrors CommitLog.handleDiskFlushAndHA. Owned by the event loop.
"""

from collections.abc import Callable
from typing import Final

from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..errors import OVERLOAD, Refusal
from ..network.dispatch import HELD, Answer, Call, Held
from ..state.broker_state import BrokerState
from ..storing.log_waiters import LogWaiters
from .replication_master import ReplicationMaster

MAX_WAITING_BYTES: Final = 64 << 20
"""Of popped messages whose answers wait; one more pop may follow."""

OnDurable = Callable[[PutStatus | None], None]
"""Called with None, or with what went wrong; the bytes are in the log all the same."""


class DurableLog:
    """Calls back once what was appended is as durable as it has to be."""

    def __init__(self, state: BrokerState, replication: ReplicationMaster) -> None:
        store = state.config.store
        self.is_awaited = store.flush_disk_type == "SYNC_FLUSH" or store.broker_role == "SYNC_MASTER"
        """Whether answers may have to wait for the disk or for slaves."""
        self.waiting = 0
        """Pops, acks, changed invisible times, messages sent back and recalls that are stored and wait."""
        self._waiting_bytes = 0
        self._config = state.config
        self._store = state.store
        self._is_forced = store.flush_disk_type == "SYNC_FLUSH"
        self._replication = replication
        self.disk_waiters = LogWaiters(
            lambda: state.store.flushed_position,
            lambda: state.config.store.sync_flush_timeout,
            lambda: state.store.admission.disk_failure is not None,
        )
        state.store.on_flushed = self.disk_waiters.look

    def call_when_durable(self, end: int, callback: OnDurable) -> None:
        """Call back once disk and slaves have the log up to `end`."""
        if not self._is_forced:
            self._call_when_copied(end, None, callback)
            return

        def wait_for_slaves(is_safe: bool) -> None:
            # Copying to slaves does not wait for the disk: often they have the message by now.
            self._call_when_copied(end, None if is_safe else PutStatus.FLUSH_DISK_TIMEOUT, callback)

        self.disk_waiters.add(end, wait_for_slaves)

    def check_room(self) -> None:
        """Asked before a request stores records of its own. Raises `Refusal` while as many answers wait as
        ackThreadPoolQueueCapacity says, or `MAX_WAITING_BYTES` of messages in them."""
        is_full = self.waiting >= self._config.ack_thread_pool_queue_capacity
        if is_full or self._waiting_bytes >= MAX_WAITING_BYTES:
            raise Refusal(ResponseCode.SYSTEM_BUSY, OVERLOAD)

    def run_when_durable(self, action: Callable[[], None], answers: int = 1, size: int = 0) -> None:
        """Run it once all that was appended so far is durable, or the wait for that has failed; at once where nothing
        is awaited. So the official broker answers a request that stores records of its own. Until then so many
        `answers` with so many bytes count as waiting."""
        if not self.is_awaited:
            action()
            return
        self.waiting += answers
        self._waiting_bytes += size

        def run(_: PutStatus | None) -> None:
            self.waiting -= answers
            self._waiting_bytes -= size
            action()

        self.call_when_durable(self._store.log.end, run)

    def answer_when_durable(self, call: Call, answer: Answer) -> Answer | Held:
        """The answer, or HELD if `run_when_durable` sends it later."""
        if not self.is_awaited:
            return answer
        size = sum(map(len, answer.body)) if isinstance(answer.body, list) else 0
        self.run_when_durable(lambda: call.answer(answer), size=size)
        return HELD

    def _call_when_copied(self, end: int, failure: PutStatus | None, callback: OnDurable) -> None:
        replication = self._replication
        if replication.copies <= 1:
            callback(failure)
        elif (refusal := replication.refusal()) is not None:
            callback(refusal)
        else:
            replication.waiters.add(
                end, lambda is_safe: callback(failure if is_safe else PutStatus.FLUSH_SLAVE_TIMEOUT)
            )
