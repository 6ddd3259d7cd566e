"""The sends of a pass: each gets its decision and its message, then all are stored together and answered together.

    frames of a pass -> [ decision by kind, message ] -> one append -> answers, one write
                          a refusal is answered at once

Owned by the event loop.
"""

from functools import partial
from itertools import accumulate

from pocketmq.core.properties import read_properties
from pocketmq.core.sends import End, Send
from pocketmq.protocol.message.offset_id import encode_message_ids
from pocketmq.protocol.wire.command import ONEWAY_FLAG
from pocketmq.store import PutStatus
from pocketmq.store.put_values import Placed

from ..network.connection import Connection
from ..network.dispatch import Call
from ..state.broker_state import BrokerState
from .decision import Decision, Decisions, decide, request_of
from .durable_answers import call_when_answerable, has_to_wait, send_answer, set_status
from .reply_form import ReplyForm
from .send_checks import check_properties
from .send_handlers import Prepared, count_stored, find_refusal, prepare
from .sending import Sending


class Sends:
    """Handles the sends that the connections of a broker receive."""

    def __init__(self, state: BrokerState, sending: Sending) -> None:
        self._sending = sending
        self._config = state.config
        self._decisions = Decisions()

    def handle(self, connection: Connection, sends: list[Send], ends: list[End]) -> None:
        """Handle sends in their order, and ends of transactions when the pass is over. Raises FrameError for a header
        that cannot be read."""
        if ends:
            self._sending.transactions.ends.handle(connection, ends)
        sending, capacity = self._sending, self._config.send_thread_pool_queue_capacity
        pending: list[Prepared] = []
        at, first = 0, 0  # sends from `first` up to `at` are pending
        while at < len(sends):
            send = sends[at]
            if sending.waiting_sends + at - first >= capacity:
                self._store(connection, pending)
                first = at
            try:
                check_properties(sending, send.properties)
                decision = self._decisions.current(send.kind, sending) or self._decide(connection, send)
                if decision.is_oneway and connection.watch is not None:
                    # Watchers see the answers of a pass; of a send without one they see the request.
                    self._store(connection, pending)
                    connection.request_received(send.decode())
                    first = at = at + 1
                    continue
                end, room = len(sends), capacity - sending.waiting_sends
                if end - first > room:
                    end = max(first + room, at + 1)
                prepared = prepare(sending, decision, sends, at, end, connection)
                if not pending or not pending[-1].join(prepared):
                    pending.append(prepared)
                at += len(prepared.sends)
            except Exception as error:
                self._store(connection, pending)  # answers are in order
                connection.refuse(send.decode(), error)
                first = at = at + 1
        self._store(connection, pending)

    def _decide(self, connection: Connection, send: Send) -> Decision:
        """Decide what holds for such sends. Raises `Refusal`, FrameError."""
        sending = self._sending
        command = send.decode()
        properties = read_properties(send.properties)
        decision = decide(sending, request_of(command), Call(connection, command), properties)
        decision.is_oneway = bool(command.flag & ONEWAY_FLAG)
        self._decisions.keep(send.kind, decision)
        return decision

    def _store(self, connection: Connection, pending: list[Prepared]) -> None:
        """Store and answer prepared sends in their order; the list is empty then."""
        while pending:
            messages = pending[0].messages
            if len(pending) > 1:
                messages = [message for prepared in pending for message in prepared.messages]
            stored = pending
            left: list[Prepared] = []
            try:
                placed = self._sending.store.append_all(messages)
                if placed.refusal is not None:
                    stored, left = _split(pending, len(placed.runs))
                if stored:
                    self._answer(connection, stored, placed)
            except Exception as error:  # our mistake must not end the connection; some may be in the log
                for prepared in pending:
                    for send in prepared.sends:
                        connection.refuse(send.decode(), error)
                pending.clear()
                return
            if placed.refusal is not None:
                failed = left[0]
                reason = find_refusal(self._sending, failed, placed.refusal)
                connection.refuse(failed.sends[0].decode(), reason)
                left[:1] = [failed.part(1, None)] if len(failed.sends) > 1 else []
            pending[:] = left

    def _answer(self, connection: Connection, stored: list[Prepared], placed: Placed) -> None:
        sending, sends = self._sending, stored[0].sends
        if len(stored) > 1:
            sends = [send for prepared in stored for send in prepared.sends]
        replies = self._replies(connection, stored, placed)
        if not sending.durable_log.is_awaited and sending.topics not in sending.tables.unsaved:
            _write(connection, sends, replies)
            return
        durable = [has_to_wait(sending, send.properties) for send in sends]
        for is_waiting in (False, True):
            chosen = [number for number, waits_too in enumerate(durable) if waits_too is is_waiting]
            if chosen:
                ended = partial(self._answer_later, connection, sends, replies, placed, chosen)
                call_when_answerable(sending, len(chosen), placed.end if is_waiting else None, ended)

    def _answer_later(
        self,
        connection: Connection,
        stored: list[Send],
        replies: list[bytes],
        placed: Placed,
        chosen: list[int],
        failure: PutStatus | None,
    ) -> None:
        """Answer those of the stored sends that have these numbers; after a failure they are in the log, but not on
        disk or not on enough slaves."""
        sends = [stored[number] for number in chosen]
        if failure is None:
            _write(connection, sends, [replies[number] for number in chosen])
            return
        first = list(accumulate([run[2] for run in placed.runs], initial=0))
        for number, send in zip(chosen, sends, strict=True):
            _, queue_offset, count = placed.runs[number]
            positions = placed.positions[first[number] : first[number] + count]
            ids = encode_message_ids(self._sending.store_host, positions)
            answer = send_answer(self._sending, queue_offset, ids, send.queue_id, send.unique_id)
            connection.answer(send.decode(), set_status(answer, failure))

    def _replies(self, connection: Connection, stored: list[Prepared], placed: Placed) -> list[bytes]:
        """Count what was stored; returns the frame that answers each, empty for a one-way request."""
        replies: list[bytes] = []
        record = 0
        for prepared in stored:
            start, sizes = len(replies), placed.sizes
            form = prepared.decision.reply or self._form(connection, prepared)
            if len(stored) > 1:
                sizes = sizes[record : record + prepared.records_in(placed, start)]
            count_stored(self._sending, prepared, sizes)
            if form is None:
                replies += [b""] * len(prepared.sends)
            elif prepared.decision.is_batch:
                replies += form.frames_of_batches(prepared.sends, placed, start, record)
            else:
                replies += form.frames(prepared.sends, placed, start, record, prepared.handles)
            record += len(sizes)
        return replies

    def _form(self, connection: Connection, prepared: Prepared) -> ReplyForm | None:
        """The form of the answers to such sends; `None` for one-way requests."""
        send, decision = prepared.sends[0], prepared.decision
        if decision.is_oneway:
            return None
        answer = send_answer(self._sending, 0, "", 0, send.unique_id or b"")
        reply = connection.reply_to(send.decode(), 0, None, answer.fields or {})
        decision.reply = ReplyForm(reply, self._sending.store_host)
        return decision.reply


def _split(pending: list[Prepared], count: int) -> tuple[list[Prepared], list[Prepared]]:
    """The first so many sends, which are stored, and the others, of which the first is refused."""
    stored, left = [], []
    for prepared in pending:
        if count > 0:
            stored.append(prepared.part(0, count))
        if count < len(prepared.sends):
            left.append(prepared.part(max(count, 0), None))
        count -= len(prepared.sends)
    return stored, left


def _write(connection: Connection, sends: list[Send], replies: list[bytes]) -> None:
    if all(replies):
        connection.write_replies(sends, replies)
        return
    wanted = [(send, reply) for send, reply in zip(sends, replies, strict=True) if reply]
    if wanted:
        connection.write_replies([send for send, _ in wanted], [reply for _, reply in wanted])
