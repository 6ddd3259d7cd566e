"""One ReceiveMessage that passed its checks: a pop, maybe a wait, and the messages on the stream.

What the pop found is looked at once more: a message whose tag only has the same hash as a wanted one is acknowledged
and dropped; one that was delivered often enough becomes a dead letter. The rest is sent. A client that cancels while
it waits takes no message with it; messages that could not be sent are hidden for one second only, and that delivery
does not count.

Mirrors `ReceiveMessageActivity`, `ReceiveMessageResponseStreamWriter`, `PopMessageResultFilterImpl` and
`MQClientAPIImpl.processPopResponse`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
from pocketmq.broker.errors import Refusal
from pocketmq.broker.network.dispatch import HELD, Answer
from pocketmq.broker.pop.pop_handlers import pop_message
from pocketmq.broker.pop.pop_reading import PopAnswer
from pocketmq.core.properties import read_properties
from pocketmq.protocol.bodies.client import SubscriptionData, is_tag_type
from pocketmq.protocol.message.pop_receipt import NO_RETRY, Receipt, retry_flag
from pocketmq.protocol.message.properties import TAGS
from pocketmq.protocol.message.record import Record, decode_records
from pocketmq.protocol.requests.pop import PopMessage, PopMessageReply
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..calls.broker_call import BrokerCall, HandlerAnswer
from ..calls.handler import PROXY
from ..calls.rpc_call import RpcCall
from ..conversion.received_message import message_id_of, set_message
from ..messages import OK, Code, ReceiveMessageResponse, Status, timestamp_of
from .consuming import Consuming
from .delivery import Delivery
from .receipt_handle import ReceiptHandle

FILTERED: Final = "filtered"
GIVEN_UP: Final = "givenUp"
"""Notes for watchers: the handles of messages that were consumed without a delivery."""
HANDLES_END: Final = "\n"
"""Between two of them."""
UNSENT_MS: Final = 1000
"""How long a message stays hidden that was popped for a client which has gone."""
_POLLING_FULL: Final = Status(code=Code.TOO_MANY_REQUESTS, message="polling full")
_NO_NEW_MESSAGE: Final = Status(code=Code.MESSAGE_NOT_FOUND, message="no new message")
_NO_MATCH: Final = Status(code=Code.MESSAGE_NOT_FOUND, message="no match message")
_WITHOUT_MESSAGES: Final[dict[int, Status]] = {
    ResponseCode.POLLING_FULL: _POLLING_FULL,
    ResponseCode.POLLING_TIMEOUT: _NO_NEW_MESSAGE,
    ResponseCode.PULL_NOT_FOUND: _NO_NEW_MESSAGE,
}

_OK_REPLY: Final = ReceiveMessageResponse(status=OK).SerializeToString()


class PoppedRecord(NamedTuple):
    """One delivered record."""

    record: Record
    handle: ReceiptHandle
    handle_text: str
    """`str(handle)`, made in fewer steps."""
    reconsume_times: int
    """How often the message was delivered before. In order: the smallest number of all messages of its queue, as in
    the official proxy."""


class _OutgoingMessage(NamedTuple):
    """A message that is sent to the client: its bytes, so that one message's memory serves the next."""

    reply: bytes
    message_id: str
    handle: ReceiptHandle
    reconsume_times: int


def end_stream(call: RpcCall, status: Status, now_ms: int) -> None:
    """Answer without messages."""
    call.send(ReceiveMessageResponse(status=status))
    call.answer(ReceiveMessageResponse(delivery_timestamp=timestamp_of(now_ms)))


class Receiving(msgspec.Struct):
    """`begin` pops; the answer is sent at once or after a wait."""

    _consuming: Consuming
    _call: RpcCall
    _pop: PopMessage
    _subscription: SubscriptionData
    _max_attempts: int | None
    _is_renewed: bool

    def begin(self) -> None:
        """Pop. A receive that waits is cancelled with its call."""
        pop_call = BrokerCall.of_rpc(self._call, self._pop.code, self._popped)
        try:
            answer = pop_message(self._consuming.broker.popping, self._pop, pop_call)
        except Refusal as refusal:
            answer = Answer(code=refusal.code, remark=refusal.remark)
        if isinstance(answer, Answer):
            self._popped(answer)
        else:
            assert answer is HELD
            self._call.when_cancelled(lambda: self._cancelled(pop_call))

    def _cancelled(self, pop_call: BrokerCall) -> None:
        pop_call.connection.close()
        self._consuming.broker.popping.waiters.cancel(pop_call)

    def _popped(self, answer: HandlerAnswer) -> None:
        assert isinstance(answer, Answer)
        if isinstance(answer, PopAnswer) and answer.code == ResponseCode.SUCCESS:
            self._deliver(list(popped_records(answer, self._consuming.broker.config.broker_name)))
            return
        refused = Status(code=Code.INTERNAL_SERVER_ERROR, message=f"{PROXY}{answer.remark}")
        self._end(_WITHOUT_MESSAGES.get(answer.code, refused))

    def _deliver(self, records: list[PoppedRecord]) -> None:
        consuming, call = self._consuming, self._call
        if call.cancelled:
            self._give_back(self._delivered(popped.handle) for popped in records)
            return
        if self._is_renewed and not consuming.is_member(call.client_id, self._pop.consumer_group):
            self._give_back(self._delivered(popped.handle) for popped in records)
            text = f"The client [{call.client_id}] is disconnected."
            self._end(Status(code=Code.MESSAGE_NOT_FOUND, message=text))
            return
        outgoing = list(self._outgoing(records))
        if not outgoing:
            self._end(_NO_MATCH)
            return
        if self._is_renewed:
            delivered = [(*self._named(one), one.reconsume_times) for one in outgoing]
            consuming.renewal.add(call.client_id, delivered)
        call.when_undelivered(lambda: self._undelivered(outgoing))
        end = ReceiveMessageResponse(delivery_timestamp=timestamp_of(consuming.broker.clock.now_ms()))
        messages = [one.reply for one in outgoing]
        call.answer_stream([_OK_REPLY, *messages, end.SerializeToString()])

    def _undelivered(self, outgoing: list[_OutgoingMessage]) -> None:
        """The client went away before it had read everything. It drops what it had read, too."""
        take, client_id = self._consuming.renewal.take, self._call.client_id
        self._give_back(take(client_id, *self._named(one)) for one in outgoing)

    def _outgoing(self, records: list[PoppedRecord]) -> Iterator[_OutgoingMessage]:
        """The messages for the client; the others are dealt with."""
        topic, limit = self._pop.topic, self._max_attempts
        tags = self._subscription.tags_set if is_tag_type(self._subscription.expression_type) else None
        now_ms = self._consuming.broker.clock.now_ms()
        for popped in records:
            record, handle, handle_text, times = popped
            properties = read_properties(record.properties)
            if tags and properties.get(TAGS) not in tags:
                if self._delivered(handle).acknowledge():
                    self._note(FILTERED, handle_text)
                continue
            message_id = message_id_of(record, properties)
            if limit is not None and times >= limit:
                if self._delivered(handle).give_up(message_id):
                    self._note(GIVEN_UP, handle_text)
                continue
            reply = ReceiveMessageResponse()
            set_message(
                reply.message,
                record,
                topic,
                now_ms,
                properties,
                message_id=message_id,
                receipt_handle=handle_text,
                reconsume_times=times,
            )
            yield _OutgoingMessage(reply.SerializeToString(), message_id, handle, times)

    def _note(self, name: str, handle: str) -> None:
        """Watchers see what the client does not."""
        call = self._call
        call.notes = notes = call.notes or {}
        notes[name] = notes[name] + HANDLES_END + handle if name in notes else handle

    def _named(self, one: _OutgoingMessage) -> tuple[str, Delivery]:
        return one.message_id, self._delivered(one.handle)

    def _delivered(self, handle: ReceiptHandle) -> Delivery:
        return Delivery(self._consuming.broker, self._pop.consumer_group, self._pop.topic, handle)

    def _give_back(self, messages: Iterator[Delivery]) -> None:
        for delivered in messages:
            delivered.hide(UNSENT_MS, is_strict=False, is_suspended=True)

    def _end(self, status: Status) -> None:
        end_stream(self._call, status, self._consuming.broker.clock.now_ms())


# -- the answer of a pop


def popped_records(answer: PopAnswer, broker_name: str) -> Iterator[PoppedRecord]:
    """The records of an answer with code 0, in the order in which the queues were read."""
    reply, body = answer.reply, answer.body
    if not isinstance(reply, PopMessageReply) or body is None:
        return
    parts = [body] if isinstance(body, bytes | memoryview) else body
    records = (record for part in parts for record in decode_records(part))
    pop_time_ms, invisible_ms, revive_queue_id = reply.pop_time, reply.invisible_time, reply.revive_qid
    for topic, queue_id, start_offset, offsets, times in answer.queues:
        place = retry_flag(topic), broker_name, queue_id
        counted = times if place[0] == NO_RETRY else 0
        head = ""
        for offset in offsets:
            record = next(records)
            receipt = Receipt(start_offset, pop_time_ms, invisible_ms, revive_queue_id, *place, offset)
            head = head or receipt.head
            position = record.position
            yield PoppedRecord(
                record,
                ReceiptHandle(receipt, position),
                f"{head}{offset} {position}",
                counted or record.reconsume_times,
            )
