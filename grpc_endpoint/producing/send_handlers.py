"""SendMessage: stores what producers send, with the broker's own handler.

Several messages in one request are stored one by one, and each has an entry in the reply. With grpcStrict they are
stored as one batch with one entry, as the official proxy does it. Mirrors `SendMessageActivity` and
`ProducerProcessor`.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Final, NamedTuple

from pocketmq.broker.errors import Refusal
from pocketmq.broker.sending.decision import SPECIAL_NAMES, Decision, decide
from pocketmq.broker.sending.durable_answers import call_when_answerable, has_to_wait
from pocketmq.broker.sending.send_checks import check_properties
from pocketmq.broker.sending.send_handlers import store_send
from pocketmq.core.properties import read_properties
from pocketmq.core.sends import send_of
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.properties import encode_properties, encode_properties_text
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, is_dlq_topic, is_retry_topic
from pocketmq.protocol.requests.send import SendMessage
from pocketmq.store import PutStatus

from ..calls.broker_call import BrokerCall
from ..calls.handler import ANSWERS_LATER, PROXY, Deferred, RpcRefused
from ..calls.rpc_call import RpcCall
from ..clients.peer import GrpcPeer
from ..conversion.message_types import type_of
from ..conversion.names import checked_topic
from ..messages import (
    OK,
    Code,
    Message,
    SendMessageRequest,
    SendMessageResponse,
    SendResultEntry,
    Status,
    ms_of,
)
from .producing import Producing
from .routes import topic_not_found
from .sent_message import check_type, checked_properties, chosen_queue, stored_flag

_QUEUES: Final = 4
_NOT_DURABLE: Final = {
    PutStatus.FLUSH_DISK_TIMEOUT: Code.MASTER_PERSISTENCE_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: Code.SLAVE_PERSISTENCE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: Code.HA_NOT_AVAILABLE,
}
_STORED: Final = SendMessageResponse(status=OK, entries=[SendResultEntry(status=OK)])
_Reply = SendMessageResponse
_OnReply = Callable[[SendMessageResponse], None]


def send_message(producing: Producing, request: SendMessageRequest, call: RpcCall) -> Deferred:
    """Store the messages; the reply names their offsets."""
    messages = request.messages[:]
    clients = producing.clients
    clients.check(call, request)
    if not messages:
        raise RpcRefused(Code.MESSAGE_CORRUPTED, "no message to send")
    resource = messages[0].topic
    topic = checked_topic(resource, producing.topics)
    config, wall_ms, levels = producing.config, producing.clock.wall_ms(), producing.delays.levels
    max_message_size = producing.broker_config.store.max_message_size
    peer = clients.peer_with_address_of(call)
    texts: list[dict[str, str]] = []
    for message in messages:
        if texts and message.topic != resource:
            raise RpcRefused(Code.MESSAGE_CORRUPTED, "topic in message is not same")
        texts.append(checked_properties(message, topic, peer.peer, config, max_message_size, wall_ms, levels))
    queues = _queues_of(producing, topic, texts[:1] if config.grpc_strict else texts)
    if len(messages) == 1 or config.grpc_strict:
        if len(messages) == 1:
            queue_id = chosen_queue(texts[0], queues, producing.random)
            given = _one(topic, messages[0], texts[0], queue_id)
        else:
            given = _batch(producing, topic, messages, texts, producing.random.randrange(queues))
        _store(producing, peer, given, call.answer)
        return ANSWERS_LATER
    replies: dict[int, _Reply] = {}

    def add(number: int, reply: _Reply) -> None:
        """Answer with the last one, which may have to wait for the disk or for slaves."""
        replies[number] = reply
        if len(replies) == len(messages):
            call.answer(_joined([replies[one] for one in sorted(replies)]))

    for number, (message, properties) in enumerate(zip(messages, texts, strict=True)):
        given = _one(topic, message, properties, chosen_queue(properties, queues, producing.random))
        _store(producing, peer, given, partial(add, number))
    return ANSWERS_LATER


def _queues_of(producing: Producing, topic: str, texts: Sequence[Mapping[str, str]]) -> int:
    """How many queues the topic has, which is made if clients may make topics. Raises `RpcRefused` for a message of
    another type than the topic's, and for a topic that is not writable."""
    topic_config = producing.routes.own_topic(topic)
    if topic_config is None and not producing.config.grpc_strict:
        raise topic_not_found(topic)
    if not is_retry_topic(topic) and not is_dlq_topic(topic):
        message_type = None if topic_config is None else topic_config.message_type
        for properties in texts:
            check_type(message_type, type_of(properties), producing.config)
    if (
        topic_config is None
        or not flags.is_writeable(topic_config.perm)
        or topic_config.write_queue_nums <= 0
    ):
        raise RpcRefused(Code.FORBIDDEN, PROXY + "no writable queue")
    return topic_config.write_queue_nums


def _joined(replies: Sequence[_Reply]) -> _Reply:
    """One entry for each message."""
    codes = {reply.status.code for reply in replies}
    code = Code(codes.pop() if len(codes) == 1 else Code.MULTIPLE_RESULTS)
    entries = [
        reply.entries[0] if reply.entries else SendResultEntry(status=reply.status) for reply in replies
    ]
    return SendMessageResponse(status=Status(code=code, message=code.name), entries=entries)


class _ToStore(NamedTuple):
    """One message or batch."""

    topic: str
    sys_flag: int
    reconsume_times: int
    is_batch: bool
    queue_id: int
    born_ms: int
    properties: dict[str, str]
    body: bytes
    message_id: str
    """Of the reply."""


def _one(topic: str, message: Message, properties: dict[str, str], queue_id: int) -> _ToStore:
    return _ToStore(
        topic,
        stored_flag(message, properties),
        message.system_properties.delivery_attempt if topic[0] == "%" and is_retry_topic(topic) else 0,
        False,
        queue_id,
        ms_of(message.system_properties.born_timestamp),
        properties,
        message.body,
        properties[names.UNIQ_KEY],
    )


def _batch(
    producing: Producing, topic: str, messages: Sequence[Message], texts: list[dict[str, str]], queue_id: int
) -> _ToStore:
    """All messages as one, with an id of its own for the reply and the transaction id of the first message. The
    elements are stored as sent, and the official proxy sends them from a Java map."""
    first = _one(topic, messages[0], texts[0], queue_id)
    elements = [
        BatchElement(0, message.body, encode_properties({name: own[name] for name in hash_map_order(own)}))
        for message, own in zip(messages, texts, strict=True)
    ]
    return first._replace(
        reconsume_times=0,
        is_batch=True,
        properties={names.UNIQ_KEY: first.message_id},
        body=encode_batch(elements),
        message_id=producing.unique_ids.next(),
    )


def _store(producing: Producing, peer: GrpcPeer, given: _ToStore, on_reply: _OnReply) -> None:
    """Store a message or a batch. `on_reply` gets the reply about it alone, now or when the message is durable."""
    sending, properties = producing.sending, given.properties
    text = encode_properties_text(properties).encode("utf-8", "replace")
    try:
        check_properties(sending, text)
        if text.count(b"\x01") != len(properties) or text.count(b"\x02") != len(properties):
            properties = read_properties(text)  # a value has one of these characters
        special = SPECIAL_NAMES.intersection(properties)
        kind = (*given[:4], special)
        send = send_of(given.queue_id, given.born_ms, text, properties.get(names.UNIQ_KEY), given.body)
        decision = producing.decisions.current(kind, sending)
        if decision is None:
            decision = _decide(producing, peer, given, special)
            producing.decisions.keep(kind, decision)
        prepared, placed = store_send(sending, decision, send, peer)
    except Refusal as refusal:
        status = Status(code=Code.INTERNAL_SERVER_ERROR, message=PROXY + (refusal.remark or ""))
        on_reply(SendMessageResponse(status=status))
        return
    reply, transaction_id = (
        SendMessageResponse(),
        (prepared.sends[0].unique_id or b"").decode("utf-8", "replace"),
    )
    reply.CopyFrom(_STORED)
    entry, offset = reply.entries[0], placed.runs[0][1]
    entry.message_id, entry.transaction_id, entry.offset = given.message_id, transaction_id, offset
    if prepared.handles is not None and prepared.handles[0] is not None:
        entry.recall_handle = prepared.handles[0]
    if given.sys_flag & flags.TRANSACTION_PREPARED and not given.is_batch:
        position = placed.positions[0]
        producing.clients.transactions.remember(given.topic, transaction_id, offset, position)
    end = placed.end if has_to_wait(sending, text) else None
    if end is None and sending.topics not in sending.tables.unsaved:
        on_reply(reply)
    else:
        call_when_answerable(sending, 1, end, lambda failure: on_reply(_of_stored(reply, failure)))


def _decide(producing: Producing, peer: GrpcPeer, given: _ToStore, special: Set[str]) -> Decision:
    """The decision about all messages of this kind. Raises `Refusal`."""
    request = SendMessage(
        producer_group=given.topic,
        topic=given.topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=_QUEUES,
        queue_id=given.queue_id,
        sys_flag=given.sys_flag,
        born_timestamp=given.born_ms,
        flag=0,
        reconsume_times=given.reconsume_times,
        batch=given.is_batch,
    )
    call = BrokerCall(peer, request.code, body=given.body, language=peer.language)
    return decide(producing.sending, request, call, special)


def _of_stored(reply: _Reply, failure: PutStatus | None) -> _Reply:
    """The reply about a message that is stored, but after a failure not as safely as broker.conf asks."""
    if failure is None:
        return reply
    code = _NOT_DURABLE[failure]
    entry = SendResultEntry(
        status=Status(code=code, message=f"send message failed, sendStatus={failure.name}")
    )
    return SendMessageResponse(status=Status(code=code, message=code.name), entries=[entry])
