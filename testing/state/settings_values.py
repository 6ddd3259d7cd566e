"""The settings of a server as values: read, and written back after a test changed them over the wire."""

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
from pocketmq.broker.node import Node
from pocketmq.protocol.bodies.body import DataVersion


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
        await broker.cluster.registration.permission_changed()


def _configs(node: Node) -> list[msgspec.Struct]:
    config = node.broker.config
    return [config, config.store, *([] if node.name_server is None else [node.name_server.config])]


def _values(config: msgspec.Struct) -> dict[str, Any]:
    values = dict(zip(config.__struct_fields__, _all_values(type(config))(config), strict=True))
    for name, value in values.items():
        if isinstance(value, dict):
            values[name] = dict(value)
    for name in _parts(type(config)):
        del values[name]
    return values


@functools.cache
def _all_values(kind: type[msgspec.Struct]) -> Callable[[msgspec.Struct], tuple[Any, ...]]:
    return attrgetter(*kind.__struct_fields__)


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
