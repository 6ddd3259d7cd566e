"""Mark: the state of a server at one moment, for `reset` to return to.

Holds values, not the server's own objects; valid for the server that made it, until that stops. Taken in the server's
thread.
"""

from typing import Any

import msgspec
from pocketmq.broker.node import Node
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.routes import QueueData
from pocketmq.store.timer.timer_checkpoint import TimerCheckpoint

from .access_files import read_access_files
from .parts import PartState, save_parts
from .rewinding import StoreMark, rewinding_of
from .settings_values import settings_of


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
    await broker.cluster.registration.settled()  # a registration that is still under way belongs to the state
    routes = {} if name_server is None else name_server.routes.topics
    online = broker.membership.consumers.names()
    return Mark(
        parts=save_parts(node),
        groups=frozenset({*broker.groups.groups, *broker.offsets.group_topic_map(), *online}),
        store=rewinding_of(broker.store).mark(),
        timer=broker.delayed.timer.mark(),
        routes={topic: dict(queues) for topic, queues in routes.items()},
        settings=settings_of(node),
        settings_version=broker.state.settings_version,
        access_files=read_access_files(broker.access),
    )
