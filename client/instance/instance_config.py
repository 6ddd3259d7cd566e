"""From the settings of a client to the instance it belongs to.

Settings are made of keyword arguments, an endpoint may name the namespace, and clients of one instance must agree in
what the instance does.
"""

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from pocketmq.protocol.bodies.client import MessageModel

from ..connections.address_server import address_server_url
from ..errors import InvalidArgument, InvalidSetting
from ..hooks.rpc_hooks import NamespaceRpcHook, RPCHook, StreamTypeRPCHook
from ..settings.client_settings import DEFAULT_INSTANCE_NAME, ClientSettings, local_ip, name_servers
from ..settings.consumer_settings import ConsumerSettings
from ..settings.java_setters import no_setting
from ..values.namespaces import namespace_of_endpoint

_SHARED: Final = (
    "poll_name_server_interval",
    "heartbeat_broker_interval",
    "persist_consumer_offset_interval",
    "mq_client_api_timeout",
    "use_heartbeat_v2",
    "enable_heartbeat_channel_event_listener",
    "vip_channel_enabled",
    "decode_read_body",
    "decode_decompress_body",
    "language",
    "use_tls",
    "tls_test_mode_enable",
    "tls_client_auth_server",
    "tls_client_trust_cert_path",
    "tls_client_cert_path",
    "tls_client_key_path",
    "tls_client_key_password",
)
"""Settings that act on the instance, besides the addresses of the name servers and the hooks on requests."""


class InstanceConfig(msgspec.Struct, frozen=True):
    """What an instance is made of. `hooks` are those on requests, in the order of their calls."""

    client_id: str
    client_ip: str
    settings: ClientSettings
    hooks: tuple[RPCHook, ...] = ()

    def differences(self, other: "InstanceConfig") -> list[str]:
        """The names of what the instance of another client with this config would do differently."""
        own, others = self.settings, other.settings
        names = [name for name in _SHARED if getattr(own, name) != getattr(others, name)]
        if name_servers(own.namesrv_addr, os.environ) != name_servers(others.namesrv_addr, os.environ):
            names.append("namesrv_addr")
        if address_server_url(own) != address_server_url(others):
            names.append("namesrv_domain")
        if self.hooks != other.hooks:
            names.append("hooks")
        return names


SettingsT = TypeVar("SettingsT", bound=ClientSettings)


def settings_of(kind: type[SettingsT], settings: SettingsT | None, options: Mapping[str, Any]) -> SettingsT:
    """The settings object, or one made of keyword arguments. ClientError for a wrong value or an unknown name, with
    what to use instead (`settings/java_setters.py`)."""
    if settings is not None and options:
        raise InvalidArgument(f"give settings or keyword arguments, not both: {', '.join(options)}")
    if settings is None:
        for name in options:
            if name not in kind.__struct_fields__:
                raise no_setting(kind.__name__, name, kind.__struct_fields__)
        settings = kind(**options)
    elif not isinstance(settings, kind):
        raise InvalidSetting(f"settings must be {kind.__name__}, not {type(settings).__name__}")
    if settings.namespace is None:
        found = namespace_of_endpoint(settings.namesrv_addr or os.environ.get("NAMESRV_ADDR"))
        if found is not None:
            settings = msgspec.structs.replace(settings, namespace=found)
    return settings


def instance_config(settings: ClientSettings, hooks: Sequence[RPCHook] = ()) -> InstanceConfig:
    """The instance these settings belong to; the instance name is made unique, but not for a broadcasting consumer, as
    in Java."""
    is_broadcasting = (
        isinstance(settings, ConsumerSettings) and settings.message_model is MessageModel.BROADCASTING
    )
    name = settings.instance_name
    if name == DEFAULT_INSTANCE_NAME and not is_broadcasting:  # official changeInstanceNameToPID
        name = f"{os.getpid()}#{time.perf_counter_ns()}"
    client_ip = settings.client_ip or local_ip()
    own_hooks: list[RPCHook] = []
    if settings.namespace_v2:
        own_hooks.append(NamespaceRpcHook(settings.namespace_v2))
    if settings.enable_stream_request_type:
        own_hooks.append(StreamTypeRPCHook())
    client_id = settings.client_id(client_ip, name)
    return InstanceConfig(client_id, client_ip, settings, (*own_hooks, *hooks))
