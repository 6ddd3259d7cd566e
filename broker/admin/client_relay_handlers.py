"""What a broker passes on to its clients: 307 and 309, the reset of offsets (222, 220), and their state (223, 221).

A tool asks the broker, the broker asks the consumers on the connections they opened. Mirrors `Broker2Client` and the
`callConsumer` part of `AdminBrokerProcessor`.

A reset works in one of two ways. 5.x: the broker keeps the new offset of each queue and hands it to the next pull
(`OffsetTable.assign_reset`); nobody has to be online. 4.9, and 5.x with useServerSideResetOffset off: the broker
pushes the offsets to every online member (220), who move and commit them.
"""

from typing import Any, Final

from pocketmq.protocol.bodies.client_state import GetConsumerStatusBody
from pocketmq.protocol.bodies.offsets import ResetOffsetBody
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.languages import V3_0_7_SNAPSHOT, V3_1_8_SNAPSHOT, version_name
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.requests.offset import InvokeBrokerToGetConsumerStatus, InvokeBrokerToResetOffset
from pocketmq.protocol.requests.to_client import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
    GetConsumerStatusFromClient,
    ResetConsumerClientOffset,
)
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Request, read_reply

from ..broker import Broker
from ..errors import PeerError, Refusal
from ..membership.client import Client
from ..network.dispatch import Answer, Call, handles
from ..state.refusals import UNSET_REMARK

CALL_TIMEOUT_SECONDS: Final = 10.0
STATUS_TIMEOUT_SECONDS: Final = 5.0
OFFSET_AT_END: Final = -1
"""A timestamp of 222 that means the end of the queue."""


# -- one question to one consumer


@handles(GetConsumerRunningInfo)
async def get_consumer_running_info(broker: Broker, request: GetConsumerRunningInfo) -> Answer:
    """A consumer's inner state, as it tells it."""
    return await _relay(broker, request.consumer_group, request.client_id, request, None)


@handles(ConsumeMessageDirectly)
async def consume_message_directly(broker: Broker, request: ConsumeMessageDirectly) -> Answer:
    """Let one consumer handle a stored message now, and say how that went."""
    record = _record_of(broker, request.msg_id)
    topic_sys_flag, group_sys_flag = request.topic_sys_flag, request.group_sys_flag
    if broker.config.is_5:
        topic_config = broker.topics.find(request.topic) if request.topic else None
        group_config = broker.groups.find_or_create(request.consumer_group)
        topic_sys_flag = topic_sys_flag if topic_config is None else topic_config.topic_sys_flag
        group_sys_flag = group_sys_flag if group_config is None else group_config.group_sys_flag
    passed_on = ConsumeMessageDirectly(
        consumer_group=request.consumer_group,
        client_id=request.client_id,
        msg_id=request.msg_id,
        broker_name=broker.config.broker_name,
        topic=request.topic,
        topic_sys_flag=topic_sys_flag,
        group_sys_flag=group_sys_flag,
    )
    return await _relay(broker, request.consumer_group, request.client_id, passed_on, record)


def _record_of(broker: Broker, message_id: str | None) -> bytes:
    """The stored record an offset message id names; the official broker stumbles over a missing one (code 1)."""
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
    """Send a request to one member of a group and answer with whatever it answers (callConsumer)."""
    client = broker.membership.consumers.find(group, client_id) if client_id is not None else None
    if client is None:
        named = "null" if client_id is None else client_id  # Java's word
        raise Refusal(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{named}> not online")
    if client.version < V3_1_8_SNAPSHOT:
        remark = (
            f"The Consumer <{client_id}> Version <{version_name(client.version)}> too low to finish, "
            "please upgrade it to V3_1_8_SNAPSHOT"
        )
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    try:
        answer = await client.connection.exchange(request, body, timeout_seconds=CALL_TIMEOUT_SECONDS)
    except PeerError as error:
        raise _no_answer(broker, group, client, error) from error
    return Answer(code=answer.code, remark=answer.remark, fields=answer.fields, body=answer.body)


def _no_answer(broker: Broker, group: str, client: Client, error: PeerError) -> Refusal:
    package = "org.apache.rocketmq.remoting.exception"
    if client.connection.closed:
        remark = f"invoke consumer <{group}> <{client.client_id}> Exception: {error}"
        return Refusal(ResponseCode.SYSTEM_ERROR, remark)
    # The official text goes on with a line of a Java stack.
    slash = "" if not broker.config.is_5 else "/"
    return Refusal(
        ResponseCode.CONSUME_MSG_TIMEOUT,
        f"consumer <{group}> <{client.client_id}> Timeout: {package}.RemotingTimeoutException: wait response on "
        f"the channel <{slash}{client.connection.peer}> timeout, {CALL_TIMEOUT_SECONDS * 1000:.0f}(ms)",
    )


# -- the offsets of the members of a group


@handles(InvokeBrokerToGetConsumerStatus)
async def invoke_broker_to_get_consumer_status(
    broker: Broker, request: InvokeBrokerToGetConsumerStatus
) -> Answer:
    """The offsets each member holds in its queues. Members that do not answer are left out."""
    group = broker.membership.consumers.get(request.group)
    if group is None:
        remark = f"No Any Consumer online in the consumer group: [{request.group}]"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    question = GetConsumerStatusFromClient(topic=request.topic, group=request.group)
    wanted = (request.client_addr or "").strip()
    table: dict[str, dict[MessageQueue, int]] = {}
    for client in group.clients():
        _refuse_old_client(client)
        if wanted and client.client_id != wanted:
            continue
        offsets = await _status_of(client, question)
        if offsets is not None:
            table[client.client_id] = offsets
        if wanted:
            break
    return Answer(remark=UNSET_REMARK, body=GetConsumerStatusBody(consumer_table=table).encode())


async def _status_of(client: Client, question: GetConsumerStatusFromClient) -> dict[MessageQueue, int] | None:
    try:
        answer = await client.connection.exchange(question, timeout_seconds=STATUS_TIMEOUT_SECONDS)
        if answer.code != ResponseCode.SUCCESS or answer.body is None:
            return None
        return read_reply(question, answer.fields, answer.body).message_queue_table
    except (PeerError, BodyError):
        return None


def _refuse_old_client(client: Client) -> None:
    if client.version < V3_0_7_SNAPSHOT:
        remark = f"the client does not support this feature. version={version_name(client.version)}"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)


# -- resetting offsets


@handles(InvokeBrokerToResetOffset)
def invoke_broker_to_reset_offset(broker: Broker, request: InvokeBrokerToResetOffset, call: Call) -> Answer:
    """Let a group go on from a time, the end, or (5.x) an offset of one queue."""
    if broker.config.is_5 and broker.config.use_server_side_reset_offset:
        return _reset_here(broker, request)
    return _reset_at_clients(broker, request, is_cpp=call.command.language == "CPP")


def _reset_here(broker: Broker, request: InvokeBrokerToResetOffset) -> Answer:
    """The 5.x way (resetOffsetInner)."""
    topic, group = request.topic, request.group
    if broker.config.is_slave:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")
    topic_config = broker.topics.find(topic)
    if topic_config is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} does not exist")
    if group not in broker.groups:
        raise Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist")
    if request.queue_id >= 0:
        offsets = {request.queue_id: _target_of_queue(broker, request)}
    else:
        offsets = {
            queue_id: _offset_at(broker, topic, queue_id, request.timestamp)
            for queue_id in range(topic_config.read_queue_nums)
        }
    if not offsets:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
    for queue_id, offset in offsets.items():
        broker.offsets.assign_reset(topic, group, queue_id, offset)
    table = {
        MessageQueue(topic, broker.config.broker_name, queue_id): offset
        for queue_id, offset in offsets.items()
    }
    return Answer(body=ResetOffsetBody(offset_table=table).encode())


def _target_of_queue(broker: Broker, request: InvokeBrokerToResetOffset) -> int:
    """The offset for the one queue a request names. One past the end is accepted, as in the official broker."""
    topic, queue_id, offset = request.topic, request.queue_id, request.offset
    if offset is None or offset == OFFSET_AT_END:
        return _offset_at(broker, topic, queue_id, request.timestamp)
    low, high = broker.store.min_offset(topic, queue_id), broker.store.max_offset(topic, queue_id)
    if not low <= offset <= high + 1:
        remark = f"Target offset {offset} not in consume queue range [{low}-{high}]"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    return offset


def _offset_at(broker: Broker, topic: str, queue_id: int, timestamp_ms: int) -> int:
    if timestamp_ms < 0:
        return broker.store.max_offset(topic, queue_id)
    return broker.store.search_offset(topic, queue_id, timestamp_ms, "LOWER")


def _reset_at_clients(broker: Broker, request: InvokeBrokerToResetOffset, *, is_cpp: bool) -> Answer:
    """The 4.9 way (Broker2Client.resetOffset)."""
    topic, group = request.topic, request.group
    topic_config = broker.topics.find(topic)
    if topic_config is None:
        code = ResponseCode.SYSTEM_ERROR if not broker.config.is_5 else ResponseCode.TOPIC_NOT_EXIST
        remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
        raise Refusal(code, remark)
    body = ResetOffsetBody(offset_table=_pushed_offsets(broker, request, topic_config))
    members = broker.membership.consumers.get(group)
    if members is None:
        raise Refusal(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"Consumer not online, so can not reset offset, Group: {group} Topic: {topic} "
            f"Timestamp: {request.timestamp}",
        )
    # The official broker never passes isForce on; it has been applied here.
    push = ResetConsumerClientOffset(topic=topic, group=group, timestamp=request.timestamp)
    pushed_body = (body.for_c() if is_cpp else body).encode()
    for client in members.clients():
        _refuse_old_client(client)
        client.connection.notify(push, pushed_body)
    return Answer(remark=UNSET_REMARK, body=body.encode())


def _pushed_offsets(
    broker: Broker, request: InvokeBrokerToResetOffset, topic_config: TopicConfig
) -> dict[MessageQueue, int]:
    """The new offset of each write queue: without force never further than the group is."""
    table = {}
    for queue_id in range(topic_config.write_queue_nums):
        consumed = broker.offsets.query(request.topic, request.group, queue_id)
        if consumed == -1:
            remark = f"THe consumer group <{request.group}> not exist"  # the official spelling
            raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
        # Unlike the 5.x way, only -1 means the end here; other times before 1970 find the first message.
        if request.timestamp == OFFSET_AT_END:
            offset = broker.store.max_offset(request.topic, queue_id)
        else:
            offset = broker.store.search_offset(request.topic, queue_id, request.timestamp, "LOWER")
        offset = max(0, offset)
        queue = MessageQueue(request.topic, broker.config.broker_name, queue_id)
        table[queue] = offset if request.is_force or offset < consumed else consumed
    return table
