"""The settings of a server as values: read, and written back after a test changed them over the wire."""

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
    broker.topics.settings = broker.config.topic_settings()
    broker.groups.settings = broker.config.group_settings()
    if broker.config.broker_permission != permission:
        await broker.cluster.registration.permission_changed()


def _configs(node: Node) -> list[msgspec.Struct]:
    config = node.broker.config
    return [config, config.store, *([] if node.name_server is None else [node.name_server.config])]


def _values(config: msgspec.Struct) -> dict[str, Any]:
    values = {name: getattr(config, name) for name in config.__struct_fields__}
    return {
        name: dict(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if not isinstance(value, msgspec.Struct) or value.__struct_config__.frozen
    }
