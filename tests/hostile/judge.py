"""What a request costs the server: the longest turn of its loop, memory, log; and that others are served meanwhile.

    with Judge(folder) as judge:
        cost = judge.cost_of(Attack("broker", frames))
        assert not cost.over(LIMITS)

The server is a process of its own with a probe on its loop (`probed_server.py`), all its ports open. Turns are measured
in processor time, so a busy machine costs a server nothing. While an attack runs, a good client sends messages; one
that is refused is reported.

An attack is over once the server has answered what follows it, or has closed its connection.
"""

import contextlib
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from hostile import http2_peer
from raw_peer import SEND_MESSAGE, SUCCESS, Peer, ServedProcess, request, send_fields

MIB = 1 << 20
PROGRAM = Path(__file__).with_name("probed_server.py")
ANSWER_SECONDS = 20
"""Longer than any attack takes, also on a busy machine: what is slower is a hang, and the server is replaced."""
MARKER_CODE, MARKER_OPAQUE = 3333, 1_000_001
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


class Cost(NamedTuple):
    turn_ms: float
    memory_bytes: int
    log_bytes: int
    sent_bytes: int
    requests: int
    good_failures: int
    is_hung: bool
    log: str

    def over(self, limits: Limits) -> list[str]:
        """Each limit that was broken, in words; the others were kept."""
        memory = int(self.sent_bytes * limits.memory_factor) + limits.memory_bytes + limits.noise_bytes
        log = limits.log_bytes * self.requests
        found = []
        if self.turn_ms > limits.turn_ms:
            found.append(f"one turn of the loop took {self.turn_ms:.0f} ms of processor time")
        if self.memory_bytes > memory:
            found.append(f"{self.memory_bytes >> 10} KiB of memory for {self.sent_bytes} bytes")
        if self.log_bytes > log:
            found.append(f"{self.log_bytes} bytes of log: {self.log[:100]!r}")
        if "Traceback" in self.log:
            found.append(f"an unexpected error: {self.log[-300:]}")
        if self.is_hung:
            found.append("the server hangs, or ended")
        if self.good_failures:
            found.append(f"{self.good_failures} sends of another client failed")
        return found


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

    def cost_of(self, attack: Attack) -> Cost:
        """Run the attack, and say what it cost."""
        return self.cost_while(lambda: self.run(attack), len(attack.data), attack.requests)

    def cost_while(self, act: Callable[[], None], sent_bytes: int, requests: int = 1) -> Cost:
        """What the server spends while `act` runs: an attack that needs more than bytes on one connection."""
        logged = len(self.server.errors)
        try:
            self._ask("reset")
        except (OSError, ValueError):  # an earlier attack ended it
            self._replace()
            self._ask("reset")
        before = self._ask("report")["now"]
        is_hung = False
        with self._good_client() as failures:
            try:
                act()
                self.settle()
            except (TimeoutError, ConnectionRefusedError):
                is_hung = True
        log = self.server.errors[logged:]
        try:
            report = self._ask("report")
        except (OSError, ValueError):  # it ended
            is_hung, report = True, {"turn_ms": 0.0, "peak": 0, "now": 0}
        cost = Cost(
            turn_ms=report["turn_ms"],
            memory_bytes=int(report["peak"] - before),
            log_bytes=len(log),
            sent_bytes=sent_bytes,
            requests=requests,
            good_failures=len(failures),
            is_hung=is_hung,
            log=log,
        )
        if is_hung or failures:
            self._replace()
        return cost

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

    def run(self, attack: Attack) -> None:
        """Send the bytes, and wait until the server is done with them."""
        with socket.create_connection(("127.0.0.1", self.ports[attack.port]), ANSWER_SECONDS) as peer:
            if attack.port == "grpc":
                http2_peer.converse(peer, attack.data, closes=attack.closes)
                return
            send, is_done = _ENDINGS[attack.port]
            data = attack.data if attack.closes else attack.data + send
            reader = threading.Thread(target=_send_quietly, args=(peer, data, attack.closes), daemon=True)
            reader.start()
            tail = b""
            with contextlib.suppress(ConnectionResetError):
                while (chunk := peer.recv(1 << 16)) and not is_done(tail + chunk):
                    tail = (tail + chunk)[-4096:]
            if attack.port == "http":
                with contextlib.suppress(OSError):  # the server has reset it
                    peer.shutdown(socket.SHUT_WR)
            reader.join(ANSWER_SECONDS)

    def settle(self) -> None:
        """Wait until the server has seen that the attack closed its connections: that may cost, too."""
        for _ in range(3):
            with self.server.broker(timeout=ANSWER_SECONDS) as peer:
                peer.call(MARKER_CODE)

    def _ask(self, word: str) -> dict[str, float]:
        self._stream.write(word + "\n")
        self._stream.flush()
        answer: dict[str, float] = json.loads(self._stream.readline())
        return answer

    @contextlib.contextmanager
    def _good_client(self) -> Iterator[list[object]]:
        """Sends a message after the other; the list gets what was not stored."""
        failures: list[object] = []
        ended = threading.Event()

        def send() -> None:
            with Peer(self.ports["broker"], timeout=ANSWER_SECONDS) as peer:
                while True:
                    try:
                        reply = peer.call(SEND_MESSAGE, send_fields(GOOD_TOPIC), b"good")
                    except OSError as error:
                        failures.append(error)
                        return
                    if reply.code != SUCCESS:
                        failures.append(reply)
                    if ended.wait(0.005):
                        return

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        try:
            yield failures
        finally:
            ended.set()
            thread.join(ANSWER_SECONDS)


def _send_quietly(peer: socket.socket, data: bytes, closes: bool) -> None:
    with contextlib.suppress(OSError):
        peer.sendall(data)
        if closes:
            peer.shutdown(socket.SHUT_WR)


def _is_marker(data: bytes) -> bool:
    return b'"opaque":%d' % MARKER_OPAQUE in data or struct.pack(">i", MARKER_OPAQUE) in data


_MARKER = request(MARKER_CODE, opaque=MARKER_OPAQUE)
_ENDINGS: dict[str, tuple[bytes, Callable[[bytes], bool]]] = {
    "broker": (_MARKER, _is_marker),
    "namesrv": (_MARKER, _is_marker),
    "ha": (b"", lambda data: False),
    "http": (b"", lambda data: False),
}
"""What is sent after an attack, and how its answer is recognised; HTTP and HA attacks end with their connection."""


def listening_ports(pid: int) -> set[int]:
    """The TCP ports on which a process accepts connections over IPv4."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed since
            inodes.add(os.readlink(descriptor).removeprefix("socket:[").rstrip("]"))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes}
