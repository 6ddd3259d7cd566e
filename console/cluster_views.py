"""Topics, groups, lag and first positions of one broker; and topics made and changed. Nothing here moves an offset.

A function with `pause` awaits it after each topic, group or
queue, whose number others decide.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.first_position.verdict import explain as verdict_of
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_internal_group, topic_refusal
from starlette.responses import Response

from .answers import PAGES, Call, Problem, as_json, needed, number_of, read_json, serves
from .broker_values import members_of, running_info
from .pages import DEFAULT_NAMES, MAX_NAMES, Page, Pause, first_names
from .values import (
    FirstPosition,
    Group,
    GroupQueue,
    Lag,
    NewTopic,
    Topic,
    TopicChanges,
    TopicQueue,
    first_position,
    group_queue,
    lag_of,
    queue_names,
    topic_of,
)

_NAMES: Final = ("filter", *PAGES)
"""`filter` is a part of the names that are wanted."""
ASK_SECONDS: Final = 0.5
"""How long all members together may take to say what they hold."""
MAX_ASKED: Final = 64
"""Members that are asked; what the others hold is not known then."""


@serves("GET", "/api/topics", ("all", *_NAMES), list[Topic])
async def topics(call: Call) -> Response:
    """Topics with their queues; those of the broker itself only with `all=true`."""
    broker, with_system = call.broker, call.given.get("all") == "true"

    def names() -> Iterator[str]:
        for name in broker.topics.topics:
            if with_system or not (broker.topics.is_system_topic(name) or name.startswith("%")):
                yield name

    return await _listed(call, names, lambda name, pause: _topic(broker, name, pause))


async def _listed(
    call: Call, names: Callable[[], Iterable[str]], value: Callable[[str, Pause], Awaitable[object]]
) -> Response:
    """A page with the values of the names that are asked for. One that was deleted meanwhile is left out.

    `names` is called once it is this call's turn to read: the tables change while it waits."""
    given = call.given
    limit = number_of(given, "limit", DEFAULT_NAMES, MAX_NAMES)
    page, last = Page(limit), given.get("after", "")
    async with call.reading as pause:
        for name in first_names(names(), given.get("filter", ""), last, limit):
            if page.is_full:
                return page.response(call.request, after=last)
            with suppress(Problem):
                page.add(await value(name, pause))
            last = name
    return page.response(call.request)


@serves("GET", "/api/topics/{topic}", answer=Topic)
async def topic(call: Call) -> Response:
    """One topic with its queues; 404 if it does not exist."""
    return await _answer_with_topic(call, call.in_path("topic"))


async def _answer_with_topic(call: Call, name: str, status: int = 200) -> Response:
    async with call.reading as pause:
        return as_json(await _topic(call.broker, name, pause), status)


async def _topic(broker: Broker, name: str, pause: Pause) -> Topic:
    config, store, broker_name = known_topic(broker, name), broker.store, broker.config.broker_name
    queues, newest = [], 0
    for queue_id in range(max(config.read_queue_nums, config.write_queue_nums)):
        low, high = store.min_offset(name, queue_id), store.max_offset(name, queue_id)
        queues.append(TopicQueue(broker_name, queue_id, low, high))
        if high > low:
            newest = max(newest, store.store_time(name, queue_id, high - 1))
        await pause()
    return topic_of({broker_name: config}, queues, newest)


def known_topic(broker: Broker, name: str) -> TopicConfig:
    config = broker.topics.find(name)
    if config is None:
        raise Problem(404, f"there is no topic {name:.200}")
    return config


@serves("POST", "/api/topics", answer=Topic, body=NewTopic, code=201)
async def make_topic(call: Call) -> Response:
    """Make a topic; 409 if it exists."""
    given = await read_json(call.request, NewTopic)
    broker, name = call.broker, given.name
    refusal = topic_refusal(name, emulate=broker.config.emulate)
    if refusal is not None:
        raise Problem(400, refusal, ["^[%|a-zA-Z0-9_-]+$, at most 127 characters"])
    if broker.topics.find(name) is not None and not broker.topics.is_system_topic(name):
        raise Problem(409, f"topic {name} exists: PUT /api/topics/{name} changes it")
    await _put_topic(broker, TopicConfig(topic_name=name), given)
    return await _answer_with_topic(call, name, 201)


@serves("PUT", "/api/topics/{topic}", answer=Topic, body=TopicChanges)
async def change_topic(call: Call) -> Response:
    """Change what is given of a topic; 404 if it does not exist."""
    given = await read_json(call.request, TopicChanges)
    config = known_topic(call.broker, call.in_path("topic"))
    await _put_topic(call.broker, config, given)
    return await _answer_with_topic(call, config.name)


async def _put_topic(broker: Broker, config: TopicConfig, given: TopicChanges) -> None:
    if broker.topics.is_system_topic(config.name):
        raise Problem(400, f"topic {config.name} belongs to the broker", ["another name"])
    changes: dict[str, Any] = {
        "read_queue_nums": given.queues,
        "write_queue_nums": given.queues,
        "perm": given.perm,
        "order": given.order,
        "attributes": {},  # changes of them: none
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    broker.topics.update(msgspec.structs.replace(config, **changes))
    await broker.cluster.registration.wait_until_sent()


def _group_names(broker: Broker) -> Iterator[str]:
    """Groups of the table, groups with members and groups with offsets, less those of the broker and of tools."""
    known = {*broker.groups.groups, *broker.membership.consumers.names(), *broker.offsets.groups()}
    return (name for name in known if not is_internal_group(name))


@serves("GET", "/api/groups", _NAMES, list[Group])
async def groups(call: Call) -> Response:
    """Groups with members, subscriptions, offsets and lag."""
    broker = call.broker
    return await _listed(call, lambda: _group_names(broker), lambda name, pause: _group(broker, name, pause))


@serves("GET", "/api/groups/{group}", answer=Group)
async def group(call: Call) -> Response:
    """One group; 404 if it does not exist."""
    return await _of_group(call, _group)


async def _of_group(call: Call, look: Callable[[Broker, str, Pause], Awaitable[object]]) -> Response:
    """What is seen of the group of the address; 404 if nothing is known of it."""
    broker, name = call.broker, call.in_path("group")
    is_known = (
        name in broker.groups.groups
        or broker.membership.consumers.get(name) is not None
        or broker.offsets.topics_of(name)
    )
    if not is_known or is_internal_group(name):
        raise Problem(404, f"there is no group {name:.200}")
    async with call.reading as pause:
        return as_json(await look(broker, name, pause))


async def _group(broker: Broker, name: str, pause: Pause) -> Group:
    online = broker.membership.consumers.get(name)
    members = []
    for member in members_of(broker, name):
        members.append(member)
        await pause()
    broker_name, offsets = broker.config.broker_name, await offsets_of(broker, name, pause)
    return Group(
        name=name,
        mode=None if online is None else online.message_model,
        consume_from_where=None if online is None else online.consume_from_where,
        members=members,
        subscriptions={} if online is None else online.expressions(),
        offsets={
            topic: queue_names({(broker_name, at): offset for at, offset in of_topic.items()}, brokers=1)
            for topic, of_topic in offsets.items()
        },
        lag=(await _lag(broker, name, pause)).total,
    )


async def offsets_of(broker: Broker, group_name: str, pause: Pause) -> dict[str, dict[int, int]]:
    """Topic -> queue -> the next message that the group will read."""
    found = {}
    for topic_name in sorted(broker.offsets.topics_of(group_name)):
        found[topic_name] = broker.offsets.offsets(topic_name, group_name) or {}
        await pause()
    return found


@serves("GET", "/api/groups/{group}/lag", answer=Lag)
async def lag(call: Call) -> Response:
    """How many messages a group has still to read."""
    return await _of_group(call, _lag)


async def _lag(broker: Broker, name: str, pause: Pause) -> Lag:
    """How many messages a group has still to read, in each topic it subscribes to or has read."""
    online = broker.membership.consumers.get(name)
    subscribed = () if online is None else tuple(online.subscriptions)
    by_topic = {}
    for topic_name in sorted({*subscribed, *broker.offsets.topics_of(name)}):
        of_topic = broker.offsets.offsets(topic_name, name) or {}
        total = 0
        for queue in broker.store.queues_of(topic_name):
            total += lag_of(of_topic.get(queue.queue_id), queue.min_offset, queue.max_offset)
            await pause()
        by_topic[topic_name] = total
    return Lag(sum(by_topic.values()), by_topic)


@serves("GET", "/api/explain", ("group", "topic"), list[FirstPosition])
async def explain(call: Call) -> Response:
    """Where a group starts each queue of a topic, and by which rule. `group` and `topic` are required."""
    broker, name = call.broker, needed(call.given, "group")
    config = known_topic(broker, needed(call.given, "topic"))
    online = broker.membership.consumers.get(name)
    where = None if online is None else online.consume_from_where
    found = []
    async with call.reading as pause:
        for queue_id in range(config.read_queue_nums):
            verdict = verdict_of(broker.state, name, config.name, queue_id)
            found.append(first_position(verdict, broker.config.broker_name, where))
            await pause()
    return as_json(found)


# -- which member holds which queue: only the members know, and each is asked (307)

Holders = dict[tuple[str, int], list[str]]
"""Topic and queue id to the client ids that hold the queue."""


@serves("GET", "/api/groups/{group}/queues", answer=list[GroupQueue])
async def group_queues(call: Call) -> Response:
    """Queues of a group with offset, lag and the members that hold them. The members are asked, for half a second at
    most."""
    holders = await _holders(call.broker, call.in_path("group"))
    return await _of_group(call, lambda broker, name, pause: _group_queues(broker, name, holders, pause))


async def _group_queues(broker: Broker, name: str, holders: Holders, pause: Pause) -> list[GroupQueue]:
    """Each queue of each topic that the group subscribes to or has read, with its offset (null: none committed), lag,
    and the client ids that hold it: several in a broadcasting group, none if nobody holds it or says so."""
    online = broker.membership.consumers.get(name)
    offsets = await offsets_of(broker, name, pause)
    found = []
    for topic in sorted({*(() if online is None else online.subscriptions), *offsets}):
        of_topic = offsets.get(topic, {})
        config = broker.topics.find(topic)
        for queue_id in range(0 if config is None else config.read_queue_nums):
            low, high = broker.store.min_offset(topic, queue_id), broker.store.max_offset(topic, queue_id)
            queue = MessageQueue(topic, broker.config.broker_name, queue_id)
            held_by = sorted(holders.get((topic, queue_id), ()))
            found.append(group_queue(name, queue, held_by, of_topic.get(queue_id), low, high))
            await pause()
    return found


async def _holders(broker: Broker, name: str) -> Holders:
    """What the members say of themselves."""
    online = broker.membership.consumers.get(name)
    clients = [] if online is None else list(online.clients())[:MAX_ASKED]
    answers = await asyncio.gather(*(running_info(client, name, ASK_SECONDS) for client in clients))
    found: Holders = {}
    for client, info in zip(clients, answers, strict=True):
        if info is not None:
            for queue in {*info.mq_table, *info.mq_pop_table}:
                found.setdefault((queue.topic, queue.queue_id), []).append(client.client_id)
    return found
