"""The sends of a pass: each gets its decision and its message, then all are stored together and answered together.

    frames of a pass -> [ decision by kind, message ] -> one append -> answers, one write
                          a refusal is answered at once

Owned by the event loop. The same steps for one decoded request: `send_handlers.py`.
"""

from collections.abc import Sequence
from itertools import accumulate, groupby
from operator import itemgetter

from pocketmq.core.properties import read_properties
from pocketmq.core.sends import Send
from pocketmq.protocol.message.offset_id import encode_message_ids
from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command
from pocketmq.store import PutStatus
from pocketmq.store.put_values import Placed

from ..network.connection import Connection
from ..network.dispatch import Call
from ..state.broker_state import BrokerState
from ..transactions.ends import Ends
from .decision import Decision, Decisions, decide, request_of
from .durable_answers import send_answer, waits, when_durable, with_status
from .reply_form import ReplyForm
from .send_checks import check_properties
from .send_handlers import Prepared, count_stored, prepare, refused, run_of
from .sending import Sending


class Sends:
    """Handles the sends that the connections of a broker receive."""

    def __init__(self, state: BrokerState, sending: Sending) -> None:
        self._sending = sending
        self._config = state.config
        self._ends = Ends(sending.transactions)
        self._decisions = Decisions()

    def take(self, connection: Connection, sends: Sequence[Send]) -> None:
        """Handle sends in their order. Raises FrameError for a header that cannot be read."""
        sending, capacity = self._sending, self._config.send_thread_pool_queue_capacity
        pending: list[Prepared] = []
        at = 0
        while at < len(sends):
            send = sends[at]
            at += 1
            if sending.waiting_sends + len(pending) >= capacity:
                self._store(connection, pending)
            try:
                check_properties(sending, send.properties)
                decision = self._decision(connection, send)
                if decision.is_oneway and connection.watch is not None:
                    # Watchers see the answers of a pass; of a send without one they see the request.
                    self._store(connection, pending)
                    connection.request_received(send.decode())
                    continue
                if decision.is_batch:  # it is the only one in its append
                    self._store(connection, pending)
                room = capacity - sending.waiting_sends - len(pending)
                run = run_of(decision, sends[at - 1 : at - 1 + room])
                pending += prepare(sending, decision, run, connection)
                at += len(run) - 1
                if decision.is_batch:
                    self._store(connection, pending)
            except Exception as error:
                self._store(connection, pending)  # answers are in order
                connection.refuse(send.decode(), error)
        self._store(connection, pending)

    def end(self, connection: Connection, commands: Sequence[Command]) -> None:
        """Handle ends of transactions of one pass, in their order."""
        self._ends.take(connection, commands)

    def _decision(self, connection: Connection, send: Send) -> Decision:
        """What holds for such sends: decided before, or now. Raises `Refusal`, FrameError."""
        sending = self._sending
        decision = self._decisions.current(send.kind, sending)
        if decision is not None:
            return decision
        command = send.decode()
        properties = read_properties(send.properties)
        decision = decide(sending, request_of(command), Call(connection, command), properties)
        decision.is_oneway = bool(command.flag & ONEWAY_FLAG)
        self._decisions.keep(send.kind, decision)
        return decision

    def _store(self, connection: Connection, pending: list[Prepared]) -> None:
        """Store and answer prepared sends in their order; the list is empty then."""
        while pending:
            try:
                placed = self._sending.store.append_all([message for _, _, message, *_ in pending])
                done = len(placed.runs)
                if done:
                    self._answer(connection, pending[:done], placed)
            except Exception as error:  # our mistake must not end the connection; some may be in the log
                for prepared in pending:
                    connection.refuse(prepared[0].decode(), error)
                pending.clear()
                return
            if placed.refusal is not None:
                failed = pending[done]
                connection.refuse(failed[0].decode(), refused(self._sending, failed, placed.refusal))
            del pending[: done + 1]

    def _answer(self, connection: Connection, stored: list[Prepared], placed: Placed) -> None:
        replies = self._replies(connection, stored, placed)
        sending = self._sending
        if not sending.waits_for_durability and sending.topics not in sending.tables.unsaved:
            _write(connection, stored, replies)
            return
        durable = [waits(sending, prepared[0].properties) for prepared in stored]
        for waiting in (False, True):
            chosen = [number for number, waits_too in enumerate(durable) if waits_too is waiting]
            if chosen:
                self._answer_later(connection, stored, replies, placed, chosen, is_durable=not waiting)

    def _answer_later(
        self,
        connection: Connection,
        stored: list[Prepared],
        replies: list[bytes],
        placed: Placed,
        chosen: list[int],
        *,
        is_durable: bool,
    ) -> None:
        """Answer those of the stored sends that have these numbers, once they are durable and the topics are saved."""
        sending = self._sending
        sending.waiting_sends += len(chosen)

        def ended(failure: PutStatus | None) -> None:
            def saved() -> None:
                sending.waiting_sends -= len(chosen)
                if failure is not None:
                    self._answer_with(failure, connection, stored, placed, chosen)
                else:
                    _write(
                        connection,
                        [stored[number] for number in chosen],
                        [replies[number] for number in chosen],
                    )

            sending.tables.when_saved(sending.topics, saved)

        if is_durable:
            ended(None)
        else:
            when_durable(sending, placed.end, ended)

    def _replies(self, connection: Connection, stored: list[Prepared], placed: Placed) -> list[bytes]:
        """Count what was stored; returns the frame that answers each, empty for a one-way request."""
        replies: list[bytes] = []
        runs, positions, sizes = placed.runs, placed.positions, placed.sizes
        if stored[0][1].is_batch:
            count_stored(self._sending, stored, sizes)
            form = self._form(connection, stored[0])
            return [b"" if form is None else form.frame(stored[0][0], positions, runs[0][1])]
        for _, of_decision in groupby(stored, itemgetter(1)):
            group, first = list(of_decision), len(replies)
            end = first + len(group)
            count_stored(self._sending, group, sizes[first:end])
            form = self._form(connection, group[0])
            if form is None:
                replies += [b""] * len(group)
                continue
            offsets = [run[1] for run in runs[first:end]]
            sends, handles = [prepared[0] for prepared in group], [prepared[4] for prepared in group]
            replies += form.frames(sends, positions[first:end], offsets, handles)
        return replies

    def _form(self, connection: Connection, prepared: Prepared) -> ReplyForm | None:
        """The form of the answers to such sends; `None` for one-way requests."""
        send, decision, *_ = prepared
        if decision.reply is None and not decision.is_oneway:
            answer = send_answer(self._sending, 0, "", 0, send.unique_id or b"")
            reply = connection.reply_to(send.decode(), 0, None, answer.fields or {})
            decision.reply = ReplyForm(reply, self._sending.store_host)
        return decision.reply

    def _answer_with(
        self,
        failure: PutStatus,
        connection: Connection,
        stored: list[Prepared],
        placed: Placed,
        chosen: list[int],
    ) -> None:
        """Answer for messages that are in the log, but not on disk or not on enough slaves."""
        first = list(accumulate([run[2] for run in placed.runs], initial=0))
        for number in chosen:
            send, (_, queue_offset, count) = stored[number][0], placed.runs[number]
            positions = placed.positions[first[number] : first[number] + count]
            ids = encode_message_ids(self._sending.store_host, positions)
            answer = send_answer(self._sending, queue_offset, ids, send.queue_id, send.unique_id)
            connection.answer(send.decode(), with_status(answer, failure))


def _write(connection: Connection, stored: Sequence[Prepared], replies: Sequence[bytes]) -> None:
    """Write the replies to those that want one."""
    if all(replies):
        connection.write_replies([prepared[0] for prepared in stored], replies)
        return
    wanted = [(prepared[0], reply) for prepared, reply in zip(stored, replies, strict=True) if reply]
    if wanted:
        connection.write_replies([send for send, _ in wanted], [reply for _, reply in wanted])
