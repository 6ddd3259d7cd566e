"""The sends of a pass: each gets its decision and its message, then all are stored together and answered together.

    frames of a pass -> [ decision by kind, message ] -> one append -> answers, one write
                          a refusal is answered at once

Owned by the event loop. The same steps for one decoded request: `send_handlers.py`.
"""

from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import Final

from pocketmq.core.properties import read_properties
from pocketmq.core.sends import SPECIAL, Send
from pocketmq.protocol.message.offset_id import encode_message_ids
from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command
from pocketmq.store import PutStatus
from pocketmq.store.put_values import Placed

from ..network.connection import Connection
from ..network.dispatch import Call
from ..state.broker_state import BrokerState
from ..transactions.ends import Ends
from .decision import Decision, decide, request_of
from .durable_answers import send_answer, waits, when_durable, with_status
from .reply_form import ReplyForm, reply_form
from .send_checks import check_properties
from .send_handlers import Prepared, count_stored, prepare, refused
from .sending import Sending

MAX_DECISIONS: Final = 1024
"""A kind has at most 4 KiB, its request as many, and its heads 12 KiB: 20 MiB, if peers want that."""
_SPECIAL: Final = frozenset(SPECIAL)


class Sends:
    """Handles the sends that the connections of a broker receive."""

    def __init__(self, state: BrokerState, sending: Sending) -> None:
        self._state = state
        self._sending = sending
        self._topics = state.topics
        self._config = state.config
        self._statistics = state.statistics
        self._ends = Ends(sending.transactions)
        self._decisions: dict[Hashable, Decision] = {}

    def take(self, connection: Connection, sends: Sequence[Send]) -> None:
        """Handle sends in their order. Raises FrameError for a header that cannot be read."""
        decisions, find, settings = self._decisions, self._topics.find, self._state.settings_version
        sending, capacity = self._sending, self._config.send_thread_pool_queue_capacity
        pending: list[Prepared] = []
        for send in sends:
            decision = decisions.get(send[0])
            if sending.waiting_sends + len(pending) >= capacity:
                self._store(connection, pending)
            try:
                check_properties(sending, send[4])
                if (
                    decision is None
                    or find(decision.request.topic) is not decision.topic_config
                    or decision.settings is not settings
                    or sending.waiting_sends >= capacity
                ):
                    decision = self._decide(connection, send)
                if decision.is_oneway and connection.watch is not None:
                    # Watchers see the answers of a pass; of a send without one they see the request.
                    self._store(connection, pending)
                    connection.request_received(send.decode())
                    continue
                if decision.is_batch:  # it is the only one in its append
                    self._store(connection, pending)
                pending.append(prepare(sending, decision, send, connection))
                if decision.is_batch:
                    self._store(connection, pending)
            except Exception as error:
                self._store(connection, pending)  # answers are in order
                connection.refuse(send.decode(), error)
        self._store(connection, pending)

    def end(self, connection: Connection, commands: Sequence[Command]) -> None:
        """Handle ends of transactions of one pass, in their order."""
        self._ends.take(connection, commands)

    def _decide(self, connection: Connection, send: Send) -> Decision:
        command = send.decode()
        special = _SPECIAL.intersection(read_properties(send.properties))
        decision = decide(self._sending, request_of(command), Call(connection, command), special)
        decision.is_oneway = bool(command.flag & ONEWAY_FLAG)
        if len(self._decisions) >= MAX_DECISIONS:
            self._decisions.clear()
        self._decisions[send.kind] = decision
        return decision

    def _store(self, connection: Connection, pending: list[Prepared]) -> None:
        """Store and answer prepared sends in their order; the list is empty then."""
        while pending:
            try:
                placed = self._sending.store.append_all([prepared[2] for prepared in pending])
                done = len(placed.runs)
                if done:
                    self._answer(connection, pending[:done], placed)
            except Exception as error:  # our mistake must not end the connection; some may be in the log
                for prepared in pending:
                    connection.refuse(prepared.send.decode(), error)
                pending.clear()
                return
            if placed.refusal is not None:
                failed = pending[done]
                connection.refuse(failed.send.decode(), refused(self._sending, failed, placed.refusal))
            del pending[: done + 1]

    def _answer(self, connection: Connection, stored: list[Prepared], placed: Placed) -> None:
        replies = self._replies(connection, stored, placed)
        sending = self._sending
        if not sending.waits_for_durability and sending.topics not in sending.tables.unsaved:
            _write(connection, stored, replies)
            return
        durable = [waits(sending, prepared.send.properties) for prepared in stored]
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
        plain: dict[str, list[int]] = {}
        number = 0
        for prepared, run in zip(stored, placed.runs, strict=True):
            send, decision, message, queue_id, unique_id, _ = prepared
            _, queue_offset, count = run
            handle = None
            if decision.is_plain and not decision.is_batch:
                plain.setdefault(message[0].topic, []).append(placed.sizes[number])
            else:
                size = sum(placed.sizes[number : number + count])
                handle = count_stored(self._sending, prepared, count, size)
            if decision.is_oneway:
                replies.append(b"")
            else:
                reply = decision.reply or self._form(connection, decision, send)
                positions = placed.positions[number : number + count]
                replies.append(reply(positions, queue_id, queue_offset, unique_id, handle, send[1]))
            number += count
        for topic, sizes in plain.items():
            self._statistics.messages_put(topic, len(sizes), sum(sizes))
        return replies

    def _form(self, connection: Connection, decision: Decision, send: Send) -> ReplyForm:
        answer = send_answer(self._sending, 0, "", 0, send.unique_id or b"")
        reply = connection.reply_to(send.decode(), 0, None, answer.fields or {})
        decision.reply = form = reply_form(reply, self._sending.store_host)
        return form

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
            prepared, (_, queue_offset, count) = stored[number], placed.runs[number]
            positions = placed.positions[first[number] : first[number] + count]
            ids = encode_message_ids(self._sending.store_host, positions)
            answer = send_answer(self._sending, queue_offset, ids, prepared.queue_id, prepared.unique_id)
            connection.answer(prepared.send.decode(), with_status(answer, failure))


def _write(connection: Connection, stored: Sequence[Prepared], replies: Sequence[bytes]) -> None:
    """Write the replies to those that want one."""
    if all(replies):
        connection.write_replies([prepared[0] for prepared in stored], replies)
        return
    wanted = [(prepared[0], reply) for prepared, reply in zip(stored, replies, strict=True) if reply]
    if wanted:
        connection.write_replies([send for send, _ in wanted], [reply for _, reply in wanted])
