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
from pocketmq.core.sends import SPECIAL
from pocketmq.protocol.bodies.topic_config import MULTI_TAG, TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.send import AnySend, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import from_fields

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
    (
        names.TRAN_MSG,
        names.DELAY,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELAY_MS,
        names.TIMER_DELIVER_MS,
        names.TIMER_OUT_MS,
        names.PRIORITY,
        names.INNER_NUM,
    )
)
"""Properties that may store a message elsewhere or refuse it, by their values."""
MAX_DECISIONS: Final = 1024
"""A kind has at most 4 KiB, its request as many, and its heads 12 KiB: 20 MiB, if peers want that."""


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
    changes: Changes
    """What the stored text has beside the sent one; without the unique id that the broker makes if there is none."""
    is_oneway: bool = False
    reply: ReplyForm | None = None
    """Made by the first that is answered."""
    heads: dict[bytes, Head] = {}
    """By born host."""

    def is_current(self, sending: Sending) -> bool:
        """Whether it holds for one send more."""
        return (
            self.settings is sending.state.settings_version
            and sending.topics.find(self.request.topic) is self.topic_config
            and sending.waiting_sends < sending.config.send_thread_pool_queue_capacity
        )


class Decisions(dict[Hashable, Decision]):
    """Those of a port, by kind; all are forgotten when there are too many."""

    def current(self, kind: Hashable, sending: Sending) -> Decision | None:
        """What holds for one more send of this kind; `None` if that has to be decided."""
        decision = self.get(kind)
        return decision if decision is not None and decision.is_current(sending) else None

    def keep(self, kind: Hashable, decision: Decision) -> None:
        if len(self) >= MAX_DECISIONS:
            self.clear()
        self[kind] = decision


def decide(sending: Sending, request: AnySend, call: Call, properties: Iterable[str]) -> Decision:
    """The decision about a request with properties of these names, of which only the special ones matter.

    Creates the topic if the broker allows that. Raises `Refusal`.
    """
    topic_config = check_send(sending, request, call)
    special = SPECIAL_NAMES.intersection(properties)
    is_batch = bool(request.batch) or type(request) is SendBatchMessage
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
        is_plain=not is_batch
        and REROUTING.isdisjoint(special)
        and not is_retry_topic(request.topic)
        and not request.sys_flag & flags.INNER_BATCH,
        changes=sending.added,
        heads={},
    )


def request_of(command: Command) -> AnySend:
    """The request of a send. Raises FieldError."""
    return from_fields(REQUESTS[command.code], command.fields)
