"""The broker assigns queues to consumers: 400 QUERY_ASSIGNMENT; 401 and 402 set and list the modes pull and pop.

For clients with `clientRebalance=false`. The queues are those of the topic's route, on all brokers; the members are
those of the group at this broker. In pop mode every client gets queue -1 of each broker, which means any queue. With
popShareQueueNum it gets its own share and the shares of that many members after it. Mirrors `QueryAssignmentProcessor`.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from pocketmq.protocol.bodies.client import (
    MessageModel,
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.queue_allocation import (
    AVERAGELY,
    AVERAGELY_BY_CIRCLE,
    share_averagely,
    share_by_circle,
    sort_client_ids,
    sort_queues,
)
from pocketmq.protocol.message.topics import is_lmq, is_retry_topic
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.requests.pop import GetAllMessageRequestMode, QueryAssignment, SetMessageRequestMode
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import PeerError, Refusal
from ..network.dispatch import Answer, CallWithBody, handles
from ..time.slices import encode_json
from .popping import Popping

_log = logging.getLogger("pocketmq.pop")

PULL: Final = "PULL"
POP: Final = "POP"

Allocate = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]
"""One client's share of sorted queues among sorted client ids."""


@handles(QueryAssignment)
async def query_assignment(
    popping: Popping, request: QueryAssignment, call: CallWithBody[QueryAssignmentRequestBody]
) -> QueryAssignmentResponseBody:
    """The queues of one client and their mode; no assignments if topic, group or strategy is unknown."""
    body = call.read_body()
    if body.topic is None or body.consumer_group is None:
        raise BodyError("QueryAssignmentRequestBody: topic and consumerGroup must be set")
    mode = popping.request_modes.find(body.topic, body.consumer_group) or _default_mode(popping, body.topic)
    queues = await _queues_for(popping, body, mode)
    assignments = None
    if queues is not None:
        assignments = [MessageQueueAssignment(message_queue=queue, mode=mode.mode) for queue in queues]
    return QueryAssignmentResponseBody(message_queue_assignments=assignments)


@handles(SetMessageRequestMode)
async def set_message_request_mode(
    popping: Popping, request: SetMessageRequestMode, call: CallWithBody[SetMessageRequestModeRequestBody]
) -> None:
    """Set whether a group pulls or pops a topic; the answer is sent once the mode is on disk."""
    body = call.read_body()
    topic, group = body.topic or "", body.consumer_group or ""
    if is_retry_topic(topic):
        raise Refusal(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
    if popping.topics.find(topic) is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    if body.mode not in (PULL, POP):
        raise BodyError(f"SetMessageRequestModeRequestBody: mode must be PULL or POP, got {body.mode[:40]!r}")
    if popping.groups.find_or_create(group) is None:
        raise Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
    if popping.request_modes.is_full:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "too many request modes")
    popping.request_modes.set(topic, group, body)
    popping.tables.save_soon(popping.request_modes)
    await popping.tables.wait_until_saved(popping.request_modes)


@handles(GetAllMessageRequestMode)
async def get_all_message_request_mode(popping: Popping, request: GetAllMessageRequestMode) -> Answer:
    """All modes that were set, for slaves."""
    modes = popping.request_modes
    return Answer(body=await encode_json(modes.to_body(), len(modes)))


def _default_mode(popping: Popping, topic: str) -> SetMessageRequestModeRequestBody:
    config = popping.config
    if is_retry_topic(topic) or config.default_message_request_mode != POP:
        return SetMessageRequestModeRequestBody(mode=PULL)
    return SetMessageRequestModeRequestBody(mode=POP, pop_share_queue_num=config.default_pop_share_queue_num)


async def _queues_for(
    popping: Popping, body: QueryAssignmentRequestBody, mode: SetMessageRequestModeRequestBody
) -> list[MessageQueue] | None:
    topic, group, client_id = body.topic or "", body.consumer_group or "", body.client_id or ""
    if body.message_model not in (MessageModel.BROADCASTING, MessageModel.CLUSTERING):
        return None
    is_broadcasting = body.message_model == MessageModel.BROADCASTING
    if is_lmq(topic) and not is_broadcasting:
        queues: list[MessageQueue] | None = [MessageQueue(topic, popping.config.broker_name, 0)]
    else:
        queues = await _route_queues(popping, topic)
    if queues is None or is_broadcasting or not popping.config.server_load_balancer_enable:
        return queues
    members = popping.consumers.get(group)
    allocate = _STRATEGIES.get(body.strategy_name or "")
    if members is None or allocate is None or not queues or not client_id:
        return None
    client_ids = sort_client_ids(members.client_ids())
    if mode.mode == POP:
        shares = _pop_shares(allocate, client_id, sort_queues(queues), client_ids, mode.pop_share_queue_num)
    else:
        shares = allocate(client_id, sort_queues(queues), client_ids)
    return list(dict.fromkeys(shares))


async def _route_queues(popping: Popping, topic: str) -> list[MessageQueue] | None:
    """The readable queues of a topic on all brokers; `None` if no name server knows the topic."""
    try:
        route = await popping.registration.ask(
            GetRouteInfoByTopic(topic=topic, accept_standard_json_only=True)
        )
    except (Refusal, PeerError, BodyError) as error:
        _log.debug("no route of %s: %s", topic, error)
        return None
    return route.read_queues(topic)


_STRATEGIES: Final[dict[str, Allocate]] = {AVERAGELY: share_averagely, AVERAGELY_BY_CIRCLE: share_by_circle}


def _pop_shares(
    allocate: Allocate,
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    share_queue_num: int,
) -> list[MessageQueue]:
    if share_queue_num <= 0 or share_queue_num >= len(client_ids) - 1:
        return [MessageQueue(queue.topic, queue.broker_name, -1) for queue in queues]
    if client_id not in client_ids:
        return []
    index = client_ids.index(client_id)
    if len(client_ids) > len(queues):  # each client gets one queue
        return [queues[index % len(queues)]]
    sharers = [client_ids[(index + step) % len(client_ids)] for step in range(share_queue_num + 1)]
    return [queue for sharer in sharers for queue in allocate(sharer, queues, client_ids)]
