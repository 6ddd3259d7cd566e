"""What do the journal, the request log and a rule cost a send over TCP? `python -m bench.watchers [--messages N]`

One embedded server for each side, and a client in this process that sends to them in turns: one send at a time, and
sixteen at a time. Processor time of the server's thread (the kernel's part included) and of the journal's, per message:
the lower quartile over slices, because other programs on the machine only ever add. The request log is filled once and
cleared before, as the test before would: memory that is new to the process costs more than all else that the log does.
"""

import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.testing import EmbeddedServer

from .frame import parsed

SLICE: Final = 400
TOPIC: Final = "BenchmarkTest"
FIELDS: Final = {
    "a": "producers", "b": TOPIC, "c": "TBW102", "d": "4", "f": "0", "g": "1700000000000", "h": "0", "j": "0",
    "k": "false", "m": "false",
}  # fmt: skip


def no_watcher(server: EmbeddedServer) -> None:
    """Nothing."""


def log(server: EmbeddedServer) -> None:
    server.requests.clear()


def log_and_rule(server: EmbeddedServer) -> None:
    server.faults.refuse(code="SEND_MESSAGE_V2", topic="another", response="SYSTEM_BUSY")


def log_and_near_rule(server: EmbeddedServer) -> None:
    """Every send has to be looked at."""
    server.faults.refuse(code="SEND_MESSAGE_V2", topic=TOPIC, queue_id=7, response="SYSTEM_BUSY")


def log_ledger_and_rule(server: EmbeddedServer) -> None:
    server.call(server.watched.keep_ledger)
    log_and_rule(server)


SIDES: Final[dict[str, Callable[[EmbeddedServer], None]]] = {
    "no watcher": no_watcher,
    "journal": no_watcher,
    "request log": log,
    "request log, unused rule for another topic": log_and_rule,
    "request log, ledger, unused rule for another topic": log_ledger_and_rule,
    "request log, unused rule for another queue of the topic": log_and_near_rule,
}


class Side:
    """One server and one connection to it."""

    def __init__(self, name: str, server: EmbeddedServer, client: socket.socket) -> None:
        self.name = name
        self._client = client
        self._server = server
        self._cutter = FrameCutter()
        threads = [server._thread._thread, *(_journals() if name == "journal" else ())]
        self._clocks = [time.pthread_getcpuclockid(one.ident or 0) for one in threads if one is not None]
        self._number = 0
        self.taken: list[float] = []

    def begin(self) -> None:
        """Forget what was measured, and what the log has."""
        self.taken.clear()
        if self.name not in ("no watcher", "journal"):
            self._server.requests.clear()

    def send(self, at_once: int) -> None:
        """One slice of sends, so many under way."""
        reads = [self._frames(at_once) for _ in range(SLICE // at_once)]
        begun = self._cpu_ns()
        for data in reads:
            self._client.sendall(data)
            left = at_once
            while left:
                left -= len(self._cutter.feed(self._client.recv(262_144)))
        self.taken.append((self._cpu_ns() - begun) / SLICE / 1000)

    def _frames(self, count: int) -> bytes:
        frames = []
        for _ in range(count):
            self._number += 1
            properties = f"UNIQ_KEY\x01C0000202796B7ED92C9068B1{self._number:08}\x02WAIT\x01true\x02"
            fields = {**FIELDS, "e": str(self._number % 4), "i": properties}
            frames.append(encode_frame(Command(310, self._number, fields=fields, body=b"x" * 128)))
        return b"".join(frames)

    def _cpu_ns(self) -> int:
        return sum(map(time.clock_gettime_ns, self._clocks))


def _journals() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "pocketmq-journal"]


@contextmanager
def sides() -> Iterator[list[Side]]:
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="pocketmq-bench-")))
        found = []
        for name, watch in SIDES.items():
            journal = folder / "journal" if name == "journal" else None
            server = running.enter_context(EmbeddedServer(journal=journal))
            watch(server)
            host, _, port = server.broker_addr.partition(":")
            client = running.enter_context(socket.create_connection((host, int(port))))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found.append(Side(name, server, client))
        yield found


def main() -> None:
    messages = parsed(__doc__, messages=20_000).messages
    with sides() as found:
        for at_once in (1, 16):
            for side in found:
                for _ in range(messages // SLICE):
                    side.send(at_once)
                side.begin()
            for _ in range(messages // SLICE):
                for side in found:
                    side.send(at_once)
            base = 0.0
            for side in found:
                cost = statistics.quantiles(side.taken, n=4)[0]
                base = base or cost
                print(f"{at_once:2} at a time  {cost:6.1f} us  {cost / base - 1:+6.1%}  {side.name}")


if __name__ == "__main__":
    main()
