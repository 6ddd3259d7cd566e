"""Addresses as text: `host:port`, lists of them, and the addresses of this machine."""

import socket
from typing import Final

from pocketmq.protocol.message.offset_id import pack_host

EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")
"""What a server binds to listen on every address; no client can connect to one of them."""

_MAX_PORT: Final = 65_535
NO_HOST: Final = pack_host("127.0.0.1", 0)
"""The host in the records of a client whose socket has no IP address."""


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of `host:port` or `[host]:port`; `ValueError` for any other text."""
    host, _, port = address.rpartition(":")
    if not host or len(port) > len(str(_MAX_PORT)) or not port.isdecimal() or int(port) > _MAX_PORT:
        raise ValueError("must have the form host:port")
    try:
        host.encode("idna")  # as a connection does: `a..b` and labels of more than 63 characters fail
    except UnicodeError:
        raise ValueError("must have the form host:port") from None
    return host.strip("[]"), int(port)


def check_addresses(text: str) -> None:
    """`ValueError` unless the text has the form `host:port;host:port`; an empty part is allowed."""
    for address in filter(None, text.split(";")):
        try:
            host_and_port(address.strip())
        except ValueError:
            raise ValueError("must have the form host:port;host:port") from None


def numeric_address(host: str) -> str:
    """The IP address of a host; raises `OSError` if its name has none."""
    if host in EVERY_ADDRESS:
        return host
    try:
        pack_host(host, 0)
    except ValueError:
        try:
            return socket.gethostbyname(host)
        except UnicodeError as error:
            raise OSError(f"{host} is no host name") from error
    return host


def own_address() -> str:
    """The address this machine has in the network, or the loopback address. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # reserved for documentation: the kernel only looks up the route
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address


def socket_address(host: str, port: int) -> str:
    """`host:port` as clients read it, an IPv6 address in brackets (NetworkUtil.normalizeHostAddress)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def packed_host(host: str, port: int) -> bytes:
    """The address of a client in the form of a record; an IPv4 address mapped into IPv6 becomes IPv4."""
    try:
        return pack_host(host.partition("%")[0].removeprefix("::ffff:"), port)
    except ValueError:
        return NO_HOST
