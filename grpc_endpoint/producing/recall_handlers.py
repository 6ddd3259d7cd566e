"""RecallMessage: a producer takes a timed message back before it is due. Mirrors `RecallMessageActivity`."""

from pocketmq.broker.delayed.timer_handlers import recall_message as recall_stored_message
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.recall_handle import decode_recall_handle
from pocketmq.protocol.requests.send import RecallMessage, RecallMessageReply
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..calls.broker_call import BrokerCall
from ..calls.handler import PROXY, RpcRefused
from ..calls.rpc_call import RpcCall
from ..conversion.names import checked_topic
from ..messages import OK, Code, RecallMessageRequest, RecallMessageResponse
from .producing import Producing
from .sent_message import check_type


def recall_message(
    producing: Producing, request: RecallMessageRequest, call: RpcCall
) -> RecallMessageResponse:
    """The reply names the message. The broker recalls with `recallMessageEnable` only."""
    producing.clients.check(call, request)
    topic = checked_topic(request.topic, producing.topics)
    topic_config = producing.topics.find(topic)
    check_type(None if topic_config is None else topic_config.message_type, "DELAY", producing.config)
    try:
        decode_recall_handle(request.recall_handle)
    except BodyError as error:
        raise _failed(str(error)) from None
    recall = RecallMessage(producer_group=topic, topic=topic, recall_handle=request.recall_handle)
    peer = producing.clients.peer_with_address_of(call)
    broker_call = BrokerCall(peer, recall.code, language=peer.language)
    answer = recall_stored_message(producing.delayed, recall, broker_call)
    if answer.code != ResponseCode.SUCCESS or not isinstance(answer.reply, RecallMessageReply):
        raise _failed(answer.remark or "")
    return RecallMessageResponse(status=OK, message_id=answer.reply.msg_id)


def _failed(text: str) -> RpcRefused:
    return RpcRefused(Code.INTERNAL_SERVER_ERROR, PROXY + text)
