"""The ends of transactions whose requests arrive together: in 5.x what they commit is stored in one append.

In the 4.9 line each commit is followed by its op message, so each is stored for itself. Owned by the event loop.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from pocketmq.core.records import Message
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import MessageStore, PutStatus

from ..config.broker_config import BrokerConfig
from ..errors import Refusal
from ..network.dispatch import HELD, Answer, Call, Held
from ..state.refusals import UNSET_REMARK, refusal_of
from .half_messages import HalfMessages

_log = logging.getLogger("pocketmq.transactions")


class End(NamedTuple):
    """A transaction that ends: what its half message becomes, or `None` for a rollback."""

    call: Call
    half: Record
    real_topic: str | None
    message: Message | None


class Ends:
    """Those of the pass that is handled now."""

    def __init__(self, config: BrokerConfig, store: MessageStore, half_messages: HalfMessages) -> None:
        self._config = config
        self._store = store
        self._half_messages = half_messages
        self._pending: list[End] = []

    def add(self, end: End) -> Held:
        """Carry out an end with the others of its pass, and answer its call."""
        self._pending.append(end)
        if self._config.is_5:
            end.call.connection.at_pass_end(self._carry_out)
        else:
            self._carry_out()
        return HELD

    def _carry_out(self) -> None:
        ends, self._pending = self._pending, []
        answers: list[Answer] = []
        try:
            while len(answers) < len(ends):
                answers += self._some(ends[len(answers) :])
        except Exception as error:  # our mistake must not end the connection; some may be in the log
            _log.exception("%d ends of transactions cannot be carried out", len(ends))
            failure = Answer(code=ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")
            answers += [failure] * (len(ends) - len(answers))
        for end, answer in zip(ends, answers, strict=True):
            end.call.answer(answer)

    def _some(self, ends: Sequence[End]) -> list[Answer]:
        """Carry out ends up to the first that the store refuses; the answers to them."""
        messages = [end.message for end in ends if end.message is not None]
        placed = self._store.append_all(messages) if messages else None
        sizes = iter(placed.sizes if placed is not None else ())
        answers: list[Answer] = []
        stored: list[tuple[str, str | None, int]] = []
        for _, half, real_topic, message in ends:
            size = None
            if message is not None:
                size = next(sizes, None)
                if size is None:
                    break
                stored.append((message[0].topic, real_topic, size))
            else:
                self._half_messages.count_down(real_topic)
            self._half_messages.ended(half.queue_id, half.queue_offset)
            answers.append(Answer() if message is not None else Answer(remark=UNSET_REMARK))
        self._half_messages.count_stored(stored)
        if placed is not None and placed.refusal is not None:
            refusal = refused_commit(self._config, placed.refusal)
            answers.append(Answer(code=refusal.code, remark=refusal.remark))
        return answers


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
