"""Who may ask: programs on this machine, and the port's own page. Pages of other sites may not.

A browser runs pages of the whole internet, and each can send requests to 127.0.0.1, or give its own name that address.
It cannot change two header fields, so they are checked: Host must name this machine, and Origin, if it is there, the
page's own host and port. Programs send no Origin.
"""

import ipaddress
from typing import Final

_LOCAL_NAMES: Final = frozenset(("localhost", "127.0.0.1", "::1"))


class Guard:
    """`host` is the address that the port listens on, `names` are further names that clients use for it."""

    def __init__(self, host: str, names: tuple[str, ...] = ()) -> None:
        self._names = _LOCAL_NAMES | {name.lower() for name in (host, *names)}
        self._is_open = not _is_loopback(host)

    def refusal(self, host: str | None, origin: str | None) -> str | None:
        """Why a request with these header fields is refused; None if it is not."""
        if host is None or not self._is_own(host):
            return f"the Host header {host!r:.100} is not an address of this server"
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return f"a page of {origin!r:.100} may not use this server"
        return None

    def _is_own(self, host: str) -> bool:
        name = _without_port(host).lower()
        # A name can be pointed at us by a stranger; an address cannot. Inside a network each address of ours is good.
        return name in self._names or _is_loopback(name) or (self._is_open and _address(name) is not None)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.rpartition(":")
    return name if name and port.isdecimal() else host


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
