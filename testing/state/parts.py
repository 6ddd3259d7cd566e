"""What a server keeps outside its store, as values to return to: tables and lists of its parts, settings, access files.

A part names its fields in `state_fields`. A part that is missing here would let a test see something of an earlier one.
"""

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
from pocketmq.broker.access.access_control import Access
from pocketmq.broker.broker import Broker
from pocketmq.broker.node import Node
from pocketmq.broker.tables.json_table import JsonTable
from pocketmq.protocol.bodies.body import DataVersion

PartState = Mapping[str, Any]
"""The values of the fields by name: copies of containers, whose values are immutable."""


class Part(Protocol):
    @property
    def state_fields(self) -> tuple[str, ...]: ...


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


def parts_of(node: Node) -> Iterator[Part]:
    """The parts in an order that is always the same."""
    for _, table in tables_of(node.broker):
        yield table
    yield from (node.broker.transactions.half_messages, node.broker.transactions.check)
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
    if changed and isinstance(part, JsonTable):
        part.mark_restored()


def replace_content(table: JsonTable, content: bytes) -> None:
    """Give the table the content of a text like that of its file, and nothing else. Raises BodyError."""
    for name in table.state_fields:
        value = getattr(table, name)
        if isinstance(value, dict):
            value.clear()
    table.read_content(content)
    table.mark_restored()


def _copied(value: Any) -> Any:
    """The value with containers of its own, at any depth."""
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_copied(part) for part in value]
    return set(value) if isinstance(value, set) else value


def settings_of(node: Node) -> tuple[dict[str, Any], ...]:
    """Copies of the values: of broker, store and name server."""
    return tuple(map(_values, _configs(node)))


async def restore_settings(node: Node, settings: tuple[dict[str, Any], ...], version: DataVersion) -> None:
    """Restore settings that were changed over the wire."""
    if settings_of(node) == settings:
        return
    broker = node.broker
    permission = broker.config.broker_permission
    for config, values in zip(_configs(node), settings, strict=True):
        for name, value in values.items():
            setattr(config, name, dict(value) if isinstance(value, dict) else value)
    broker.state.settings_version = version
    if broker.config.broker_permission != permission:
        await broker.cluster.registration.register_permission()


def _configs(node: Node) -> list[msgspec.Struct]:
    config = node.broker.config
    return [config, config.store, *([] if node.name_server is None else [node.name_server.config])]


def _values(config: msgspec.Struct) -> dict[str, Any]:
    values = msgspec.structs.asdict(config)
    for name in _parts(type(config)):
        del values[name]
    return {name: dict(value) if isinstance(value, dict) else value for name, value in values.items()}


@functools.cache
def _parts(kind: type[msgspec.Struct]) -> list[str]:
    """Fields that are configs themselves, and are read by themselves."""
    return [
        field.name
        for field in msgspec.structs.fields(kind)
        if isinstance(field.type, type)
        and issubclass(field.type, msgspec.Struct)
        and not field.type.__struct_config__.frozen
    ]


def read_access_files(access: Access) -> dict[str, bytes]:
    """Path to content; empty without aclEnable. Raises OSError."""
    acl = access.plain_acl
    return {} if acl is None else {str(path): path.read_bytes() for path in acl.files() if path.exists()}


def restore_access_files(access: Access, files: dict[str, bytes]) -> None:
    """Write the files back that differ, delete those that are new. Raises OSError."""
    acl, now = access.plain_acl, read_access_files(access)
    if acl is None or now == files:
        return
    for path in now.keys() - files.keys():
        Path(path).unlink()
    for path, content in files.items():
        if now.get(path) != content:
            Path(path).touch(0o600)  # a new file: it has keys
            Path(path).write_bytes(content)
    acl.reload()
