"""PullMessage: the messages of one queue from an offset on. They stay where they are: nothing is acknowledged.

No published client asks, and the official proxy of one process does not know it. The meaning is that of the remoting
request 11 which the proxy of a cluster would send. The stream has a status, the messages, and the offset to go on from:

    OK                 the messages
    MESSAGE_NOT_FOUND  nothing new, or nothing that the filter lets through
    ILLEGAL_OFFSET     the offset is not in the queue; next_offset is
"""

import asyncio
from typing import Final

from pocketmq.broker.errors import Refusal
from pocketmq.broker.network.dispatch import Answer
from pocketmq.broker.pulling.pull_handlers import pull_message as pull_from_broker
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.record import decode_records
from pocketmq.protocol.requests.pull import PullMessage, PullMessageReply
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..calls.refusals import RpcRefused, code_of
from ..calls.registry import rpc
from ..calls.rpc_call import HELD, Encoded, Held, RpcCall
from ..forms.names import checked_group
from ..forms.stored_message import stored_message, stored_properties
from ..messages import OK, Code, PullMessageRequest, PullMessageResponse, Status
from ..wire.encoding import sized_field
from .consuming import Consuming
from .handler_call import HandlerAnswer, HandlerCall
from .offset_handlers import checked_queue, refuse_if_strict
from .receive_handlers import checked_subscription

POSITIONS: Final = "positions"
"""Note for watchers: `offset=position` of each message, with blanks between; position is that of its record."""
MOST_MESSAGES: Final = 32
"""In one pull; a batch size of 0, or a larger one, counts as this."""
_MESSAGE: Final = b"\x12"
"""The tag of the message in a response."""
_NO_NEW_MESSAGE: Final = Status(code=Code.MESSAGE_NOT_FOUND, message="no new message")
_STATUSES: Final[dict[int, Status]] = {
    ResponseCode.SUCCESS: OK,
    ResponseCode.PULL_NOT_FOUND: _NO_NEW_MESSAGE,
    ResponseCode.PULL_RETRY_IMMEDIATELY: Status(code=Code.MESSAGE_NOT_FOUND, message="no match message"),
    ResponseCode.PULL_OFFSET_MOVED: Status(code=Code.ILLEGAL_OFFSET, message="offset illegal"),
}


@rpc(PullMessageRequest)
def pull_message(consuming: Consuming, request: PullMessageRequest, call: RpcCall) -> Held:
    """Pull at once, or wait for the next message if the request has a long polling time."""
    consuming.clients.checked(call, request)
    refuse_if_strict(consuming, call)
    topic, queue_id = checked_queue(consuming, request.message_queue)
    group = checked_group(request.group)
    subscription = checked_subscription(topic, request.filter_expression)
    if request.batch_size < 0:
        raise RpcRefused(Code.BAD_REQUEST, f"the batch size must not be negative, got {request.batch_size}")
    polling_ms = _polling_ms(consuming, request, call)
    wanted = PullMessage(
        consumer_group=group,
        topic=topic,
        queue_id=queue_id,
        queue_offset=request.offset,
        max_msg_nums=min(request.batch_size or MOST_MESSAGES, MOST_MESSAGES),
        sys_flag=flags.PULL_SUBSCRIPTION | (flags.PULL_SUSPEND if polling_ms > 0 else 0),
        suspend_timeout_millis=polling_ms,
        subscription=subscription.sub_string,
        sub_version=0,
        expression_type=subscription.expression_type,
    )
    PullingStream(consuming, call, wanted).begin()
    return HELD


def _polling_ms(consuming: Consuming, request: PullMessageRequest, call: RpcCall) -> int:
    polling_ms = min(max(request.long_polling_timeout.ms, 0), consuming.settings.max_long_polling_ms)
    remaining_seconds = call.remaining_seconds
    return polling_ms if remaining_seconds is None else min(polling_ms, int(remaining_seconds * 1000))


class PullingStream:
    """One pull that passed its checks. `begin` reads; the answer is sent at once or after a wait."""

    __slots__ = ("_call", "_consuming", "_pull_call", "_timer", "_wanted")

    def __init__(self, consuming: Consuming, call: RpcCall, wanted: PullMessage) -> None:
        self._consuming = consuming
        self._call = call
        self._wanted = wanted
        self._timer: asyncio.TimerHandle | None = None
        self._pull_call = HandlerCall.of(call, wanted.code, self._pulled)

    def begin(self) -> None:
        try:
            answer = pull_from_broker(self._consuming.broker.pulling, self._wanted, self._pull_call)
        except Refusal as refusal:
            answer = Answer(code=refusal.code, remark=refusal.remark)
        if isinstance(answer, Answer):
            self._pulled(answer)
            return
        # The broker looks for waits that are over every five seconds only; a gRPC client gives up before.
        self._timer = self._call.loop.call_later(self._wanted.suspend_timeout_millis / 1000, self._over)
        self._call.when_cancelled(self._ended)

    def _ended(self) -> None:
        self._pull_call.connection.close()
        if self._timer is not None:
            self._timer.cancel()

    def _over(self) -> None:
        self._ended()
        self._end(_NO_NEW_MESSAGE, self._wanted.queue_offset)

    def _pulled(self, answer: HandlerAnswer) -> None:
        self._ended()
        assert isinstance(answer, Answer)
        reply = answer.reply
        if not isinstance(reply, PullMessageReply):
            self._call.answer(
                PullMessageResponse(
                    status=Status(code=code_of(answer.code), message=answer.remark or str(answer.code))
                )
            )
            return
        call, body = self._call, answer.body or ()
        parts = [body] if isinstance(body, bytes | memoryview) else body
        if answer.code == ResponseCode.SUCCESS:
            now_ms = self._consuming.broker.clock.now_ms()
            call.send(PullMessageResponse(status=OK))
            positions = []
            for part in parts:
                for record in decode_records(part):
                    message = stored_message(record, self._wanted.topic, now_ms, stored_properties(record))
                    positions.append(f"{record.queue_offset}={record.position}")
                    call.send(Encoded(PullMessageResponse, sized_field(_MESSAGE, message)))
            call.notes = {POSITIONS: " ".join(positions)}
            call.answer(PullMessageResponse(next_offset=reply.next_begin_offset))
            return
        self._end(_STATUSES[answer.code], reply.next_begin_offset)

    def _end(self, status: Status, next_offset: int) -> None:
        self._call.send(PullMessageResponse(status=status))
        self._call.answer(PullMessageResponse(next_offset=next_offset))
