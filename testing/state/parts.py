"""What a server keeps outside its store: tables and lists of its parts, as values to return to.

A part names its fields in `state_fields`. A part that is missing here would let a test see something of an earlier one.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from pocketmq.broker.name_server.kv_config import KvConfig
from pocketmq.broker.node import Node
from pocketmq.broker.tables.json_table import JsonTable

PartState = Mapping[str, Any]
"""The values of the fields by name: copies of containers, whose values are immutable."""


class Part(Protocol):
    @property
    def state_fields(self) -> tuple[str, ...]: ...


def parts_of(node: Node) -> Iterator[Part]:
    """The parts in an order that is always the same."""
    broker = node.broker
    yield from (broker.topics, broker.groups, broker.offsets, broker.delays)
    yield from (broker.access.users, broker.access.acls)
    yield from (broker.membership.request_modes, broker.membership.filters)
    yield from (broker.transactions.open_count, broker.transactions.half_messages, broker.transactions.check)
    yield from (broker.delayed.timer.metrics, broker.popping.ordered_pops)
    if node.name_server is not None:
        yield node.name_server.kv


def save_parts(node: Node) -> tuple[PartState, ...]:
    return tuple(save_part(part) for part in parts_of(node))


def restore_parts(node: Node, states: tuple[PartState, ...]) -> None:
    for part, state in zip(parts_of(node), states, strict=True):
        restore_part(part, state)


def save_part(part: Part) -> PartState:
    return {name: _copied(getattr(part, name)) for name in part.state_fields}


def restore_part(part: Part, state: PartState) -> None:
    """Set the fields that differ; a state may be used many times."""
    changed = [name for name in part.state_fields if getattr(part, name) != state[name]]
    for name in changed:
        value = getattr(part, name)
        if isinstance(value, dict):  # others may hold it
            value.clear()
            value.update(_copied(state[name]))
        else:
            setattr(part, name, _copied(state[name]))
    if changed and isinstance(part, JsonTable | KvConfig):
        part.restored()


def replace_content(table: JsonTable, content: bytes) -> None:
    """Give the table the content of a text like that of its file, and nothing else. Raises BodyError."""
    for name in table.state_fields:
        value = getattr(table, name)
        if isinstance(value, dict):
            value.clear()
    table.read_content(content)
    table.restored()


def _copied(value: Any) -> Any:
    """The value with containers of its own, at any depth."""
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_copied(part) for part in value]
    return set(value) if isinstance(value, set) else value
