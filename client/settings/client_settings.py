"""Every setting of the official clients under its snake_case name, with its default; checked when made.

Times are in the unit of the official setting: ms, except `consume_timeout` (minutes). Sizes are bytes, except the
`pull_threshold_size_*` (MiB). -1 means "not set". A value that the official setter corrects in silence (back pressure
below its minimum) or ignores (an auto-commit interval below a second) raises InvalidSetting. The group is the first
argument of each client; listeners, hooks and offset stores are arguments too, no settings. 4.9 clients have neither
pop, back pressure, auto-batch nor namespace_v2. Checking is `checks.py`. Official classes: ClientConfig,
DefaultMQProducer, DefaultMQPushConsumer, DefaultLitePullConsumer.
"""

import functools
import socket
import ssl
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec
from pocketmq.protocol.languages import LANGUAGES

from .checks import AtLeast0, AtLeast1, check_values, invalid_setting

DEFAULT_INSTANCE_NAME: Final = "DEFAULT"
"""Replaced by a unique name, except for broadcasting consumers: the path of their offsets contains it."""

SECRETS: Final = frozenset({"tls_client_key_password"})
"""Settings that never appear in logs or in `repr`."""


class AccessChannel(StrEnum):
    """Where the brokers run; CLOUD changes the trace topic and the trace's last fields."""

    LOCAL = "LOCAL"
    CLOUD = "CLOUD"


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What all clients share (official ClientConfig)."""

    namesrv_addr: str | None = None
    """`host:port`, several separated by `;`; None uses NAMESRV_ADDR of the environment."""
    client_ip: str | None = None
    """None finds the address that this machine uses."""
    instance_name: str = DEFAULT_INSTANCE_NAME
    """Clients of one name in one event loop share connections, routes and heartbeats; the default is made unique."""
    namespace: str | None = None
    """Deprecated namespace, a prefix of names: `ns%topic`."""
    namespace_v2: str | None = None
    """Namespace that is sent with each request."""
    access_channel: AccessChannel = AccessChannel.LOCAL
    """CLOUD changes the topic and the last fields of traces."""
    poll_name_server_interval: AtLeast1 = 30_000
    """Between two refreshes of the routes in use, ms."""
    heartbeat_broker_interval: AtLeast1 = 30_000
    """Between two heartbeats, ms. Brokers forget a client after 120 s of silence."""
    persist_consumer_offset_interval: AtLeast1 = 5_000
    """Between two reports of offsets to the brokers, or writes of the file, ms."""
    pull_time_delay_mills_when_exception: AtLeast0 = 1_000
    """Pause of a queue after a pull that failed, ms."""
    trace_msg_batch_num: AtLeast1 = 10
    """Trace records in a message, at most 20."""
    unit_mode: bool = False
    """Sent messages, pulls and heartbeats carry the mark of a unit."""
    unit_name: str | None = None
    """Part of the client id, and of the page asked at the address server."""
    decode_read_body: bool = True
    """False: consumers get messages without their bodies."""
    decode_decompress_body: bool = True
    """False: consumers get compressed bodies as they are stored."""
    vip_channel_enabled: bool = False
    """Most requests go to the broker's port minus 2."""
    use_heartbeat_v2: bool = False
    """Heartbeats leave out subscriptions that the broker knows already (5.x)."""
    use_tls: bool | ssl.SSLContext = False
    """True alone encrypts, but accepts any certificate: see the tls_ settings. A context is used as it is."""
    mq_client_api_timeout: AtLeast1 = 3_000
    """For one request to a name server, and for heartbeats, ms."""
    language: str = "PYTHON"
    """Declared to servers (official default: JAVA)."""
    enable_stream_request_type: bool = False
    """Requests carry the mark of a stream, and the client id ends with `@STREAM`."""
    enable_heartbeat_channel_event_listener: bool = True
    """A new connection gets a heartbeat at once."""
    enable_trace: bool = False
    """Record each message sent and consumed in the trace topic."""
    trace_topic: str | None = None
    """None is RMQ_SYS_TRACE_TOPIC."""

    # JVM properties of the official client.
    namesrv_domain: str | None = None
    """`host` or `host:port` of an address server, which lists the name servers; asked if no address is given."""
    namesrv_domain_subgroup: str = "nsaddr"
    """Last part of the path at the address server."""
    recall_trace_enable: bool = False
    """With enable_trace: recalls too."""
    tls_test_mode_enable: bool = True
    """With use_tls: any certificate is accepted, none is sent. False: the settings below are used."""
    tls_client_auth_server: bool = False
    """Check the server's certificate against tls_client_trust_cert_path (host names are not compared, as in Java)."""
    tls_client_trust_cert_path: str | None = None
    """PEM file of the CA; None trusts those of the system."""
    tls_client_cert_path: str | None = None
    """PEM file of the certificate sent to servers."""
    tls_client_key_path: str | None = None
    """PEM file of its key."""
    tls_client_key_password: str | None = None
    """What the key is locked with; never logged or printed."""

    def __repr__(self) -> str:
        shown = (
            f"{name}={'***' if name in SECRETS and value is not None else repr(value)}"
            for name in self.__struct_fields__
            if (value := getattr(self, name)) != self.default(name)
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def default(cls, name: str) -> object:
        """The default of a setting; None if each object gets a new one."""
        return next((field.default for field in msgspec.structs.fields(cls) if field.name == name), None)

    def __post_init__(self) -> None:
        check_values(self)
        if not self.instance_name:
            raise invalid_setting("instance_name", self.instance_name, "must not be empty")
        if self.language not in LANGUAGES:
            raise invalid_setting("language", self.language, f"expected one of {', '.join(LANGUAGES)}")
        if self.namesrv_addr is not None:
            name_servers(self.namesrv_addr, {})

    def client_id(self, ip: str, instance_name: str) -> str:
        """The id of a client instance (official buildMQClientId)."""
        unit = f"@{self.unit_name}" if self.unit_name and self.unit_name.strip() else ""
        return f"{ip}@{instance_name}{unit}{'@STREAM' if self.enable_stream_request_type else ''}"


@functools.cache
def local_ip() -> str:
    """The address this machine uses towards other machines; 127.0.0.1 if it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def name_servers(namesrv_addr: str | None, environ: Mapping[str, str]) -> list[str]:
    """`host:port` of each name server: of the setting, else of NAMESRV_ADDR; empty if neither is given.

    `http://host:port` is the host and port alone, as in the official client. Raises InvalidSetting.
    """
    text = (namesrv_addr or environ.get("NAMESRV_ADDR", "")).strip()
    if text.startswith("http://"):
        text = text.rpartition("/")[2]
    servers = [part.strip() for part in text.split(";") if part.strip()]
    for server in servers:
        host, _, port = server.rpartition(":")
        if "," in server:
            raise invalid_setting("namesrv_addr", text, "several name servers are separated by semicolons")
        if "/" in server or (":" in host and not host.startswith("[")):
            raise invalid_setting("namesrv_addr", text, f"{server} is not host:port")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise invalid_setting("namesrv_addr", text, f"{server} is not host:port")
    return servers
