"""What a server keeps outside its store: tables and lists of its parts, as values to return to.

A part that is missing here would let a test see something of an earlier one.
"""

from collections.abc import Iterator

from pocketmq.broker.node import Node
from pocketmq.store.remembered import Memory, Remembered


def remembered_parts(node: Node) -> Iterator[Remembered]:
    """The parts in an order that is always the same."""
    broker = node.broker
    yield from (broker.topics, broker.groups, broker.offsets, broker.delays)
    yield from (broker.access.users, broker.access.acls)
    yield from (broker.membership.request_modes, broker.membership.filters)
    yield from (broker.transactions.open_count, broker.transactions.half_messages, broker.transactions.check)
    yield from (broker.delayed.timer.metrics, broker.popping.ordered_pops)
    if node.name_server is not None:
        yield node.name_server.kv


def remember(node: Node) -> tuple[Memory, ...]:
    return tuple(part.remember() for part in remembered_parts(node))


def recall(node: Node, memories: tuple[Memory, ...]) -> None:
    for part, memory in zip(remembered_parts(node), memories, strict=True):
        part.recall(memory)
