"""Sends whose headers repeat: stored by a plan, without a request object, a property map or an answer object each.

    frames of a pass -> [ of one header ] -> numbers checked -> store -> answers from a template, one write
                         no plan, or something is unusual -> the ordinary way (`send_handlers.py`)

What is stored and answered is the same either way. Owned by the event loop.
"""

from collections.abc import Sequence
from typing import Final

from pocketmq.protocol.errors import FieldError
from pocketmq.protocol.message.properties import KEYS, UNIQ_KEY
from pocketmq.protocol.wire.repeated_header import UNDECIDED, Recognised, as_command
from pocketmq.store import NewMessage, PutStatus
from pocketmq.store.put_values import AlikeMessage

from ..network.connection import Connection
from ..state.broker_state import BrokerState
from .send_plan import QUEUE_IDS, SendPlan, make_plan
from .sending import Sending

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

    def take(self, connection: Connection, frames: Sequence[Recognised]) -> None:
        """Handle sends of one pass, in their order."""
        done = 0
        while done < len(frames):
            header = frames[done][0]
            count = 0
            if self._is_current(header.plan):
                try:
                    count = self._store_alike(connection, frames, done)
                except Exception as error:  # as for a handler: our mistake must not end the connection
                    connection.refuse(as_command(frames[done]), error)
                    count = 1
            if not count:
                self._take_ordinarily(connection, frames[done])
                count = 1
            done += count

    def _is_current(self, plan: SendPlan | None) -> bool:
        """Whether a plan was made, topic and settings are still those it was made for, and it may be used now."""
        return (
            plan.__class__ is SendPlan
            and self._topics.find(plan.topic) is plan.topic_config
            and self._state.settings_version is plan.settings
            and self._topics not in self._unsaved
            and self._sending.waiting_sends < self._config.send_thread_pool_queue_capacity
        )

    def _take_ordinarily(self, connection: Connection, frame: Recognised) -> None:
        header, settings = frame[0], self._state.settings_version
        command = as_command(frame)
        connection.request_received(command)
        header.is_used = True
        if header.plan is not None and not self._is_current(header.plan):
            try:
                header.plan = make_plan(
                    self._sending, connection, command, settings, has_keys=header.has_keys
                )
            except FieldError:  # refused; the next one may have better values
                header.plan = UNDECIDED

    def _store_each(self, connection: Connection, frames: Sequence[Recognised], first: int) -> int:
        """As `_store_alike`, one message after the other."""
        header = frames[first][0]
        plan: SendPlan = header.plan
        reply, message = plan.reply, plan.message
        store, out, size, count = self._store, [], 0, 0
        for frame in frames[first:]:
            if frame[0] is not header:
                break
            read = _read(plan, frame)
            if read is None:
                break
            queue_id, born_timestamp, text = read
            values = frame[1]
            unique_id = values[3]
            properties = {**message.property_map, UNIQ_KEY: unique_id.decode()}
            if header.has_keys:
                properties[KEYS] = values[4].decode()
            result = store.append(
                NewMessage(
                    plan.topic,
                    queue_id,
                    frame[2],
                    text,
                    properties,
                    message.flag,
                    message.sys_flag,
                    born_timestamp,
                    message.born_host,
                    message.store_host,
                    message.reconsume_times,
                )
            )
            if result.status is not PutStatus.PUT_OK:
                break
            count += 1
            size += result.size
            out.append(reply(result.position, values[1], result.queue_offset, unique_id, values[0]))
        if count:
            self._statistics.messages_put(plan.topic, count, size)
            if not plan.is_oneway:
                connection.write_replies(frames[first : first + count], out)
        return count

    def _store_alike(self, connection: Connection, frames: Sequence[Recognised], first: int) -> int:
        """Store and answer sends with the header of the first as long as nothing is unusual; returns how many."""
        plan: SendPlan = frames[first][0].plan
        if plan.template is None:
            return self._store_each(connection, frames, first)
        messages = messages_of(plan, frames, first)
        stored = self._store.append_alike(plan.template, messages) if messages else None
        if stored is None:
            return 0
        count = len(stored.positions)
        self._statistics.messages_put(plan.topic, count, stored.end - stored.positions[0])
        if not plan.is_oneway:
            reply = plan.reply
            connection.write_replies(
                frames[first : first + count],
                [
                    reply(position, frame[1][1], queue_offset, frame[1][3], frame[1][0])
                    for frame, position, queue_offset in zip(
                        frames[first:], stored.positions, stored.queue_offsets, strict=False
                    )
                ],
            )
        return count


def messages_of(plan: SendPlan, frames: Sequence[Recognised], first: int) -> list[AlikeMessage]:
    """The messages of the frames from the first on, up to one of another header or with an unusual value."""
    header, queues, is_json = frames[first][0], plan.queues, plan.is_json
    messages: list[AlikeMessage] = []
    queue_ids = QUEUE_IDS
    last_text, born_timestamp = b"", 0
    for frame in frames[first:] if first else frames:
        if frame[0] is not header:
            break
        opaque, queue_text, born_text, unique_id = frame[1]
        if born_text != last_text:
            if not born_text.isdigit() or born_text[0] == _ZERO:
                break
            last_text, born_timestamp = born_text, int(born_text)
        queue_id = queue_ids.get(queue_text, queues)
        if (
            queue_id >= queues
            or not unique_id.isalnum()
            or (is_json and not (opaque.isdigit() and (opaque[0] != _ZERO or opaque == b"0")))
        ):
            break
        messages.append((queue_id, bytes(frame[2]), unique_id, born_timestamp, 0))
    return messages


def _read(plan: SendPlan, frame: Recognised) -> tuple[int, int, bytes] | None:
    """Queue id, born timestamp and property text of a send; None if the ordinary way must look at it."""
    opaque, queue_text, born_text, unique_id, *keys = frame[1]
    queue_id = QUEUE_IDS.get(queue_text)
    if (
        queue_id is None
        or queue_id >= plan.queues
        or not born_text.isdigit()
        or born_text[0] == _ZERO
        or not unique_id.isalnum()
        or (plan.is_json and not (opaque.isdigit() and (opaque[0] != _ZERO or opaque == b"0")))
        or len(frame[2]) > plan.most_body_bytes
    ):
        return None
    if not keys:
        return queue_id, int(born_text), plan.text[0] + unique_id + plan.text[1]
    if keys[0].translate(None, _PLAIN):
        return None
    first, second = (keys[0], unique_id) if plan.keys_first else (unique_id, keys[0])
    text = plan.text
    return queue_id, int(born_text), b"".join((text[0], first, text[1], second, text[2]))
