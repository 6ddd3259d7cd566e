"""The permissions that a request needs in the 4.9 line: PUB or SUB on topics, SUB on groups, or an admin's access key.

Groups appear under the name of their retry topic. All other requests need only a signature. Mirrors
`PlainAccessValidator.parse` and `Permission`. Which key has which permissions: `plain_acl.py`.
"""

from typing import Final

from pocketmq.protocol.bodies.client import HeartbeatData
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.topics import is_retry_topic, retry_topic
from pocketmq.protocol.requests.admin import UpdateBrokerConfig
from pocketmq.protocol.requests.group import DeleteSubscriptionGroup, UpdateAndCreateSubscriptionGroup
from pocketmq.protocol.requests.membership import GetConsumerListByGroup, HeartBeat, UnregisterClient
from pocketmq.protocol.requests.offset import UpdateConsumerOffset
from pocketmq.protocol.requests.pull import PullMessage, QueryMessage
from pocketmq.protocol.requests.security import (
    DeleteAclConfig,
    UpdateAndCreateAclConfig,
    UpdateGlobalWhiteAddrsConfig,
)
from pocketmq.protocol.requests.send import ConsumerSendMsgBack, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.requests.topic import DeleteTopicInBroker, UpdateAndCreateTopic
from pocketmq.protocol.wire.command import Command

DENY: Final = 1
PUB: Final = 4
SUB: Final = 8

ADMIN_CODES: Final = frozenset(
    kind.code
    for kind in (
        UpdateAndCreateTopic,
        UpdateBrokerConfig,
        UpdateAndCreateSubscriptionGroup,
        DeleteSubscriptionGroup,
        DeleteTopicInBroker,
        UpdateAndCreateAclConfig,
        DeleteAclConfig,
        UpdateGlobalWhiteAddrsConfig,
    )
)
"""Only an admin may send these. The official broker lets any key send the last three, which change the keys: with them
any key could make itself an admin."""

Needs = dict[str, int]


def is_allowed(wanted: int, granted: int) -> bool:
    return not granted & DENY and bool(wanted & granted)


_SENDS: Final = {
    SendMessage.code: ("topic", "group"),
    SendMessageV2.code: ("b", "a"),
    SendBatchMessage.code: ("b", "a"),
}
"""The fields that name the topic and the group of a send."""
_TOPICS: Final = frozenset((PullMessage.code, QueryMessage.code, UpdateConsumerOffset.code))
"""Requests whose field `topic` needs SUB."""
_GROUPS: Final = {
    ConsumerSendMsgBack.code: "group",
    PullMessage.code: "consumerGroup",
    UnregisterClient.code: "consumerGroup",
    GetConsumerListByGroup.code: "consumerGroup",
    UpdateConsumerOffset.code: "consumerGroup",
}
"""The field that names a group, which needs SUB."""


def needs_of(command: Command) -> Needs:
    """Resource -> permission, in the order of Java's hash map, which decides what a refusal names."""
    code, fields = command.code, command.fields or {}
    needs: Needs = {}
    if code in _SENDS:
        topic, group = map(fields.get, _SENDS[code])
        if topic is not None and not is_retry_topic(topic):
            needs[topic] = PUB
        elif topic is not None and group is not None:
            needs[retry_topic(group)] = SUB
    elif code == HeartBeat.code:
        _add_heartbeat(needs, command)
    if code in _TOPICS and (topic := fields.get("topic")) is not None:
        needs[topic] = SUB
    if code in _GROUPS and (group := fields.get(_GROUPS[code])) is not None:
        needs[retry_topic(group)] = SUB
    return {resource: needs[resource] for resource in hash_map_order(needs)} if len(needs) > 1 else needs


def _add_heartbeat(needs: Needs, command: Command) -> None:
    try:
        heartbeat = HeartbeatData.decode(command.body or b"")
    except BodyError:
        return  # the handler refuses it
    for consumer in heartbeat.consumer_data_set:
        if consumer.group_name is not None:
            needs[retry_topic(consumer.group_name)] = SUB
        for subscription in consumer.subscription_data_set:
            if subscription.topic is not None:
                needs[subscription.topic] = SUB
