"""Sends whose headers repeat: stored by a plan, without a request object, a property map or an answer object each.

    frames of a pass -> [ of one header ] -> numbers checked -> store -> answers from a template, one write
                         no plan, or something is unusual -> the ordinary way (`send_handlers.py`)

What is stored and answered is the same either way. Owned by the event loop.
"""

from collections.abc import Sequence
from typing import Final

from pocketmq.protocol.errors import FieldError
from pocketmq.protocol.message.offset_id import encode_message_id
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.repeated_header import UNDECIDED, Recognised, as_command
from pocketmq.store import AppendResult, PutStatus
from pocketmq.store.put_values import AlikeMessage, Stored

from ..network.connection import Connection
from ..state.broker_state import BrokerState
from ..transactions.planned_ends import PlannedEnds
from .durable_answers import send_answer, when_durable, with_status
from .planned_batches import BatchPlan, make_batch_plan, store_planned_batch
from .rerouted_plan import ReroutedPlan, make_rerouted_plan
from .rerouted_sends import store_rerouted
from .send_plan import QUEUE_IDS, SendPlan, make_plan
from .sending import Sending

MOST_BODY_BYTES: Final = 64 * 1024
"""Larger bodies go the ordinary way, which does not copy them once more."""
_PLANS: Final = frozenset((SendPlan, ReroutedPlan, BatchPlan))
_ZERO: Final = 0x30
_PLAIN: Final = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
"""Characters of keys that are the same in both forms of a header."""


class PlannedSends:
    """Takes the recognised frames of all connections of a broker."""

    def __init__(self, state: BrokerState, sending: Sending) -> None:
        self._state = state
        self._sending = sending
        self._topics = state.topics
        self._unsaved = state.tables.unsaved
        self._config = state.config
        self._store = state.store
        self._statistics = state.statistics
        self._ends = PlannedEnds(sending.transactions)

    def take(self, connection: Connection, frames: Sequence[Recognised]) -> None:
        """Handle sends of one pass, in their order."""
        done = 0
        while done < len(frames):
            header = frames[done][0]
            count = 0
            if self._is_current(header.plan) and self._may_store():
                try:
                    count = self._store_alike(connection, frames, done)
                except Exception as error:  # as for a handler: our mistake must not end the connection
                    # Those of one header may be in the log: handled one by one they would be stored again.
                    while done + count < len(frames) and frames[done + count][0] is header:
                        connection.refuse(as_command(frames[done + count]), error)
                        count += 1
            if not count:
                self._take_ordinarily(connection, frames[done])
                count = 1
            done += count

    def end(self, connection: Connection, commands: Sequence[Command]) -> None:
        """Handle ends of transactions of one pass, in their order."""
        self._ends.take(connection, commands)

    def _is_current(self, plan: SendPlan | BatchPlan | None) -> bool:
        """Whether a plan was made, and topic and settings are still those it was made for."""
        return (
            plan.__class__ in _PLANS
            and self._topics.find(plan.topic) is plan.topic_config
            and self._state.settings_version is plan.settings
        )

    def _may_store(self) -> bool:
        """Whether a send could be answered at once or wait: not while a topic is being saved, or too many wait."""
        return (
            self._topics not in self._unsaved
            and self._sending.waiting_sends < self._config.send_thread_pool_queue_capacity
        )

    def _take_ordinarily(self, connection: Connection, frame: Recognised) -> None:
        header, settings = frame[0], self._state.settings_version
        command = as_command(frame)
        connection.request_received(command)
        header.is_used = True
        if header.plan is not None and not self._is_current(header.plan):
            command = as_command(frame)  # anew: a refusal has changed the form of the answer
            try:
                header.plan = (
                    make_plan(self._sending, connection, command, settings, has_keys=header.has_keys)
                    or make_rerouted_plan(
                        self._sending, connection, command, settings, has_keys=header.has_keys
                    )
                    or make_batch_plan(self._sending, connection, command, settings)
                )
            except FieldError:  # refused; the next one may have better values
                header.plan = UNDECIDED

    def _store_alike(self, connection: Connection, frames: Sequence[Recognised], first: int) -> int:
        """Store and answer sends with the header of the first as long as nothing is unusual; returns how many."""
        header_plan: SendPlan | BatchPlan = frames[first][0].plan
        if isinstance(header_plan, BatchPlan):
            return store_planned_batch(self._sending, connection, header_plan, frames[first])
        plan = header_plan
        messages = messages_of(plan, frames, first)
        if plan.__class__ is ReroutedPlan and messages:
            return store_rerouted(self._sending, connection, plan, frames[first:], messages)
        if plan.waits:
            del messages[self._config.send_thread_pool_queue_capacity - self._sending.waiting_sends :]
        stored = self._store.append_alike(plan.template, messages) if messages else None
        if stored is None:
            return 0
        count = len(stored.positions)
        self._statistics.messages_put(plan.topic, count, stored.end - stored.positions[0])
        if plan.waits:
            self._answer_when_durable(connection, plan, frames[first : first + count], stored)
        elif not plan.is_oneway:
            frames = frames[first : first + count]
            connection.write_replies(frames, _replies(plan, frames, stored))
        return count

    def _answer_when_durable(
        self, connection: Connection, plan: SendPlan, frames: Sequence[Recognised], stored: Stored
    ) -> None:
        sending, count = self._sending, len(frames)
        sending.waiting_sends += count

        def ended(failure: PutStatus | None) -> None:
            def saved() -> None:
                sending.waiting_sends -= count
                if failure is not None:
                    self._answer_with(failure, connection, frames, stored)
                elif not plan.is_oneway:
                    connection.write_replies(frames, _replies(plan, frames, stored))

            sending.tables.when_saved(sending.topics, saved)

        when_durable(sending, stored.end, ended)

    def _answer_with(
        self, failure: PutStatus, connection: Connection, frames: Sequence[Recognised], stored: Stored
    ) -> None:
        """Answer for messages that are in the log, but not on disk or not on enough slaves."""
        sending = self._sending
        for number, frame in enumerate(frames):
            _, queue_text, _, unique_id, *_ = frame[1]
            position, queue_offset = stored.positions[number], stored.queue_offsets[number]
            result = AppendResult(PutStatus.PUT_OK, position, 0, queue_offset, 0)
            message_id = encode_message_id(sending.store_host, position)
            answer = send_answer(sending, result, message_id, int(queue_text), unique_id.decode())
            connection.answer(as_command(frame), with_status(answer, failure))


def _replies(plan: SendPlan, frames: Sequence[Recognised], stored: Stored) -> list[bytes]:
    reply = plan.reply
    return [
        reply(position, frame[1][1], queue_offset, frame[1][3], frame[1][0])
        for frame, position, queue_offset in zip(frames, stored.positions, stored.queue_offsets, strict=True)
    ]


def messages_of(plan: SendPlan, frames: Sequence[Recognised], first: int) -> list[AlikeMessage]:
    """The messages of the frames from the first on, up to one of another header or with an unusual value."""
    header, queues, is_json = frames[first][0], plan.queues, plan.is_json
    messages: list[AlikeMessage] = []
    queue_ids, text_with_keys = QUEUE_IDS, plan.text_with_keys
    last_text, born_timestamp = b"", 0
    for frame in frames[first:] if first else frames:
        if frame[0] is not header:
            break
        opaque, queue_text, born_text, unique_id, *keys = frame[1]
        if born_text != last_text:
            if not born_text.isdigit() or born_text[0] == _ZERO:
                break
            last_text, born_timestamp = born_text, int(born_text)
        queue_id = queue_ids.get(queue_text, queues)
        if (
            queue_id >= queues
            or len(frame[2]) > MOST_BODY_BYTES
            or not unique_id.isalnum()
            or (is_json and not (opaque.isdigit() and (opaque[0] != _ZERO or opaque == b"0")))
        ):
            break
        if text_with_keys is not None:
            if keys[0].translate(None, _PLAIN):
                break
            unique_id = text_with_keys(unique_id, keys[0])
        messages.append((queue_id, bytes(frame[2]), unique_id, born_timestamp, 0))
    return messages
