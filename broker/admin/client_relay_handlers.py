"""Requests of a tool that the broker passes on to consumers: 307, 309, and 223 (221 to the consumers).

    tool  --307, 309, 223-->  broker  -->  consumer, on the connection that the consumer opened

Mirrors `Broker2Client` and the `callConsumer` part of `AdminBrokerProcessor`. Resets: `offset_admin_handlers.py`.
"""

from typing import Any, Final

import msgspec
from pocketmq.protocol.bodies.client_state import GetConsumerStatusBody
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.languages import V3_0_7_SNAPSHOT, V3_1_8_SNAPSHOT, version_name
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.requests.offset import InvokeBrokerToGetConsumerStatus
from pocketmq.protocol.requests.to_client import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
    GetConsumerStatusFromClient,
)
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Request, read_reply

from ..broker import Broker
from ..errors import PeerError, Refusal
from ..membership.consumer_groups import Client
from ..network.dispatch import Answer, handles
from ..state.part import UNSET_REMARK

CALL_TIMEOUT_SECONDS: Final = 10.0
STATUS_TIMEOUT_SECONDS: Final = 5.0


# -- one request to one consumer


@handles(GetConsumerRunningInfo)
async def get_consumer_running_info(broker: Broker, request: GetConsumerRunningInfo) -> Answer:
    """The state of a consumer, as the consumer reports it."""
    return await _relay(broker, request.consumer_group, request.client_id, request, None)


@handles(ConsumeMessageDirectly)
async def consume_message_directly(broker: Broker, request: ConsumeMessageDirectly) -> Answer:
    """Let one consumer consume a stored message now, and answer its result."""
    record = _record_of(broker, request.msg_id)
    topic_sys_flag, group_sys_flag = request.topic_sys_flag, request.group_sys_flag
    if broker.is_5:
        topic_config = broker.topics.find(request.topic) if request.topic else None
        group_config = broker.groups.find_or_create(request.consumer_group)
        topic_sys_flag = topic_sys_flag if topic_config is None else topic_config.topic_sys_flag
        group_sys_flag = group_sys_flag if group_config is None else group_config.group_sys_flag
    name = broker.config.broker_name
    forwarded = msgspec.structs.replace(
        request, broker_name=name, topic_sys_flag=topic_sys_flag, group_sys_flag=group_sys_flag
    )
    return await _relay(broker, request.consumer_group, request.client_id, forwarded, record)


def _record_of(broker: Broker, message_id: str | None) -> bytes:
    """The record that an offset message id names. A missing one is code 1, as in the official broker."""
    try:
        offset = decode_message_id(message_id or "").position
    except BodyError as error:
        raise Refusal(ResponseCode.SYSTEM_ERROR, str(error)) from error
    record = broker.store.read_record(offset)
    if record is None:
        remark = f"can not find message by the offset, {offset}"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    return bytes(record)


async def _relay(
    broker: Broker, group: str, client_id: str | None, request: Request[Any], body: RawBody | None
) -> Answer:
    """Send a request to one member of a group, and return its answer unchanged (callConsumer)."""
    client = broker.membership.consumers.find(group, client_id) if client_id is not None else None
    if client is None:
        shown_id = "null" if client_id is None else client_id  # as Java writes it
        raise Refusal(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{shown_id}> not online")
    if client.version < V3_1_8_SNAPSHOT:
        remark = (
            f"The Consumer <{client_id}> Version <{version_name(client.version)}> too low to finish, "
            "please upgrade it to V3_1_8_SNAPSHOT"
        )
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    try:
        answer = await client.connection.exchange(request, body, timeout_seconds=CALL_TIMEOUT_SECONDS)
    except PeerError as error:
        if client.connection.closed:
            remark = f"invoke consumer <{group}> <{client_id}> Exception: {error}"
            raise Refusal(ResponseCode.SYSTEM_ERROR, remark) from error
        # The official remark continues with a line of a Java stack.
        remark = (
            f"consumer <{group}> <{client_id}> Timeout: "
            "org.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait response on the channel "
            f"<{'/' if broker.is_5 else ''}{client.connection.peer}> timeout, {CALL_TIMEOUT_SECONDS * 1000:.0f}(ms)"
        )
        raise Refusal(ResponseCode.CONSUME_MSG_TIMEOUT, remark) from error
    return Answer(code=answer.code, remark=answer.remark, fields=answer.fields, body=answer.body)


# -- the offsets of the members of a group


@handles(InvokeBrokerToGetConsumerStatus)
async def invoke_broker_to_get_consumer_status(
    broker: Broker, request: InvokeBrokerToGetConsumerStatus
) -> Answer:
    """The offsets of each member in its queues, without members that do not answer."""
    group = broker.membership.consumers.get(request.group)
    if group is None:
        remark = f"No Any Consumer online in the consumer group: [{request.group}]"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    question = GetConsumerStatusFromClient(topic=request.topic, group=request.group)
    wanted = (request.client_addr or "").strip()
    table: dict[str, dict[MessageQueue, int]] = {}
    for client in group.clients():
        refuse_old_client(client)
        if wanted and client.client_id != wanted:
            continue
        try:
            answer = await client.connection.exchange(question, timeout_seconds=STATUS_TIMEOUT_SECONDS)
            if answer.code == ResponseCode.SUCCESS and answer.body is not None:
                reply = read_reply(question, answer.fields, answer.body)
                table[client.client_id] = reply.message_queue_table
        except (PeerError, BodyError):
            pass
        if wanted:
            break
    return Answer(remark=UNSET_REMARK, body=GetConsumerStatusBody(consumer_table=table).encode())


def refuse_old_client(client: Client) -> None:
    """Raises `Refusal` for a client too old to report or to reset its offsets."""
    if client.version < V3_0_7_SNAPSHOT:
        remark = f"the client does not support this feature. version={version_name(client.version)}"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
