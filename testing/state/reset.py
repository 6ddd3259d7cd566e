"""The state of a server at one moment, and the way back to it: everything that was done since is undone.

    mark = await take_mark(node)    copies tables, and where each queue ends
    ...                             a test runs
    await restore(node, mark)

Quick because it rewinds instead of restarting: queues and index end where they ended, tables have their former content,
and what reads them in the background (delay levels, timer, revival, transaction check) begins again from there.

Connections stay open, so clients that a test left running go on: a suspended request is answered or waits again, a
consumer joins its group again with its next heartbeat. One thing is not undone, because a running consumer counts on
its offsets: a topic to which a consumer of an earlier group is still connected keeps its messages, and that group keeps
its offsets and locks. All of it runs in the server's thread.
"""

from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.node import Node
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.routes import QueueData
from pocketmq.store.timer.timer_checkpoint import TimerCheckpoint

from .parts import (
    PartState,
    read_access_files,
    restore_access_files,
    restore_parts,
    restore_settings,
    save_parts,
    settings_of,
)
from .rewinding import StoreMark, rewinding_of


class Mark(msgspec.Struct, frozen=True):
    """Made by `take_mark`."""

    parts: tuple[PartState, ...]
    """Of the broker's tables and lists, in the order of `parts.parts_of`."""
    groups: frozenset[str]
    """Groups that are declared, have offsets or have members."""
    store: StoreMark
    timer: TimerCheckpoint | None
    routes: dict[str, dict[str, QueueData]]
    settings: tuple[dict[str, Any], ...]
    """Of broker, store and name server."""
    settings_version: DataVersion
    """Counts the changes of the settings."""
    access_files: dict[str, bytes]
    """Files with access keys (aclEnable) by path."""


async def take_mark(node: Node) -> Mark:
    """The present state. Copies some hundred references; takes microseconds."""
    broker, name_server = node.broker, node.name_server
    await (
        broker.cluster.registration.wait_until_sent()
    )  # a registration that is still under way belongs to the state
    routes = {} if name_server is None else name_server.routes.topics
    online = broker.membership.consumers.names()
    return Mark(
        parts=save_parts(node),
        groups=frozenset({*broker.groups.groups, *broker.offsets.groups(), *online}),
        store=rewinding_of(broker.store).mark(),
        timer=broker.delayed.timer.mark(),
        routes={topic: dict(queues) for topic, queues in routes.items()},
        settings=settings_of(node),
        settings_version=broker.state.settings_version,
        access_files=read_access_files(broker.access),
    )


async def restore(node: Node, mark: Mark) -> None:
    """Undo everything since the mark, and let virtual time stand still. Raises `StoreError` or OSError if the disk
    refuses a change."""
    await stop_clock(node)
    broker = node.broker
    await restore_settings(node, mark.settings, mark.settings_version)
    async with at_rest(broker):
        forget_clients(broker, mark.groups)
        _rewind(node, mark)
        restore_access_files(broker.access, mark.access_files)
    if node.name_server is not None:
        routes = node.name_server.routes.topics
        routes.clear()
        routes.update({topic: dict(queues) for topic, queues in mark.routes.items()})


async def stop_clock(node: Node) -> None:
    """End a run of virtual time: nothing becomes due while the state is another one."""
    if node.time is not None:
        await node.time.stop()


@asynccontextmanager
async def at_rest(broker: Broker) -> AsyncIterator[None]:
    """While the state is replaced: a registration that is under way would bring a topic back, a round of transaction
    checks would commit its offsets."""
    await broker.cluster.registration.wait_until_sent()
    await broker.transactions.check.stop()
    try:
        yield
    finally:
        broker.transactions.check.start()
    await broker.cluster.registration.wait_until_sent()


def forget_clients(broker: Broker, groups: Container[str]) -> None:
    """Forget the members of all but these groups, and what members left behind."""
    consumers = broker.membership.consumers
    for group in consumers.names():
        if group not in groups:
            online = consumers.get(group)
            for connection in [] if online is None else list(online.connections):
                consumers.unregister(group, connection, is_notified=False)
    broker.membership.locks.forget(lambda group, client_id: consumers.find(group, client_id) is not None)
    broker.first_position.skipped.forget()
    broker.state.reseed()
    broker.first_position.broadcasts.forget(lambda group: consumers.get(group) is not None)


def _rewind(node: Node, mark: Mark) -> None:
    broker = node.broker
    live = _live_offsets(broker)
    topics, groups = set(broker.topics.topics), set(broker.groups.groups)
    rewinding_of(broker.store).rewind(mark.store, {topic for topic, _ in live})
    restore_parts(node, mark.parts)
    for (topic, group), offsets in live.items():
        for queue_id, offset in offsets.items():
            broker.offsets.commit(topic, group, queue_id, offset)
    broker.statistics.forget(topics - broker.topics.topics.keys(), groups - broker.groups.groups.keys())
    follow_queues(broker, mark.timer)


def follow_queues(broker: Broker, timer: TimerCheckpoint | None) -> None:
    """Begin again to read the queues, which have changed, in all that reads them in the background."""
    broker.delayed.rewind(timer)
    broker.popping.rewind()
    broker.pulling.waiters.wake_all()


def _live_offsets(broker: Broker) -> dict[tuple[str, str], dict[int, int]]:
    """Committed offsets of each topic and group that running consumers read."""
    consumers = broker.membership.consumers
    live = {}
    for group in consumers.names():
        online = consumers.get(group)
        for topic in () if online is None else online.subscriptions:
            live[topic, group] = broker.offsets.offsets(topic, group) or {}
    return live
