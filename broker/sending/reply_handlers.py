"""Replies to requests: a client sends one with 324 or 325, the broker pushes it to the asking client with 326.

    asker  --request-->  topic  -->  replier  --324/325-->  broker  --326-->  asker, over its own connection

The property REPLY_TO_CLIENT names the asking client, which must be a producer on this broker. With
storeReplyMessageEnable the reply is also stored in `<cluster>_REPLY_TOPIC`, whether or not the push succeeded. The
answer says whether the push succeeded, and where the reply is stored. Mirrors `ReplyMessageProcessor`.
"""

import logging
from typing import Final

from pocketmq.core.properties import BUCKETS, Changes, encode_stored
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import encode_message_id, unpack_host
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.requests.send import AnySend, SendReplyMessage, SendReplyMessageV2
from pocketmq.protocol.requests.to_client import PushReplyMessageToClient
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import AppendResult, NewMessage, PutStatus

from ..delayed.delayed_sends import delay_if_asked, time_if_asked
from ..errors import PeerError, Refusal
from ..network.dispatch import Answer, Call, handles
from ..storing.messages import changes_of
from .send_checks import check_properties, check_send, queue_of
from .sending import Sending

_log = logging.getLogger("pocketmq.sending")

PUSH_TIMEOUT_SECONDS: Final = 10.0


@handles(SendReplyMessage, SendReplyMessageV2)
async def send_reply_message(sending: Sending, request: AnySend, call: Call) -> Answer:
    """Push a reply to the asking client, and store it; SUCCESS if the client accepted the push."""
    config = sending.config
    answer = Answer(
        fields={"MSG_REGION": config.region_id, "TRACE_ON": "true" if config.trace_on else "false"}
    )
    fields = answer.fields or {}
    if call.command.body is None and sending.is_5:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "NullPointerException: a reply without a body")
    try:
        check_properties(sending, request.properties or "")
        topic_config = check_send(sending, request, call)
        queue_id = queue_of(sending, request.queue_id, topic_config, call.connection.peer)
    except Refusal as error:
        answer.code, answer.remark = error.code, error.remark
        return answer
    properties = decode_properties(request.properties or "")
    changes = None
    if sending.is_5:
        properties |= fields
        changes = changes_of(fields)
    failure = await _push(sending, request, call, properties)
    if failure is not None:
        answer.code, answer.remark = ResponseCode.SYSTEM_ERROR, failure
    else:
        fields |= {"msgId": "0", "queueId": str(queue_id), "queueOffset": "0"}
    if config.store_reply_message_enable:
        result = _store(sending, request, call, queue_id, changes, properties.get(names.PUSH_REPLY_TIME))
        if result is not None:
            fields["msgId"] = encode_message_id(sending.store_host, result.position)
            fields |= {"queueId": str(queue_id), "queueOffset": str(result.queue_offset)}
    return answer


async def _push(sending: Sending, request: AnySend, call: Call, properties: dict[str, str]) -> str | None:
    """Send 326 to the asker. `None` if it accepts the reply, else the remark. `properties` get the time of the push."""
    asker = properties.get(names.REPLY_TO_CLIENT)
    if asker is None:
        return "reply message properties[REPLY_TO_CLIENT] is null"
    connection = sending.producers.find_connection(asker)
    if connection is None:
        return f"push reply message fail, channel of <{asker}> not found."
    now_ms = sending.clock.now_ms()
    properties[names.PUSH_REPLY_TIME] = str(now_ms)
    host, port = unpack_host(sending.store_host)
    push = PushReplyMessageToClient(
        producer_group=request.producer_group,
        topic=request.topic,
        default_topic=request.default_topic,
        default_topic_queue_nums=request.default_topic_queue_nums,
        queue_id=request.queue_id,
        sys_flag=request.sys_flag,
        born_timestamp=request.born_timestamp,
        flag=request.flag,
        properties=encode_stored(properties, BUCKETS[sending.is_5], sending.is_5).decode(),
        reconsume_times=request.reconsume_times,
        unit_mode=request.unit_mode,
        born_host=call.connection.peer,
        store_host=f"{host}:{port}",
        store_timestamp=now_ms,
    )
    try:
        response = await connection.exchange(push, call.body, timeout_seconds=PUSH_TIMEOUT_SECONDS)
    except PeerError as error:
        _log.warning("cannot push a reply to %s: %s", asker, error)
        return f"push reply message to {asker}fail."
    if response.code != ResponseCode.SUCCESS:
        _log.warning("%s refused a reply: %d %s", asker, response.code, response.remark)
        return f"push reply message to {asker}fail."
    return None


def _store(
    sending: Sending,
    request: AnySend,
    call: Call,
    queue_id: int,
    changes: Changes | None,
    push_time: str | None,
) -> AppendResult | None:
    """Store the reply, without its sysFlag, as in the official broker. `None` if the store refuses it."""
    message = NewMessage(
        topic=request.topic,
        queue_id=queue_id,
        body=call.body,
        properties=(request.properties or "").encode("utf-8", "replace"),
        changes=changes,
        flag=request.flag,
        born_timestamp=request.born_timestamp,
        born_host=call.connection.packed_host,
        store_host=sending.store_host,
        reconsume_times=request.reconsume_times or 0,
        further_changes=() if push_time is None else (names.PUSH_REPLY_TIME, push_time),
    )
    try:
        message = time_if_asked(sending.delayed, delay_if_asked(sending.delayed, message))
    except Refusal as error:
        _log.warning("cannot store a reply: %s", error.remark)
        return None
    result = sending.store.append(message)
    if result.status is not PutStatus.PUT_OK:
        _log.warning("cannot store a reply: %s", result.status.name)
        return None
    sending.statistics.count_put(message.topic, 1, result.size)
    return result
