"""What a request needs of an access key of the 4.9 line: PUB or SUB on topics, SUB on groups, or an admin.

Groups appear under the name of their retry topic. Requests that are not here need only a signature. Mirrors
`PlainAccessValidator.parse` and `Permission`. Who has what: `plain_acl.py`.
"""

from typing import Final

from pocketmq.protocol.bodies.client import HeartbeatData
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.topics import is_retry_topic, retry_topic
from pocketmq.protocol.wire.command import Command

DENY: Final = 1
PUB: Final = 4
SUB: Final = 8

ADMIN_CODES: Final = frozenset({17, 25, 200, 207, 215, 50, 51, 53})
"""The last three, which change the keys themselves, need no admin officially: any key could make itself one."""

Needs = dict[str, int]


def is_allowed(wanted: int, given: int) -> bool:
    return not given & DENY and bool(wanted & given)


def needs_of(command: Command) -> Needs:
    """Resource -> permission, in the order a Java map gives them, which decides what a refusal names."""
    fields = command.fields or {}
    needs: Needs = {}

    def add(resource: str | None, perm: int) -> None:
        if resource is not None:
            needs[resource] = perm

    def add_group(name: str | None) -> None:
        if name is not None:
            needs[retry_topic(name)] = SUB

    match command.code:
        case 10:
            _add_send(needs, fields.get("topic"), fields.get("group"))
        case 310 | 320:
            _add_send(needs, fields.get("b"), fields.get("a"))
        case 36:
            add_group(fields.get("group"))
        case 11:
            add(fields.get("topic"), SUB)
            add_group(fields.get("consumerGroup"))
        case 12:
            add(fields.get("topic"), SUB)
        case 34:
            _add_heartbeat(needs, command)
        case 35 | 38:
            add_group(fields.get("consumerGroup"))
        case 15:
            add_group(fields.get("consumerGroup"))
            add(fields.get("topic"), SUB)
    return {resource: needs[resource] for resource in hash_map_order(needs)} if len(needs) > 1 else needs


def _add_send(needs: Needs, topic: str | None, group: str | None) -> None:
    if topic is None:
        return
    if is_retry_topic(topic):
        if group is not None:
            needs[retry_topic(group)] = SUB
    else:
        needs[topic] = PUB


def _add_heartbeat(needs: Needs, command: Command) -> None:
    try:
        heartbeat = HeartbeatData.decode(command.body or b"")
    except BodyError:
        return  # refused by its handler
    for consumer in heartbeat.consumer_data_set:
        if consumer.group_name is not None:
            needs[retry_topic(consumer.group_name)] = SUB
        for subscription in consumer.subscription_data_set:
            if subscription.topic is not None:
                needs[subscription.topic] = SUB
