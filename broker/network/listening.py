"""Listening sockets, and the file descriptors of their connections.

A server accepts connections later, but its port must be known when it is built. The system gives each socket the lowest
free descriptor, so its number says how many are in use, by whatever part of the process. Connections must not take the
last ones: one whose descriptor lies in the share of the store is closed at once.
"""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Callable
from typing import Final

from pocketmq.store.files.mapped_file import most_queue_maps

from ..errors import StartError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_log = logging.getLogger("pocketmq.network")

FREE_PORT_TRIES: Final = 10
BACKLOG: Final = 1024
FOR_FILES: Final = 64
"""Descriptors for the files of the log, the index, the tables and the journal."""
REFUSALS_LOGGED_SECONDS: Final = 60.0
_LINGER: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of no seconds."""


async def bind_sockets(host: str, port: int, name: str) -> list[socket.socket]:
    """Sockets that listen on every address of `host`, all on one port; 0 picks a free one.

    Raises `StartError` if the port is in use; `name` says in the message who needs it.
    """
    sockets = await _bind_once(host, port, name)
    for _ in range(FREE_PORT_TRIES):
        bound = port_of(sockets)
        if all(listener.getsockname()[1] == bound for listener in sockets):
            break
        # Each address of the host got a free port of its own, but clients use one port for all.
        close_all(sockets)
        try:
            sockets = await _bind_once(host, bound, name)
        except StartError:  # the port is free for the first address only
            sockets = await _bind_once(host, port, name)
    return sockets


def port_of(sockets: list[socket.socket]) -> int:
    """The port of the first socket."""
    port: int = sockets[0].getsockname()[1]
    return port


async def _bind_once(host: str, port: int, name: str) -> list[socket.socket]:
    loop, sockets = asyncio.get_running_loop(), list[socket.socket]()
    try:
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            try:
                listener = socket.socket(family, socket.SOCK_STREAM)
            except OSError:  # the name has an address of a family that this system lacks
                continue
            sockets.append(listener)
            # The options that asyncio sets for a listening socket.
            listener.setblocking(False)
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        if not sockets:
            raise OSError("no address of this host can be used")
    except (OSError, OverflowError, UnicodeError) as error:
        close_all(sockets)
        reason = getattr(error, "strerror", None) or str(error)
        raise StartError(f"cannot listen on {host}:{port} ({name}): {reason}") from error
    return sockets


async def accept(
    protocol: Callable[[], asyncio.BaseProtocol],
    sockets: list[socket.socket],
    listeners: list[asyncio.Server],
) -> None:
    """Accept connections: the sockets become listeners. If this is cancelled, each is still in one of the lists, whose
    owner closes it."""
    while sockets:
        listener = await asyncio.get_running_loop().create_server(
            protocol, sock=sockets[-1], backlog=BACKLOG, start_serving=False
        )  # returns without waiting
        listeners.append(listener)
        sockets.pop()
        await listener.start_serving()


def close_all(sockets: list[socket.socket]) -> None:
    for listener in sockets:
        listener.close()


def not_lingering(transport: asyncio.Transport) -> asyncio.Transport:
    """The transport; when it is closed or aborted, the connection is reset."""
    below = transport.get_extra_info("socket")
    if below is not None:
        below.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
    return transport


class Descriptors:
    """Decides for one port whether a new connection has room."""

    def __init__(self) -> None:
        self._first_kept = first_kept_descriptor()
        self._refused = 0
        self._logged_at = -REFUSALS_LOGGED_SECONDS

    def has_room(self, descriptor: int, peer: str, now: float) -> bool:
        """Whether a connection with this descriptor may stay; if not, close it. Refusals are logged once a minute of
        `now`, in seconds."""
        if descriptor < self._first_kept:
            return True
        self._refused += 1
        if now >= self._logged_at + REFUSALS_LOGGED_SECONDS:
            self._logged_at = now
            _log.error(
                "closing %s, %d connections were refused so far: %d file descriptors are in use, the rest is kept "
                "for the files of the store; raise the limit (ulimit -n)",
                peer,
                self._refused,
                descriptor,
            )
        return False


def first_kept_descriptor() -> int:
    """The lowest descriptor that is kept for files; half of a very low limit."""
    if resource is None:
        return 1 << 30
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 30
    return max(soft - most_queue_maps() - FOR_FILES, soft // 2)


def descriptor_of(transport: asyncio.BaseTransport) -> int:
    """The number of a connection's socket; -1 without one."""
    fileno = getattr(transport.get_extra_info("socket"), "fileno", None)
    return -1 if fileno is None else int(fileno())
