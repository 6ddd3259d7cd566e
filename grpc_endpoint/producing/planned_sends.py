"""Sends whose messages have the shape of earlier ones: stored by a plan (`send_plans.py`), answered from bytes.

    messages of one request -> one shape, ordinary values -> store -> their offsets
                               no plan, or something is unusual -> the ordinary way (`send_handlers.py`)

What is stored and answered is the same either way. Owned by the event loop.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pocketmq.broker.broker import Broker
from pocketmq.store.log.record_template import LEAST_ID_BYTES, whole_text
from pocketmq.store.lookup.message_template import MessageTemplate
from pocketmq.store.put_values import AlikeMessage

from ..calls.rpc_call import RpcCall
from ..messages import Message, ms_of
from .send_plans import SendPlan, Shape, make_plan, shape_of

MOST_PLANS: Final = 4096
"""Shapes remembered; a full memory is emptied and fills again."""
MOST_BODY_BYTES: Final = 64 * 1024
"""Larger bodies go the ordinary way, which does not copy them once more."""
_MOST_MESSAGES: Final = 64
"""Of one request; further ones would make the pass of the connection long."""
_LONGEST_ID: Final = 64
_LEAST_BORN_MS: Final = 1_000_000_000_000
_LAST_BORN_MS: Final = 9_999_999_999_999
"""Times of 13 digits, from 2001 to 2286: the text behind them has the same place."""


class Planned(NamedTuple):
    """What was stored of the messages of one send."""

    offsets: Sequence[int] = ()
    """Queue offsets of the first messages, which are stored; the ordinary way stores the rest."""
    queues: Sequence[int] = ()
    """The queues drawn for all messages, if they were drawn. The ordinary way takes the same: a queue that nothing is
    in yet would be drawn too seldom otherwise."""


NOTHING: Final = Planned()


class PlannedSends:
    """The plans of one endpoint."""

    def __init__(self, broker: Broker) -> None:
        config, most_bytes = broker.config.endpoint, broker.config.store.max_message_size
        self._state = broker.state
        self._sending = broker.sending
        self._config = broker.config
        self._topics = broker.topics
        self._unsaved = broker.state.tables.unsaved
        self._random = broker.state.random
        self._most_messages = 1 if config.grpc_strict else _MOST_MESSAGES
        self._allows_empty = not config.enable_message_body_empty_check
        self._most_body_bytes = MOST_BODY_BYTES
        if most_bytes > 0:
            self._most_body_bytes = min(MOST_BODY_BYTES, most_bytes)
        self._most_text_bytes = config.max_user_property_size
        self._plans: dict[Shape, SendPlan | None] = {}
        """`None`: the shape was seen once."""

    def store(self, call: RpcCall, messages: Sequence[Message]) -> Planned:
        """Store as many messages of a send as a plan allows; the ordinary way decides about the others."""
        if not 0 < len(messages) <= self._most_messages:
            return NOTHING
        first = messages[0]
        shape = shape_of(call, first)
        plan = None if shape is None else self._plans.get(shape)
        if (
            plan is None
            or plan.form is None
            or self._topics.find(first.topic.name) is not plan.topic_config
            or self._state.settings_version is not plan.settings
            or self._topics in self._unsaved
            or self._sending.waiting_sends >= self._config.send_thread_pool_queue_capacity
        ):
            return NOTHING
        template: MessageTemplate | None = None
        alike: list[AlikeMessage] = []
        queue_id, queues = self._random.randrange, plan.queues
        for message in messages:
            if message is not first and (message.topic != first.topic or shape_of(call, message) != shape):
                return NOTHING
            text = self._text(plan, message)
            if text is None:
                return NOTHING
            values, whole, body = text
            before = sum([len(values[number]) for number in plan.before_id])
            of_text = plan.template(self._sending, whole, before)
            if of_text is None or (template is not None and of_text is not template):
                return NOTHING
            template = of_text
            alike.append((0, body, whole_text(whole), int(values[1]), 0))
        assert template is not None
        drawn = [queue_id(queues) for _ in alike]
        placed = [(number, *message[1:]) for number, message in zip(drawn, alike, strict=True)]
        stored = self._sending.store.append_alike(template, placed)
        if stored is None:
            return Planned(queues=drawn)
        offsets = stored.queue_offsets
        self._sending.statistics.messages_put(template.topic, len(offsets), stored.end - stored.positions[0])
        return Planned(offsets, drawn)

    def _text(self, plan: SendPlan, message: Message) -> tuple[list[bytes], bytes, bytes] | None:
        """The values of a message, its stored text and its body; `None` if a check of the ordinary way might refuse
        it."""
        system, body = message.system_properties, message.body
        message_id, born_ms, size = system.message_id, ms_of(system.born_timestamp), len(body)
        if (
            size > self._most_body_bytes
            or not (size or self._allows_empty)
            or not LEAST_ID_BYTES <= len(message_id) <= _LONGEST_ID
            or not (message_id.isascii() and message_id.isalnum())
            or not _LEAST_BORN_MS <= born_ms <= _LAST_BORN_MS
        ):
            return None
        values = [message_id.encode(), b"%d" % born_ms]
        if keys := system.keys[:]:
            joined = " ".join(keys)
            if not joined.isprintable() or not all(key.strip() for key in keys):
                return None
            values.append(joined.encode())
        for entry in message.user_properties[:]:
            value = entry.value
            if not value or not value.isprintable():
                return None
            values.append(value.encode())
        assert plan.form is not None
        text = plan.form.fill(values)
        return (values, text, body) if len(text) <= self._most_text_bytes else None

    def learn(self, call: RpcCall, messages: Sequence[Message]) -> None:
        """The ordinary way has stored these: make a plan if it had to do so before."""
        shape = shape_of(call, messages[0])
        if shape is None:
            return
        if shape in self._plans:
            self._plans[shape] = make_plan(self._sending, self._state.settings_version, call, messages[0])
        else:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            self._plans[shape] = None
