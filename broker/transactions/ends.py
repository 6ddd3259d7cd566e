"""Ends of transactions: what becomes of half messages when their producers commit or roll back (37).

    ends of a pass -> [ half record, decision by kind ] -> one append -> answers, one write
                        a refusal is answered with them

An end names its half message by its log position. Queue offset and producer group must also match, so that only the
producer group of a message can end it. What the broker decides depends on the kind of the end (`core/sends.py`) and
that of the half message (`core/copies.py`); so it decides once for both. Mirrors `EndTransactionProcessor`; owned by
the event loop.
"""

import logging
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import msgspec
from pocketmq.core.copies import Copy
from pocketmq.core.properties import BUCKETS, read_values
from pocketmq.core.records import Head, Message
from pocketmq.core.sends import End
from pocketmq.protocol.errors import FieldError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import (
    TRANSACTION_COMMIT,
    TRANSACTION_NONE,
    TRANSACTION_ROLLBACK,
    with_transaction_type,
)
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import HALF_TOPIC
from pocketmq.protocol.requests.send import EndTransaction
from pocketmq.protocol.wire.command import JSON, ONEWAY_FLAG
from pocketmq.protocol.wire.header_form import HeaderForm
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import from_fields
from pocketmq.store import PutStatus
from pocketmq.store.put_values import RefusedError

from ..bounded_cache import ByKind
from ..config.broker_config import BrokerConfig
from ..delayed.delayed import Delayed
from ..delayed.delayed_sends import ASKS, delay_if_asked, time_if_asked
from ..errors import Refusal
from ..network.connection import Connection
from ..network.dispatch import HELD, Answer, Call, Held
from ..state.broker_state import BrokerState
from ..state.part import UNSET_REMARK, refusal_of
from ..storing.messages import copy_of, real_place, record_at
from ..storing.numbers import INT_MAX, INT_MIN, parse_number
from .half_messages import HalfMessages

_log = logging.getLogger("pocketmq.transactions")

_DECIDING: Final = (
    *(names.CHECK_IMMUNITY_TIME_IN_SECONDS, names.PGROUP, names.REAL_TOPIC, names.DELAY),
    *ASKS,
)
"""Properties of half messages whose values decide about an end."""
_NO_TIMES: Final = [None] * (1 + len(ASKS))
_WITHOUT_PLACE: Final = (names.REAL_TOPIC, None, names.REAL_QID, None)
_WITHOUT_MARK: Final = (names.TRAN_MSG, None)
_MAX_KINDS: Final = 1024
_ANSWERS: Final = {TRANSACTION_COMMIT: Answer(), TRANSACTION_ROLLBACK: Answer(remark=UNSET_REMARK)}
"""To ends that were carried out."""


class EndKind(msgspec.Struct, gc=False, eq=False):
    """What ends of one kind share."""

    request: EndTransaction
    """Right but for offset, position and ids."""
    is_oneway: bool
    form: HeaderForm | None = None
    """Of the JSON header that answers an end that was carried out; made for the first one. Its value is the opaque."""


class Decision(NamedTuple):
    """About the half messages of one kind and their ends."""

    half_queue_id: int
    real_topic: str | None
    head: Head | None
    """Of the message that a half message becomes; None for a rollback."""


Pending = tuple[EndKind, End, Connection | Call]
"""An end of the pass that is handled now, and who gets the answer: a `Call` if the request was decoded."""

Step = tuple[Decision, int, Message | None]
"""An end that is carried out: its decision, the queue offset of its half message, and what that becomes."""


class Ends:
    def __init__(self, state: BrokerState, delayed: Delayed, half_messages: HalfMessages) -> None:
        self._state = state
        self._config = state.config
        self._is_5 = state.config.is_5
        self._delayed = delayed
        self._half_messages = half_messages
        self._pending: list[Pending] = []
        self._kinds = ByKind[Hashable, EndKind](_MAX_KINDS)
        self._decisions = ByKind[tuple[Hashable, Hashable], Decision](_MAX_KINDS)
        # 5.x removes the real place from the stored text, 4.9 does not.
        self._changes = _WITHOUT_PLACE if self._is_5 else ()

    def handle(self, connection: Connection, ends: Sequence[End]) -> None:
        """Carry out ends when the pass is over. Raises FrameError for a header that cannot be read."""
        try:
            for end in ends:
                kind = self._kinds.get(end.kind) or self._read_kind(connection, end)
                if kind is not None:
                    self._pending.append((kind, end, connection))
        finally:
            connection.at_pass_end(self._carry_out)

    def _read_kind(self, connection: Connection, end: End) -> EndKind | None:
        """What ends like this one share; None if it was refused. Raises FrameError."""
        command = end.decode()
        try:
            request = from_fields(EndTransaction, command.fields)
        except FieldError as error:
            connection.refuse(command, error)
            return None
        kind = EndKind(request, bool(command.flag & ONEWAY_FLAG))
        self._kinds.keep(end.kind, kind)
        return kind

    def handle_decoded(self, request: EndTransaction, call: Call) -> Held:
        """Carry out an end with the others of its pass, and answer its call."""
        place = request.tran_state_table_offset, request.commit_log_offset
        end = End(None, call.command.opaque, *place, memoryview(b""), 0, 0)
        self._pending.append((EndKind(request, False), end, call))
        call.connection.at_pass_end(self._carry_out)
        return HELD

    def _carry_out(self) -> None:
        pending, self._pending = self._pending, []
        answers: list[Answer | Held | None] = []
        try:
            steps = self._plan(pending)
            while len(answers) < len(pending):
                answers += self._store(steps[len(answers) :])
        except Exception as error:  # our mistake must not end the connection; some may be in the log
            _log.exception("%d ends of transactions cannot be carried out", len(pending))
            failure = Answer(code=ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")
            answers += [failure] * (len(pending) - len(answers))
        for (kind, end, asker), answer in zip(pending, answers, strict=True):
            if isinstance(asker, Call):
                if not isinstance(answer, Held):
                    asker.answer(answer or _ANSWERS[kind.request.commit_or_rollback])
            elif answer is None:
                _confirm(kind, end, asker)
            elif isinstance(answer, Answer):
                asker.answer(end.decode(), answer)

    def _plan(self, pending: Sequence[Pending]) -> list[Step | Answer | Held]:
        """What is done with each end, or the answer to one that is refused; HELD if it is not answered."""
        if self._config.is_slave:
            return [Answer(code=ResponseCode.SLAVE_NOT_AVAILABLE, remark=UNSET_REMARK)] * len(pending)
        copies = self._state.store.read_copies(
            [end.position for _, end, _ in pending],
            *(_DECIDING, names.REAL_QID, self._changes, BUCKETS[self._is_5], self._is_5),
        )
        decisions = self._decisions
        steps: list[Step | Answer | Held] = []
        for (kind, end, _), half in zip(pending, copies, strict=True):
            if half is not None:
                half_kind, queue_offset, queue_id, born_timestamp, body, text = half
                decision = decisions.get((end.kind, half_kind))
                if decision is not None and queue_offset == end.queue_offset and 0 <= queue_id <= INT_MAX:
                    message = None
                    if decision.head is not None:
                        message = decision.head, queue_id, body, text, born_timestamp, end.position, None
                    steps.append((decision, queue_offset, message))
                    continue
            try:
                steps.append(self._decide(kind.request, end, half))
            except Refusal as refusal:
                steps.append(Answer(code=refusal.code, remark=refusal.remark))
        return steps

    def _decide(self, request: EndTransaction, end: End, copy: Copy | None) -> Step | Held:
        """Decide about an end; `copy` is its half message if that is an ordinary one. Raises `Refusal`."""
        verdict = request.commit_or_rollback
        if verdict == TRANSACTION_NONE:
            return HELD  # "not known yet": the broker checks again later
        if verdict not in _ANSWERS:
            raise Refusal(ResponseCode.SYSTEM_ERROR, "RemotingCommandException: commitOrRollback field wrong")
        half = record_at(self._state.store, end.position)
        if half is None:
            raise Refusal(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
        immunity, group, real_topic, *times = read_values(half.properties, (), _DECIDING)
        if self._is_5 and immunity is not None and not request.from_transaction_check:
            self._check_time(half, immunity)
        _check_match(request, end, half, group)
        message = None
        if verdict == TRANSACTION_COMMIT:
            message = self._committed_message(half, may_wait=times != _NO_TIMES)
        decision = Decision(half.queue_id, real_topic, None if message is None else message[0])
        if end.kind is not None and copy is not None and immunity is None and times == _NO_TIMES:
            self._decisions.keep((end.kind, copy[0]), decision)
        return decision, end.queue_offset, message

    def _check_time(self, half: Record, immunity: str) -> None:
        """Raises `Refusal` if this end arrives too late. A message with a time of its own until the first check must
        end within that time, or by the answer to a check."""
        seconds = parse_number(immunity, INT_MIN, INT_MAX) or 0
        clock = self._state.clock
        sent_ms = half.store_timestamp if clock.is_virtual else half.born_timestamp
        if clock.now_ms() - sent_ms > max(seconds * 1000, self._config.transaction_time_out):
            raise Refusal(ResponseCode.ILLEGAL_OPERATION, UNSET_REMARK)

    def _committed_message(self, half: Record, *, may_wait: bool) -> Message:
        """The message that a half message becomes, for its consumers; if it `may_wait`, a delay level or a time is
        among its properties. Raises `Refusal`."""
        place = real_place(*(texts := read_values(half.properties, (), (names.REAL_TOPIC, names.REAL_QID))))
        if place is None:
            remark = f"the half message does not name its real topic and queue: {texts!r:.200}"
            raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
        further = _WITHOUT_MARK if self._is_5 else _WITHOUT_PLACE + _WITHOUT_MARK
        message = copy_of(half, *place, self._changes, further)
        message.sys_flag = with_transaction_type(half.sys_flag, TRANSACTION_COMMIT)
        message.prepared_transaction_offset = half.position
        if may_wait:
            message = time_if_asked(self._delayed, delay_if_asked(self._delayed, message))
        try:
            return self._state.store.pack_message(message)
        except RefusedError as error:
            raise _refused_commit(self._config, error.status) from error

    def _store(self, steps: Sequence[Step | Answer | Held]) -> list[Answer | Held | None]:
        """Carry out steps up to the first that the store refuses; the answers to them, None for those that were carried
        out. In the 4.9 line each commit is followed by its op message."""
        half_messages = self._half_messages
        messages: list[Message] = []
        ops_follow = not self._is_5 and not half_messages.has_unwritten
        for step in steps:
            if isinstance(step, tuple):
                decision, offset, message = step
                if message is not None:
                    messages.append(message)
                if ops_follow:
                    messages.append(half_messages.op_message(decision.half_queue_id, str(offset)))
        placed = self._state.store.append_all(messages) if messages else None
        sizes = iter(placed.sizes if placed is not None else ())
        answers: list[Answer | Held | None] = []
        stored: dict[tuple[str, str | None], list[int]] = {}
        for step in steps:
            if not isinstance(step, tuple):
                answers.append(step)
                continue
            (half_queue_id, real_topic, head), offset, _ = step
            if head is None:
                half_messages.count_down(real_topic)
            elif (size := next(sizes, None)) is not None:
                stored.setdefault((head.topic, real_topic), []).append(size)
            elif placed is not None and placed.refusal is not None:
                refusal = _refused_commit(self._config, placed.refusal)
                answers.append(Answer(code=refusal.code, remark=refusal.remark))
                break
            answers.append(None)
            if not ops_follow:
                half_messages.mark_ended(half_queue_id, offset)
            elif next(sizes, None) is None and placed is not None and placed.refusal is not None:
                half_messages.mark_unwritten(half_queue_id, offset, placed.refusal)
                break
        self._count_stored(stored)
        return answers

    def _count_stored(self, stored: dict[tuple[str, str | None], list[int]]) -> None:
        """Count half messages that were stored as messages: the bytes of each, by topic and real topic."""
        if self._is_5:
            for (topic, real_topic), sizes in stored.items():
                self._state.statistics.count_put(topic, len(sizes), sum(sizes), sends=len(sizes))
                self._half_messages.count_down(real_topic, len(sizes))


def _confirm(kind: EndKind, end: End, connection: Connection) -> None:
    if kind.is_oneway:
        return
    answer, form = _ANSWERS[kind.request.commit_or_rollback], kind.form
    if form is None:
        command = end.decode()
        reply = connection.reply_to(command, answer.code, answer.remark, {})
        reply.opaque = 0
        if reply.header_type == JSON:
            form = kind.form = HeaderForm.of(reply, [(b'"opaque":0', b'"opaque":%d')])
        if form is None:
            connection.answer(command, answer)
            return
    connection.write_frame(form.head((end.opaque,), 0))


def _check_match(request: EndTransaction, end: End, half: Record, group: str | None) -> None:
    if group != request.producer_group:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
    if half.queue_offset != end.queue_offset:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
    if half.position != end.position:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")
    if half.topic != HALF_TOPIC:
        # The official broker stores a committed message again, in the topic that its properties name.
        raise Refusal(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")


def _refused_commit(config: BrokerConfig, status: PutStatus) -> Refusal:
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
