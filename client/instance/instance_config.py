"""From a facade's settings to the instance it belongs to.

What is left here is small: settings made of keyword arguments, the namespace an endpoint names, and which part of the
settings is shared.
"""

import os
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.wire.command import JSON

from ..connections.address_server import address_server_url
from ..connections.tls import tls_context
from ..errors import ClientError
from ..hooks.rpc_hooks import NamespaceRpcHook, RPCHook, StreamTypeRPCHook
from ..settings.client_settings import DEFAULT_INSTANCE_NAME, ClientSettings
from ..settings.consumer_settings import LitePullConsumerSettings, PushConsumerSettings
from ..settings.java_setters import no_setting
from ..settings.local_address import local_ip
from ..values.namespaces import namespace_of_endpoint


class InstanceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The shared part of the settings (official ClientConfig). Intervals and timeouts in ms."""

    client_id: str
    client_ip: str = ""
    namesrv_addr: str | None = None
    address_server: str | None = None
    """Page that tells the name servers where there is no namesrv_addr."""
    poll_name_server_interval: int = 30_000
    heartbeat_broker_interval: int = 30_000
    persist_consumer_offset_interval: int = 5_000
    mq_client_api_timeout: int = 3_000
    rebalance_wait_interval: int = 20_000
    rebalance_min_interval: int = 1_000
    use_heartbeat_v2: bool = False
    heartbeat_on_connect: bool = True
    heartbeats_at_once: int = 1
    vip_channel: bool = False
    decode_read_body: bool = True
    decode_decompress_body: bool = True
    language: str = "PYTHON"
    hooks: tuple[RPCHook, ...] = ()
    tls: ssl.SSLContext | None = None
    header_type: int = JSON


SettingsT = TypeVar("SettingsT", bound=ClientSettings)


def settings_of(kind: type[SettingsT], given: SettingsT | None, options: Mapping[str, Any]) -> SettingsT:
    """The settings object, or one made of keyword arguments. ClientError for a wrong value or an unknown name, then
    with what to use instead (`settings/java_setters.py`)."""
    if given is not None:
        if options:
            raise ClientError(f"give settings or keyword arguments, not both: {', '.join(options)}")
        settings = given
    else:
        for name in options:
            if name not in kind.__struct_fields__:
                raise no_setting(kind.__name__, name, kind.__struct_fields__)
        settings = kind(**options)
    if settings.namespace is None:
        found = namespace_of_endpoint(settings.namesrv_addr or os.environ.get("NAMESRV_ADDR"))
        if found is not None:
            settings = msgspec.structs.replace(settings, namespace=found)
    return settings


def instance_config(settings: ClientSettings, hooks: Sequence[RPCHook] = ()) -> InstanceConfig:
    """The shared part; the instance name is made unique but for a broadcasting consumer, as in Java."""
    is_broadcasting = (
        isinstance(settings, PushConsumerSettings | LitePullConsumerSettings)
        and settings.message_model is MessageModel.BROADCASTING
    )
    name = instance_name_of(settings.instance_name, is_unique=not is_broadcasting)
    client_ip = settings.client_ip or local_ip()
    all_hooks: list[RPCHook] = []
    if settings.namespace_v2:
        all_hooks.append(NamespaceRpcHook(settings.namespace_v2))
    if settings.enable_stream_request_type:
        all_hooks.append(StreamTypeRPCHook())
    return InstanceConfig(
        client_id=settings.client_id(client_ip, name),
        client_ip=client_ip,
        namesrv_addr=settings.namesrv_addr,
        address_server=address_server_url(settings),
        poll_name_server_interval=settings.poll_name_server_interval,
        heartbeat_broker_interval=settings.heartbeat_broker_interval,
        persist_consumer_offset_interval=settings.persist_consumer_offset_interval,
        mq_client_api_timeout=settings.mq_client_api_timeout,
        use_heartbeat_v2=settings.use_heartbeat_v2,
        heartbeat_on_connect=settings.enable_heartbeat_channel_event_listener,
        heartbeats_at_once=heartbeats_at_once(settings),
        vip_channel=settings.vip_channel_enabled,
        decode_read_body=settings.decode_read_body,
        decode_decompress_body=settings.decode_decompress_body,
        language=settings.language,
        hooks=(*all_hooks, *hooks),
        tls=tls_context(settings),
    )


def heartbeats_at_once(settings: ClientSettings) -> int:
    """How many brokers are greeted at the same time."""
    if not settings.enable_concurrent_heartbeat or settings.use_heartbeat_v2:
        return 1
    return max(1, settings.concurrent_heartbeat_thread_pool_size or os.cpu_count() or 1)


def instance_name_of(instance_name: str, *, is_unique: bool = True) -> str:
    """The default name made unique for this facade (official changeInstanceNameToPID)."""
    if instance_name != DEFAULT_INSTANCE_NAME or not is_unique:
        return instance_name
    return f"{os.getpid()}#{time.perf_counter_ns()}"
