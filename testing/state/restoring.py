"""Takes a snapshot of a node, and brings a snapshot to a node. All of it runs in the server's thread.

A restore first checks everything that can be checked, then rewinds the server to nothing and stores the records again:
each gets a new place in the log and its old one in its queue. If the disk refuses that, the former state returns.
"""

from collections.abc import Iterator
from typing import Final

from pocketmq.broker.broker import Broker
from pocketmq.broker.node import Node
from pocketmq.broker.tables.json_table import JsonTable
from pocketmq.protocol.errors import ProtocolError
from pocketmq.store import StoreError
from pocketmq.store.timer.timer_checkpoint import decode_timer_checkpoint

from ..errors import SnapshotError
from .parts import replace_content, restore_part, save_part
from .reset import follow_queues, forget_clients, stop_clock
from .rewinding import StoreMark, rewinding_of
from .snapshot import Snapshot, State

ACCESS_TABLES: Final = frozenset(("users", "acls"))
"""A snapshot may lack these: then they stay as they are."""
_NOTHING: Final = StoreMark({}, (0, None))


def tables_of(broker: Broker) -> Iterator[tuple[str, JsonTable]]:
    """Every table by the name that snapshots know it by."""
    yield "topics", broker.topics
    yield "groups", broker.groups
    yield "offsets", broker.offsets
    yield "delays", broker.delays
    yield "users", broker.access.users
    yield "acls", broker.access.acls
    yield "request_modes", broker.membership.request_modes
    yield "filters", broker.membership.filters
    yield "open_transactions", broker.transactions.open_count
    yield "timed_messages", broker.delayed.timer.metrics
    yield "ordered_pops", broker.popping.ordered_pops


async def take_snapshot(node: Node) -> Snapshot:
    """The present state; changes nothing."""
    broker = node.broker
    mark = broker.delayed.timer.mark()
    half, check = broker.transactions.half_messages, broker.transactions.check
    return Snapshot(
        State(
            emulate=broker.config.emulate,
            tables={name: table.to_json(pretty=True) for name, table in tables_of(broker)},
            records=rewinding_of(broker.store).records(),
            timer=b"" if mark is None else mark.encode(),
            unwritten_ends={queue: list(ends) for queue, ends in save_part(half)["_unwritten"].items()},
            ended_behind=list(save_part(check)["_ended_behind"]),
        )
    )


async def restore_snapshot(node: Node, snapshot: Snapshot) -> None:
    """Have the state of the snapshot, and nothing else; virtual time stands still. Raises `SnapshotError`, and then
    nothing has changed."""
    await stop_clock(node)
    state = snapshot.state
    former = await take_snapshot(node)
    try:
        await _become(node, state)
    except (SnapshotError, StoreError, ProtocolError, OSError, KeyError) as error:
        await _become(node, former.state)
        raise SnapshotError(f"the snapshot cannot be restored, nothing was changed: {error}") from error


async def _become(node: Node, state: State) -> None:
    broker = node.broker
    await broker.cluster.registration.settled()
    await broker.transactions.stop()  # a round that is under way would commit its offsets
    try:
        rewinding_of(broker.store).rewind(_NOTHING)
        for name, table in tables_of(broker):
            if name in state.tables or name not in ACCESS_TABLES:
                replace_content(table, state.tables[name])
        restore_part(
            broker.transactions.half_messages,
            {
                "_unwritten": {queue: dict.fromkeys(ends) for queue, ends in state.unwritten_ends.items()},
                "_unwritten_bytes": sum(
                    len(str(end)) + 1 for ends in state.unwritten_ends.values() for end in ends
                ),
            },
        )
        restore_part(
            broker.transactions.check, {"_ended_behind": dict.fromkeys(map(tuple, state.ended_behind))}
        )
        broker.delayed.levels.stop()
        broker.delayed.timer.rewind(None)
        rewinding_of(broker.store).append_records(state.records)
        forget_clients(broker, broker.groups.groups.keys())
        follow_queues(broker, decode_timer_checkpoint(state.timer) if state.timer else None)
    finally:
        broker.transactions.start()
    await broker.cluster.registration.settled()
    if node.name_server is not None:
        routes = node.name_server.routes.topics
        for topic in [topic for topic in routes if topic not in broker.topics]:
            routes[topic].pop(broker.config.broker_name, None)
            if not routes[topic]:
                del routes[topic]
