"""What a request costs the server: the longest turn of its loop, memory, log; and that others are served meanwhile.

    with Judge(folder) as judge:
        assert judge.over(LIMITS, Attack("broker", frames)) == []

The server is a process of its own with a probe on its loop (`probed_server.py`), all its ports open. Turns are measured
in processor time, so a busy machine costs a server nothing. While an attack runs, a good client sends messages; one
that is refused is reported.

An attack is over once the server has answered what follows it, or has closed its connection.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from hostile import http2_peer
from hostile.exchange import MARKER, exchange, marker_answered
from raw_peer import SEND_MESSAGE, SUCCESS, ServedProcess, send_fields

MIB = 1 << 20
PROGRAM = Path(__file__).with_name("probed_server.py")
ANSWER_SECONDS = 20
"""Longer than any attack takes, also on a busy machine: what is slower is a hang, and the server is replaced."""
GOOD_TOPIC = "Good"


class Limits(NamedTuple):
    """What one request may cost. `docs/architecture.md` states the rule."""

    turn_ms: float = 50
    memory_factor: float = 8
    memory_bytes: int = MIB
    log_bytes: int = 1024
    noise_bytes: int = 3 * MIB
    """What the allocator, the mapped store and the good client add to the highest memory."""


class Attack(NamedTuple):
    """Bytes for one port, on one connection."""

    port: str
    """broker, namesrv, ha, grpc, http."""
    data: bytes
    requests: int = 1
    """How many requests `data` holds: each may log."""
    closes: bool = False
    """The peer closes its side after the last byte: the server waits for more, and would not answer anything else."""


class GoodClient:
    """Sends a message after the other, and notes the processor time that the server spent until each was answered."""

    def __init__(self, server: ServedProcess, topic: str, timeout: float) -> None:
        self._server = server
        self._topic = topic
        self._timeout = timeout
        self._clock = ~server.process.pid << 3 | 2  # the processor time of another process
        self.failures: list[str] = []
        """What was not stored."""
        self.cpu_ms: list[float] = []
        self.wall_ms: list[float] = []

    def __enter__(self) -> Self:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(self._timeout)

    def _send(self) -> None:
        with self._server.broker(timeout=self._timeout) as peer:
            while not self._ended.is_set():
                try:
                    cpu, wall = time.clock_gettime(self._clock), time.monotonic()
                    reply = peer.call(SEND_MESSAGE, send_fields(self._topic), b"good")
                except (OSError, AssertionError) as error:
                    self.failures.append(repr(error))
                    return
                self.cpu_ms.append((time.clock_gettime(self._clock) - cpu) * 1000)
                self.wall_ms.append((time.monotonic() - wall) * 1000)
                if reply.code != SUCCESS:
                    self.failures.append(repr(reply))
                self._ended.wait(0.005)


class Kept(NamedTuple):
    """What the server holds when nobody is connected."""

    memory: int
    """Without mapped files."""
    handles: int
    """Descriptors, without those of the store's files."""
    threads: int


class Judge:
    """A probed server and its good client, from `with` to its end, where the server must serve and stop cleanly.

    A server that hangs or ends is killed, and another one starts in its place.
    """

    def __init__(
        self, folder: Path, settings: Sequence[str] = (), words: Sequence[str] = (), *, has_http: bool = True
    ) -> None:
        """`settings` are `key=value` of broker.conf, `words` more of the command. With HTTP requests are logged."""
        self._has_http = has_http
        self._folder = folder
        self._settings = settings
        self._words = words
        self._lives = 0

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.server.assert_serves()
        finally:
            self.server.__exit__(kind, error, trace)
            self._stream.close()

    def _start(self) -> None:
        self._lives += 1
        folder = self._folder / str(self._lives)
        ports_file = folder / "ports.json"
        words = ["--grpc-port", "0", "--ports-file", str(ports_file), *self._words]
        if self._has_http:
            words += ["--admin-port", "0"]
        for setting in self._settings:
            words += ["--set", setting]
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._stream = ours.makefile("rw", encoding="utf-8")
            descriptor = theirs.fileno()
            program = (str(PROGRAM), str(descriptor))
            self.server = ServedProcess(folder, words, program=program, descriptors=[descriptor])
            self.server.__enter__()
        ports = json.loads(ports_file.read_text(encoding="utf-8"))
        self.ports = {
            "broker": self.server.broker_port,
            "namesrv": self.server.namesrv_port,
            "grpc": int(ports["grpc"].rpartition(":")[2]),
        }
        if self._has_http:
            self.ports["http"] = int(ports["admin"].rpartition(":")[2])
        fast_port = self.server.broker_port - 2
        (self.ports["ha"],) = listening_ports(self.server.process.pid) - {fast_port, *self.ports.values()}
        with self.server.broker() as peer:
            assert peer.call(SEND_MESSAGE, send_fields(GOOD_TOPIC), b"x").code == SUCCESS

    def _replace(self) -> None:
        self._stream.close()
        self.server.process.kill()
        self.server.process.communicate()
        self._start()

    def over(self, limits: Limits, attack: Attack) -> list[str]:
        """The limits that this attack breaks, in words."""
        return self.over_while(limits, lambda: self.run(attack), len(attack.data), attack.requests)

    def over_while(
        self, limits: Limits, act: Callable[[], None], sent_bytes: int, requests: int = 1
    ) -> list[str]:
        """The limits that are broken while `act` runs: an attack that needs more than bytes on one connection.

        What is over one is tried once more: the first use of a part imports it.
        """
        attack = (limits, act, sent_bytes, requests)
        return self._broken(*attack) and self._broken(*attack)

    def _broken(self, limits: Limits, act: Callable[[], None], sent_bytes: int, requests: int) -> list[str]:
        try:
            logged = self._reset()
        except (OSError, ValueError):  # an earlier attack ended it
            self._replace()
            logged = self._reset()
        before = self._ask("report")["now"]
        is_hung = False
        with GoodClient(self.server, GOOD_TOPIC, ANSWER_SECONDS) as good:
            try:
                act()
                self.settle()
            except (TimeoutError, ConnectionRefusedError):
                is_hung = True
        log = self.server.errors[logged:]
        try:
            report = self._ask("report")
        except (OSError, ValueError):  # it ended
            is_hung, report = True, {"turn_ms": 0.0, "peak": before}
        memory = int(report["peak"] - before)
        broken = []
        if report["turn_ms"] > limits.turn_ms:
            broken.append(f"one turn of the loop took {report['turn_ms']:.0f} ms of processor time")
        if memory > int(sent_bytes * limits.memory_factor) + limits.memory_bytes + limits.noise_bytes:
            broken.append(f"{memory >> 10} KiB of memory for {sent_bytes} bytes")
        if len(log) > limits.log_bytes * requests:
            broken.append(f"{len(log)} bytes of log: {log[:100]!r}")
        if "Traceback" in log:
            broken.append(f"an unexpected error: {log[-300:]}")
        if is_hung:
            broken.append("the server hangs, or ended")
        if good.failures:
            broken.append(f"{len(good.failures)} sends of another client failed")
        if is_hung or good.failures:
            self._replace()
        return broken

    def _reset(self) -> int:
        """How long the log is: connections of an earlier attack may end late, and each has its line."""
        logged = -1
        while logged != len(self.server.errors):
            logged = len(self.server.errors)
            self.settle()
        self._ask("reset")
        return logged

    def collect(self) -> None:
        """Have the server collect garbage. With millions of objects that takes a turn of 100 ms, whoever's turn it is:
        it is not what a request costs."""
        self._ask("collect")

    def reset(self) -> None:
        """Forget the turns and the memory so far."""
        self._ask("reset")

    def turn_ms(self) -> float:
        """The longest turn of the loop since the last reset."""
        return self._ask("report")["turn_ms"]

    def kept(self) -> Kept:
        self.settle()
        self.collect()
        process = Path(f"/proc/{self.server.process.pid}")
        handles = 0
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                handles += not os.readlink(descriptor).startswith(str(self.server.store))
        return Kept(self.server.private_bytes, handles, len(os.listdir(process / "task")))

    def run(self, attack: Attack) -> None:
        """Send the bytes and wait until the server is done with them: HTTP and HA attacks end with their connection."""
        with socket.create_connection(("127.0.0.1", self.ports[attack.port]), ANSWER_SECONDS) as peer:
            if attack.port == "grpc":
                http2_peer.converse(peer, attack.data, closes=attack.closes)
            elif attack.closes or attack.port in ("http", "ha"):
                exchange(peer, filter(None, [attack.data]), closes=attack.closes)
            else:
                exchange(peer, [attack.data, MARKER], marker_answered())

    def settle(self) -> None:
        """Wait until the server has seen that the attack closed its connections: that may cost, too."""
        for _ in range(3):
            with self.server.broker(timeout=ANSWER_SECONDS) as peer:
                peer.call(3333)

    def _ask(self, word: str) -> dict[str, float]:
        self._stream.write(word + "\n")
        self._stream.flush()
        answer: dict[str, float] = json.loads(self._stream.readline())
        return answer


def listening_ports(pid: int) -> set[int]:
    """The TCP ports on which a process accepts connections over IPv4."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed since
            inodes.add(os.readlink(descriptor).removeprefix("socket:[").rstrip("]"))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes}
