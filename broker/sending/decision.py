"""What the broker decides about sends of one kind: once, and never by their values.

    kind        topic, constant header fields, which special properties there are (`core/sends.py`)
    decision    topic and queues, what is added to the stored text, whether it is rerouted, the form of the answer

A decision holds as long as its topic and the settings are the same; its user compares them first. Refusals are not
kept: they are made anew for each send. Mirrors the checks of `SendMessageProcessor`.
"""

from collections.abc import Hashable, Iterable
from typing import Final

import msgspec
from pocketmq.core.properties import Changes
from pocketmq.core.records import Head
from pocketmq.core.sends import SPECIAL, SendChanges
from pocketmq.protocol.bodies.topic_config import MULTI_TAG, TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.send import AnySend, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import from_fields

from ..bounded_cache import ByKind
from ..delayed.delayed_sends import ASKS, TIMING
from ..network.dispatch import Call
from .reply_form import ReplyForm
from .send_checks import check_send
from .sending import Sending

REQUESTS: Final[dict[int, type[SendMessage | SendMessageV2]]] = {
    SendMessage.code: SendMessage,
    SendMessageV2.code: SendMessageV2,
    SendBatchMessage.code: SendBatchMessage,
}
SPECIAL_NAMES: Final = frozenset(SPECIAL)
REROUTING: Final = frozenset(
    (names.TRAN_MSG, names.DELAY, *ASKS, names.TIMER_OUT_MS, names.PRIORITY, names.INNER_NUM)
)
"""Properties that may store a message elsewhere or refuse it, by their values."""
_ASKS: Final = frozenset(ASKS)
MAX_DECISIONS: Final = 1024
"""A kind has at most 4 KiB, its request as many, and its routes 40 KiB: 50 MiB, if peers want that."""
_MAX_ROUTES: Final = 64
_MAX_DECIDING: Final = 32
"""Characters of a value; an unusual one is decided each time."""
SLOT: Final = -1
"""In the changes of a route, beside QUEUE_ID and UNIQUE_ID."""


class Decision(msgspec.Struct, gc=False, eq=False):
    """About the sends of one kind."""

    request: AnySend
    """Right but for queue id, born time and properties."""
    topic_config: TopicConfig
    settings: object
    """The version of the settings that it was made with."""
    queues: int
    """Requests name a queue below this."""
    version: int
    """Of the client."""
    sys_flag: int
    is_batch: bool
    special: frozenset[str]
    """Properties that they have, of `core.sends.SPECIAL`."""
    is_plain: bool
    """Whether it is no batch, and no property or topic reroutes it."""
    deciding: tuple[str, ...] | None
    """Properties whose values decide where such messages are stored; None if each is decided for itself."""
    is_timed: bool
    """Whether these values are a time: with the clock they give a slot of the timer, or none."""
    changes: Changes
    """What the stored text has beside the sent one; without the unique id that the broker makes if there is none."""
    is_oneway: bool = False
    reply: ReplyForm | None = None
    """Made by the first that is answered."""
    routes: dict[tuple[bytes, tuple[str | None, ...]], "Route"] = {}
    """By born host and values of the deciding properties; of those that are a time, by whether such messages wait."""

    def keep_route(self, born_host: bytes, values: tuple[str | None, ...], route: "Route") -> None:
        """Remember where messages with these values are stored, unless one is long."""
        if all(value is None or len(value) <= _MAX_DECIDING for value in values):
            if len(self.routes) >= _MAX_ROUTES:
                self.routes.clear()
            self.routes[born_host, values] = route


class Route(msgspec.Struct, gc=False, eq=False):
    """Where messages are stored that differ in nothing that decides it."""

    head: Head
    queue_id: int | None
    """None: that of the send."""
    changes: SendChanges
    """A value may be SLOT, which is that of the message."""
    real_topic: str | None
    """Of half messages."""

    def changes_in(self, slot_ms: int | None) -> SendChanges:
        """The changes of messages that wait in this slot of the timer."""
        if slot_ms is None:
            return self.changes
        return tuple([str(slot_ms) if value == SLOT else value for value in self.changes])


class Decisions(ByKind[Hashable, Decision]):
    """Those of a port."""

    def __init__(self) -> None:
        super().__init__(MAX_DECISIONS)

    def current(self, kind: Hashable, sending: Sending) -> Decision | None:
        """What holds for one more send of this kind; `None` if that has to be decided."""
        decision = self.get(kind)
        if (
            decision is None
            or decision.settings is not sending.state.settings_version
            or sending.topics.find(decision.request.topic) is not decision.topic_config
            or sending.waiting_sends >= sending.config.send_thread_pool_queue_capacity
        ):
            return None
        return decision


def decide(sending: Sending, request: AnySend, call: Call, properties: Iterable[str]) -> Decision:
    """The decision about a request with properties of these names, of which only the special ones matter.

    Creates the topic if the broker allows that. Raises `Refusal`.
    """
    topic_config = check_send(sending, request, call)
    special = SPECIAL_NAMES.intersection(properties)
    is_batch = bool(request.batch) or type(request) is SendBatchMessage
    deciding = None
    if not is_batch and not is_retry_topic(request.topic) and not request.sys_flag & flags.INNER_BATCH:
        deciding = _deciding(sending, special)
    multi_tag = flags.MULTI_TAGS if topic_config.topic_filter_type == MULTI_TAG else 0
    return Decision(
        request=request,
        topic_config=topic_config,
        settings=sending.state.settings_version,
        queues=max(topic_config.write_queue_nums, topic_config.read_queue_nums),
        version=call.command.version,
        sys_flag=request.sys_flag | multi_tag,
        is_batch=is_batch,
        special=special,
        is_plain=not is_batch and REROUTING.isdisjoint(special) and not is_retry_topic(request.topic),
        deciding=deciding,
        is_timed=deciding is not None and not _ASKS.isdisjoint(deciding),
        changes=sending.additions,
        routes={},
    )


def _deciding(sending: Sending, special: frozenset[str]) -> tuple[str, ...] | None:
    """The properties, of the special ones, whose values decide where a message is stored, alone or with the clock. A
    message with a time and another of these may be rerouted twice."""
    rerouting = special & REROUTING
    if sending.is_5 and rerouting and rerouting <= _ASKS:
        return tuple(name for name in TIMING if name in special)
    if len(rerouting) > 1 or not rerouting <= {names.TRAN_MSG, names.DELAY}:
        return None
    if rerouting and not sending.is_5:
        rerouting |= special & {names.WAIT}  # it is put again
    return tuple(sorted(rerouting))


def request_of(command: Command) -> AnySend:
    """The request of a send. Raises FieldError."""
    return from_fields(REQUESTS[command.code], command.fields)
