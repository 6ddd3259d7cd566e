"""SendMessage: stores what producers send, with the broker's own handler.

Several messages in one request are stored one by one, and each has an entry in the reply. With grpcStrict they are
stored as one batch with one entry, as the official proxy does it. Mirrors `SendMessageActivity` and
`ProducerProcessor`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pocketmq.broker.errors import Refusal
from pocketmq.broker.network.dispatch import Answer
from pocketmq.broker.network.dispatch import Held as BrokerHeld
from pocketmq.broker.sending.send_handlers import send_message as store_message
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.message.properties import encode_properties, encode_properties_text
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, is_dlq_topic, is_retry_topic
from pocketmq.protocol.requests.send import SendMessage

from ..calls.broker_call import BrokerCall, HandlerAnswer
from ..calls.refusals import PROXY, RpcRefused
from ..calls.registry import rpc
from ..calls.rpc_call import HELD, Held, RpcCall
from ..clients.peer import GrpcPeer
from ..forms.message_types import type_of
from ..forms.names import checked_topic
from ..forms.sent_message import delay_level, sent_properties, stored_flag
from ..messages import Code, Message, SendMessageRequest, SendMessageResponse, ms_of
from .producing import Producing
from .queue_choice import chosen_queue
from .routes import topic_not_found
from .send_checks import check_message, check_type
from .send_results import SendResult, refused, reply_of, result_of

_QUEUES: Final = 4
WhenStored = Callable[[SendResult], None]


@rpc(SendMessageRequest)
def send_message(
    producing: Producing, request: SendMessageRequest, call: RpcCall
) -> SendMessageResponse | Held:
    """Store the messages; the reply names their offsets."""
    messages = request.messages[:]
    producing.clients.check(call, request)
    clients = producing.clients
    if not messages:
        raise RpcRefused(Code.MESSAGE_CORRUPTED, "no message to send")
    resource = messages[0].topic
    topic = checked_topic(resource, producing.topics)
    config, wall_ms = producing.config, producing.clock.wall_ms()
    most_bytes = producing.broker_config.store.max_message_size
    for message in messages:
        check_message(message, resource, config, most_bytes, wall_ms)
    peer = clients.sender(call)
    texts = [
        sent_properties(message, topic, peer.peer, _delay_level(producing, message, wall_ms))
        for message in messages
    ]
    topic_config = _topic_of(producing, topic)
    is_batch = config.grpc_strict and len(messages) > 1
    if not is_retry_topic(topic) and not is_dlq_topic(topic):
        for properties in texts[:1] if config.grpc_strict else texts:
            if names.TRANSFER_FLAG not in properties:
                check_type(
                    None if topic_config is None else topic_config.message_type, type_of(properties), config
                )
    queues = 0
    if topic_config is not None and flags.is_writeable(topic_config.perm):
        queues = topic_config.write_queue_nums
    if queues <= 0:
        raise RpcRefused(Code.FORBIDDEN, PROXY + "no writable queue")
    if is_batch:
        return _send_batch(producing, peer, topic, messages, texts, queues, call)
    sending = _Sending(call, len(messages))
    for number, (message, properties) in enumerate(zip(messages, texts, strict=True)):
        queue_id = chosen_queue(message.system_properties, queues, producing.random)
        _send_one(producing, peer, topic, message, properties, queue_id, sending.when_stored(number))
    return sending.reply()


def _topic_of(producing: Producing, topic: str) -> TopicConfig | None:
    """The topic, which is made if clients may make topics."""
    topic_config = producing.routes.own_topic(topic)
    if topic_config is None and not producing.config.grpc_strict:
        raise topic_not_found(topic)
    return topic_config


def _delay_level(producing: Producing, message: Message, wall_ms: int) -> int | None:
    """With `useDelayLevel`: the level of a message with a delivery time."""
    system = message.system_properties
    if not system.HasField("delivery_timestamp") or not producing.config.use_delay_level:
        return None
    return delay_level(ms_of(system.delivery_timestamp) - wall_ms, producing.delays.levels)


class _Sending:
    """The results of one request: they arrive at once, or later if a message has to wait for the disk or for slaves."""

    def __init__(self, call: RpcCall, count: int) -> None:
        self._call = call
        self._results: list[SendResult | None] = [None] * count
        self._missing = count
        self._is_held = False

    def when_stored(self, number: int) -> WhenStored:
        def stored(result: SendResult) -> None:
            self._results[number] = result
            self._missing -= 1
            if self._is_held and not self._missing:
                self._call.answer(self._made())

        return stored

    def reply(self) -> SendMessageResponse | Held:
        """The reply, or HELD until the last result is there."""
        if self._missing:
            self._is_held = True
            return HELD
        return self._made()

    def _made(self) -> SendMessageResponse:
        return reply_of([result for result in self._results if result is not None])


def _send_one(
    producing: Producing,
    peer: GrpcPeer,
    topic: str,
    message: Message,
    properties: dict[str, str],
    queue_id: int,
    stored: WhenStored,
) -> None:
    """Store one message, and call back with its result."""
    message_id = message.system_properties.message_id
    is_half = names.TRAN_MSG in properties

    def answered(answer: HandlerAnswer) -> None:
        assert isinstance(answer, Answer)  # the send handler returns nothing else
        result = result_of(answer, message_id)
        if is_half and result.entry is not None:
            _remember(producing, topic, answer)
        stored(result)

    request = SendMessage(
        producer_group=topic,
        topic=topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=_QUEUES,
        queue_id=queue_id,
        sys_flag=stored_flag(message),
        born_timestamp=ms_of(message.system_properties.born_timestamp),
        flag=0,
        properties=encode_properties_text(properties),
        reconsume_times=_times(message) if is_retry_topic(topic) else 0,
    )
    try:
        call = BrokerCall(peer, request.code, answered, body=message.body, language=peer.language)
        answer = store_message(producing.sending, request, call)
    except Refusal as refusal:
        stored(refused(refusal.remark))
        return
    if not isinstance(answer, BrokerHeld):
        answered(answer)


def _times(message: Message) -> int:
    return message.system_properties.delivery_attempt


def _remember(producing: Producing, topic: str, answer: Answer) -> None:
    """Where the half message is: its client ends it by topic and transaction id."""
    fields = answer.fields or {}
    try:
        position = decode_message_id(fields["msgId"]).position
        transaction_id, queue_offset = fields["transactionId"], int(fields["queueOffset"])
    except (BodyError, KeyError):
        return  # an answer without a place: the check will find the message
    producing.clients.transactions.remember(topic, transaction_id, queue_offset, position)


def _as_java_orders(properties: dict[str, str]) -> dict[str, str]:
    """The elements of a batch are stored as sent, and the official proxy sends them from a Java map."""
    return {name: properties[name] for name in hash_map_order(properties)}


def _send_batch(
    producing: Producing,
    peer: GrpcPeer,
    topic: str,
    messages: Sequence[Message],
    texts: list[dict[str, str]],
    queues: int,
    call: RpcCall,
) -> SendMessageResponse | Held:
    """Store all as one batch: one entry, with an id of its own and the transaction id of the first message."""
    sending = _Sending(call, 1)
    stored = sending.when_stored(0)
    batch_id = producing.unique_ids.next()

    def answered(answer: HandlerAnswer) -> None:
        assert isinstance(answer, Answer)
        stored(result_of(answer, batch_id))

    shared = {names.UNIQ_KEY: messages[0].system_properties.message_id}
    request = SendMessage(
        producer_group=topic,
        topic=topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=_QUEUES,
        queue_id=producing.random.randrange(queues),
        sys_flag=stored_flag(messages[0]),
        born_timestamp=ms_of(messages[0].system_properties.born_timestamp),
        flag=0,
        properties=encode_properties_text(shared),
        reconsume_times=0,
        batch=True,
    )
    elements = [
        BatchElement(0, message.body, encode_properties(_as_java_orders(properties)))
        for message, properties in zip(messages, texts, strict=True)
    ]
    try:
        body = encode_batch(elements)
        broker_call = BrokerCall(peer, request.code, answered, body=body, language=peer.language)
        answer = store_message(producing.sending, request, broker_call)
    except Refusal as refusal:
        stored(refused(refusal.remark))
        return sending.reply()
    if not isinstance(answer, BrokerHeld):
        answered(answer)
    return sending.reply()
