"""The rights that a request needs on topics, groups or the cluster; 5.x authorization checks them.

Most requests are rows of `access_rules.tsv`, which follows the annotations of the official request headers: the header
fields that name topics and groups (otherwise the cluster), and actions of which one suffices. Sends, reads and
heartbeats have rules of their own in this file. Any other official request, such as 25 and 26, only needs a signature,
as in the official broker; a request of our own without a row is refused. Mirrors `DefaultAuthorizationContextBuilder`.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from pocketmq.protocol.bodies.client import HeartbeatData, LockBatchRequestBody, UnlockBatchRequestBody
from pocketmq.protocol.bodies.topic_config import MULTI_TAG, SINGLE_TAG
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.membership import (
    GetConsumerListByGroup,
    HeartBeat,
    LockBatchMq,
    UnlockBatchMq,
    UnregisterClient,
)
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.requests.offset import QueryConsumerOffset, UpdateConsumerOffset
from pocketmq.protocol.requests.pull import PullMessage, QueryMessage
from pocketmq.protocol.requests.send import (
    ConsumerSendMsgBack,
    EndTransaction,
    RecallMessage,
    SendBatchMessage,
    SendMessage,
    SendMessageV2,
)
from pocketmq.protocol.requests.topic import UpdateAndCreateTopic
from pocketmq.protocol.wire.command import Command

from .authorization import Need, Resource, group, topic

OWN_CODES: Final = range(30_001, 40_000)
"""Of requests that no official program knows."""
TOPIC_FILTER_TYPES: Final = (SINGLE_TAG, MULTI_TAG)
_TABLE: Final = Path(__file__).with_name("access_rules.tsv")
_SEPARATORS: Final = ";,"


class Rule(msgspec.Struct, frozen=True):
    """One row: `fields` are (Topic or Group, header field, separator if the field is a list)."""

    needs_cluster: bool
    actions: tuple[str, ...]
    fields: tuple[tuple[str, str, str], ...]


@functools.cache
def rules() -> dict[int, Rule]:
    rows = _TABLE.read_text(encoding="utf-8").splitlines()[1:]
    return dict(_rule(*row.split("\t")) for row in rows)


def _rule(code: str, cluster: str, actions: str, fields: str) -> tuple[int, Rule]:
    named = []
    for word in fields.split():
        kind, _, field = word.partition(":")
        name = field.rstrip(_SEPARATORS)
        named.append((kind, name, field[len(name) :]))
    return int(code), Rule(bool(cluster), tuple(actions.split()), tuple(named))


def needs_of(command: Command, cluster: str) -> list[Need]:
    """All rights that a request needs; each must be allowed. A request without header fields needs none.

    Raises `BodyError` if the body names the topics and cannot be read, for a new topic without a filter type, and for
    a request of ours without a rule.
    """
    fields = command.fields
    if command.code in OWN_CODES and (command.code not in rules() or not fields):
        raise BodyError(f"request {command.code} has no rule in {_TABLE.name}")
    if not fields:
        return []
    special = _SPECIAL.get(command.code)
    if special is not None:
        return special(command, fields)
    if command.code == UpdateAndCreateTopic.code and fields.get("topicFilterType") not in TOPIC_FILTER_TYPES:
        raise BodyError("the official broker reads this field before it looks for rights")
    rule = rules().get(command.code)
    return [] if rule is None else _by_table(rule, fields, cluster)


def _by_table(rule: Rule, fields: dict[str, str], cluster: str) -> list[Need]:
    needs = []
    for kind, name, separator in rule.fields:
        value = fields.get(name)
        if value is None:
            continue
        parts = filter(None, value.split(separator)) if separator else (value,)
        resources = (_named(part) if kind == "Topic" else Resource(kind, part) for part in parts)
        needs += [Need(resource, rule.actions) for resource in resources]
    if not needs and rule.needs_cluster:
        needs.append(Need(Resource("Cluster", cluster), rule.actions))
    return needs


# -- requests with a rule of their own

_PUB: Final = ("Pub",)
_SUB: Final = ("Sub",)
_ROUTE: Final = ("Pub", "Sub", "Get")
_READ: Final = ("Sub", "Get")
_COMMIT: Final = ("Sub", "Update")

Fields = dict[str, str]


def _of_field(
    make: Callable[[str], Resource], field: str, actions: tuple[str, ...], *, may_be_blank: bool = True
) -> Callable[[Command, Fields], list[Need]]:
    """The topic or group in one field; nothing if it is blank and may not be."""

    def needs(command: Command, fields: Fields) -> list[Need]:
        name = fields.get(field, "")
        return [Need(make(name), actions)] if may_be_blank or name.strip() else []

    return needs


def _named(name: str) -> Resource:
    return group(name) if is_retry_topic(name) else topic(name)


def _of_send(topic_field: str, group_field: str) -> Callable[[Command, Fields], list[Need]]:
    def needs(command: Command, fields: Fields) -> list[Need]:
        name = fields.get(topic_field, "")
        if not is_retry_topic(name):
            return [Need(topic(name), _PUB)]
        owner = fields.get(group_field, "")
        return [Need(group(owner if owner.strip() else name), _SUB)]

    return needs


def _of_topic_and_group(actions: tuple[str, ...]) -> Callable[[Command, Fields], list[Need]]:
    def needs(command: Command, fields: Fields) -> list[Need]:
        name = fields.get("topic", "")
        of_topic = [] if is_retry_topic(name) else [Need(topic(name), actions)]
        return [*of_topic, Need(group(fields.get("consumerGroup", "")), actions)]

    return needs


def _of_heartbeat(command: Command, fields: Fields) -> list[Need]:
    needs = []
    for consumer in HeartbeatData.decode(command.body or b"").consumer_data_set:
        needs.append(Need(group(consumer.group_name or ""), _SUB))
        needs += [
            Need(topic(subscription.topic), _SUB)
            for subscription in consumer.subscription_data_set
            if subscription.topic is not None and not is_retry_topic(subscription.topic)
        ]
    return needs


def _of_lock(command: Command, fields: Fields) -> list[Need]:
    kind = LockBatchRequestBody if command.code == LockBatchMq.code else UnlockBatchRequestBody
    body = kind.decode(command.body or b"")
    topics = {queue.topic for queue in body.mq_set if not is_retry_topic(queue.topic)}
    return [
        Need(group(body.consumer_group or ""), _SUB),
        *(Need(topic(name), _SUB) for name in sorted(topics)),
    ]


_SPECIAL: Final[dict[int, Callable[[Command, Fields], list[Need]]]] = {
    GetRouteInfoByTopic.code: _of_field(_named, "topic", _ROUTE),
    SendMessage.code: _of_send("topic", "group"),
    SendMessageV2.code: _of_send("b", "a"),
    SendBatchMessage.code: _of_send("b", "a"),
    RecallMessage.code: _of_field(topic, "topic", _PUB),
    EndTransaction.code: _of_field(topic, "topic", _PUB, may_be_blank=False),
    ConsumerSendMsgBack.code: _of_field(group, "group", _SUB),
    PullMessage.code: _of_topic_and_group(_SUB),
    QueryMessage.code: _of_field(topic, "topic", _READ),
    HeartBeat.code: _of_heartbeat,
    UnregisterClient.code: _of_field(group, "consumerGroup", _SUB, may_be_blank=False),
    GetConsumerListByGroup.code: _of_field(group, "consumerGroup", _READ),
    QueryConsumerOffset.code: _of_topic_and_group(_READ),
    UpdateConsumerOffset.code: _of_topic_and_group(_COMMIT),
    LockBatchMq.code: _of_lock,
    UnlockBatchMq.code: _of_lock,
}
