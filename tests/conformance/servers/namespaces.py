"""A network of its own for each server side: every side can have 127.0.0.1:9876 and :10911 at the same time.

A `Namespace` is kept alive by one small process (namespace_holder.py). Programs are started inside with
`nsenter`; the test itself reaches in with sockets that the holder makes and passes over, so the test process
never leaves its own network. Works as root and, through a user namespace, as an ordinary user; elsewhere
`NamespaceUnavailable` says why.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

HOLDER = Path(__file__).with_name("namespace_holder.py")


class NamespaceUnavailable(RuntimeError):
    """This machine allows no network namespaces; the text suits a skip line."""


class Namespace:
    """One network with nothing but its own loopback. Close it, or use it as a context manager."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise NamespaceUnavailable("network namespaces are a Linux feature")
        if shutil.which("nsenter") is None:
            raise NamespaceUnavailable("nsenter (util-linux) is not on PATH")
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._holder = subprocess.Popen(
                [sys.executable, "-I", str(HOLDER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        answer = self._channel.recv(256).decode()
        if answer not in ("plain", "user"):
            self.close()
            raise NamespaceUnavailable(
                f"no network namespaces here: {answer.removeprefix('error ') or 'refused'}"
            )
        self._needs_user_namespace = answer == "user"

    def new_socket(self) -> socket.socket:
        """A TCP socket that binds and connects inside this namespace."""
        with self._lock:
            self._channel.send(b"socket")
            answer, descriptors, _, _ = socket.recv_fds(self._channel, 16, 1)
        if answer != b"ok" or len(descriptors) != 1:
            raise OSError("the namespace holder is gone")
        return socket.socket(fileno=descriptors[0])

    def connect(self, port: int, host: str = "127.0.0.1", timeout: float = 5.0) -> socket.socket:
        """A connected blocking socket; OSError where nothing listens."""
        fresh = self.new_socket()
        try:
            fresh.settimeout(timeout)
            fresh.connect((host, port))
            fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            fresh.close()
            raise
        return fresh

    def listen(self, port: int, host: str = "127.0.0.1") -> socket.socket:
        """A listening socket inside; port 0 picks a free one."""
        fresh = self.new_socket()
        try:
            fresh.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            fresh.bind((host, port))
            fresh.listen(128)
        except OSError:
            fresh.close()
            raise
        return fresh

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs argv inside. It execs: the process id is the program's own."""
        user = ["--user", "--preserve-credentials"] if self._needs_user_namespace else []
        return ["nsenter", "--target", str(self._holder.pid), "--net", *user, "--", *argv]

    def popen(
        self,
        argv: Sequence[str],
        output: IO[bytes],
        env: Mapping[str, str],
        cwd: Path,
        errors: IO[bytes] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program inside as its own process group, which ends with this namespace at the latest."""
        process = subprocess.Popen(
            self.command(argv),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT if errors is None else errors,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
        self._tell(f"adopt {process.pid}")
        return process

    def forget(self, process: subprocess.Popen[bytes]) -> None:
        """The process group has ended: the kernel may reuse its number from now on."""
        self._tell(f"release {process.pid}")

    def _tell(self, command: str) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._channel.send(command.encode("ascii"))
            self._channel.recv(16)

    def close(self) -> None:
        """End everything inside. Safe to call twice."""
        self._channel.close()
        try:
            self._holder.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.wait()

    def __enter__(self) -> "Namespace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def why_unavailable() -> str | None:
    """None if namespaces work, else the reason."""
    try:
        Namespace().close()
    except NamespaceUnavailable as reason:
        return str(reason)
    return None


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment for a program under test: no variable of the caller changes what it does."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "HOME", "LANG", "JAVA_HOME", "TMPDIR")
        if name in os.environ
    }
    return {**kept, **extra}
