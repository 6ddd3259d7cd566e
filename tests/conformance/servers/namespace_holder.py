"""The process that keeps one network namespace alive: run as `python namespace_holder.py FD`, never imported.

It enters a new network namespace (as an ordinary user: together with a new user namespace), brings the
loopback up and then serves its parent over the socket FD, one datagram a command:

    "socket"      answers "ok" and passes a fresh TCP socket that belongs to this namespace
    "adopt PGID"  from now on that process group dies with this process
    "release PGID"

When the parent ends, however it ends, the socket closes: the adopted groups are killed and the namespace is removed.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
IFREQ = struct.Struct("16sH22x")


def enter_namespace() -> str:
    """'plain' or 'user': how the network namespace was obtained. Raises OSError where it is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) == 0:
        return "plain"
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as control:
            control.write(text)
    return "user"


def bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = bytearray(IFREQ.pack(b"lo", 0))
        fcntl.ioctl(probe, SIOCGIFFLAGS, request)
        _, flags = IFREQ.unpack(request)
        fcntl.ioctl(probe, SIOCSIFFLAGS, IFREQ.pack(b"lo", flags | IFF_UP))


def serve(parent: socket.socket) -> None:
    adopted: set[int] = set()
    while command := parent.recv(256).decode("ascii"):
        word, _, argument = command.partition(" ")
        if word == "socket":
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as fresh:
                socket.send_fds(parent, [b"ok"], [fresh.fileno()])
            continue
        if word == "adopt":
            adopted.add(int(argument))
        elif word == "release":
            adopted.discard(int(argument))
        parent.send(b"ok")
    for group in adopted:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_IGN
        )  # Ctrl-C is for the parent; this process ends when the parent does
    with socket.socket(fileno=int(sys.argv[1])) as parent:
        try:
            how = enter_namespace()
            bring_loopback_up()
        except OSError as reason:
            parent.send(f"error {reason}".encode())
            return
        parent.send(how.encode("ascii"))
        serve(parent)


if __name__ == "__main__":
    main()
