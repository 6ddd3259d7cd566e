"""The requests and the peers of a fuzz run: `fuzz.py`.

The requests are those of `generated_rows.py`, `grpc_rows.py` and `http_rows.py`, small, in any order and in both forms
of the header; the fields of one and the body of another meet in one request, too. Most peers send as fast as they are
answered (`FLOODS`); beside them some send half a request and wait, and some do not read (`OTHERS`).
"""

import contextlib
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from hostile import grpc_rows, http2_peer, http_rows
from hostile.exchange import MARKER, exchange, marker_answered
from hostile.generated_rows import SERVED, Variant, variants
from hostile.judge import Attack, Judge
from raw_peer import WORDS, request

STACK: Final = re.compile(rb'Traceback \(most recent|\n\s*File "|\.py", line \d|\n\s*at [\w.$]+\(|\.java:\d')
HEAD: Final = struct.Struct(">hBhii")
BURSTS: Final = (1, 3, 10, 40, 150)
"""How many requests a peer sends without waiting for an answer."""
WAIT_SECONDS: Final = 120
"""Longer than a burst takes, also on a busy machine: what is slower is a hang."""
FLOODS: Final = {"broker": 4, "namesrv": 2}
"""How many peers send as fast as the server answers."""
OTHERS: Final = ("http", "grpc", "ha", "half_open", "slow")
"""A peer each."""
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: the connection ends with RST."""


def binary_frame(code: int, fields: dict[str, object], body: bytes, flag: int = 0) -> bytes:
    """A request with a header of the binary form: its fields are texts."""
    block = bytearray()
    for name, value in fields.items():
        text = "" if value is None else str(value)
        key, data = name.encode(), text.encode()
        block += struct.pack(">h", len(key)) + key + struct.pack(">i", len(data)) + data
    header = HEAD.pack(code, 0, 513, 1, flag) + struct.pack(">ii", 0, len(block)) + bytes(block)
    return WORDS.pack(4 + len(header) + len(body), 1 << 24 | len(header)) + header + body


class Requests:
    """All that may be sent, by port."""

    def __init__(self, ports: dict[str, int]) -> None:
        self._by_code: dict[str, dict[int, list[Variant]]] = {"broker": {}, "namesrv": {}}
        for port, code in SERVED:
            self._by_code[port][code] = list(variants(port, code, field_bytes=256, body_bytes=1024))
        kinds = grpc_rows.messages_of(ports["grpc"], WAIT_SECONDS)
        calls = (row for rpc in grpc_rows.RPCS for row in grpc_rows.rows(rpc, kinds[rpc], 512))
        self.calls = [row.attack for row in calls]
        http = (row for path, method in http_rows.SERVED for row in http_rows.rows(path, method, 512))
        self.http = [row.attack for row in http]

    def one(self, port: str, chosen: random.Random) -> bytes:
        """A request to a remoting port; a code that is served is as likely as another, some are not."""
        served = self._by_code[port]
        code = chosen.choice(list(served))
        fields, body = chosen.choice(served[code]).fields, chosen.choice(served[code]).body
        if chosen.random() < 0.02:
            code = chosen.randrange(-(1 << 15), 1 << 15)
        flag = chosen.choice((0, 0, 0, 0, 2, 1))
        if -(1 << 15) <= code < 1 << 15 and chosen.random() < 0.5:
            return binary_frame(code, fields, body, flag)
        return request(code, fields, body, opaque=1, flag=flag)


class Watched:
    """A socket that looks for stacks in what it receives."""

    def __init__(self, peer: socket.socket, found: list[str], what: object) -> None:
        self._peer = peer
        self._found = found
        self._what = what
        self._tail = b""

    def recv(self, size: int) -> bytes:
        data = self._peer.recv(size)
        self._tail = self._tail[-200:] + data
        if match := STACK.search(self._tail):
            around = self._tail[max(match.start() - 200, 0) : match.end() + 200]
            self._found.append(f"a stack on the wire: {around!r} after {self._what!r}"[:2000])
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)


class Round:
    """One round: a thread for each peer, until each has sent its share."""

    def __init__(self, judge: Judge, requests: Requests, seed: str, count: int) -> None:
        self._judge = judge
        self._requests = requests
        self._seed = seed
        self._count = count
        self.broken: list[str] = []
        self.sent = 0
        self._lock = threading.Lock()
        self._floods_ended = threading.Event()

    def run(self) -> None:
        """The peers of the two remoting ports share the requests; the others act until these are done."""
        count = self._count // sum(FLOODS.values())
        floods = [self._thread(name, number, count) for name, n in FLOODS.items() for number in range(n)]
        others = [self._thread(name, 0, None) for name in OTHERS]
        for thread in (*floods, *others):
            thread.start()
        for thread in floods:
            thread.join()
        self._floods_ended.set()
        for thread in others:
            thread.join()

    def _thread(self, name: str, number: int, count: int | None) -> threading.Thread:
        return threading.Thread(target=self._act, args=(name, number, count))

    def _act(self, name: str, number: int, count: int | None) -> None:
        """Act until `count` requests are sent; without one, until the floods end."""
        chosen = random.Random(f"{self._seed} {name} {number}")
        act: Callable[[str, random.Random, int], int] = getattr(self, f"_{name}", self._remoting)
        done = 0
        while not self._floods_ended.is_set() if count is None else done < count:
            try:
                done += act(name, chosen, BURSTS[-1] if count is None else count - done)
            except ConnectionError:
                done += 1  # the server closed: it may, and the good client shows whether it serves
            except Exception as error:  # also a wait that took too long: it ends this peer, and the run fails
                self.broken.append(f"{name}: {error!r}")
                break
        with self._lock:
            self.sent += done

    def _connect(self, port: str, what: object, receive_bytes: int | None = None) -> Any:
        peer = socket.socket()
        if receive_bytes is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        peer.settimeout(WAIT_SECONDS)
        peer.connect(("127.0.0.1", self._judge.ports[port]))
        return Watched(peer, self.broken, what)

    def _remoting(self, port: str, chosen: random.Random, most: int) -> int:
        """A connection: some bursts of requests, read up to the last answer; then it ends in one of three ways."""
        done = 0
        peer = self._connect(port, (port, chosen.getstate()[1][0]))
        with contextlib.closing(peer):
            for _ in range(chosen.choice((1, 1, 2, 8))):
                size = min(chosen.choice(BURSTS), most - done)
                if size <= 0:
                    break
                burst = b"".join(self._requests.one(port, chosen) for _ in range(size))
                done += size
                if chosen.random() < 0.1:
                    peer.sendall(burst)
                    break
                if not exchange(peer, [burst, MARKER], marker_answered()):
                    break
            if chosen.random() < 0.2:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        return done

    def _http(self, port: str, chosen: random.Random, most: int) -> int:
        attack = chosen.choice(self._requests.http)
        with contextlib.closing(self._connect(port, attack.data[:300])) as peer:
            exchange(peer, [attack.data], closes=True)
        return 1

    def _grpc(self, port: str, chosen: random.Random, most: int) -> int:
        attack = chosen.choice(self._requests.calls)
        with contextlib.closing(self._connect(port, attack.data[:300])) as peer:
            http2_peer.converse(peer, attack.data, closes=attack.closes)
        return attack.requests

    def _ha(self, port: str, chosen: random.Random, most: int) -> int:
        numbers = [chosen.choice((0, 1, -1, 2**62, -(2**63), chosen.randrange(10**6))) for _ in range(5)]
        data = b"".join(struct.pack(">q", number) for number in numbers)[: chosen.randrange(41)]
        with contextlib.closing(self._connect(port, numbers)) as peer:
            peer.sendall(data)
            peer.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                peer.recv(1 << 16)
        return 1

    def _half_open(self, name: str, chosen: random.Random, most: int) -> int:
        """Sixty peers that send a part of a request; some go on, a few bytes at a time, and all go in their own way."""
        with contextlib.ExitStack() as stack:
            peers: list[tuple[Any, bytes]] = []
            for _ in range(count := min(60, most)):
                port = chosen.choice(("broker", "broker", "namesrv", "http", "grpc", "ha"))
                data = self._any(port, chosen)
                cut = chosen.randrange(len(data))
                peer = stack.enter_context(contextlib.closing(self._connect(port, data[:300])))
                with contextlib.suppress(ConnectionError):
                    peer.sendall(data[:cut])
                    peers.append((peer, data[cut:]))
            for at in range(5):
                time.sleep(0.02)  # real time: it is what these peers waste
                for peer, rest in peers:
                    with contextlib.suppress(ConnectionError):
                        peer.sendall(rest[at : at + 1])
            for peer, _ in peers:
                if chosen.random() < 0.3:
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        return count

    def _any(self, port: str, chosen: random.Random) -> bytes:
        if port in ("broker", "namesrv"):
            return self._requests.one(port, chosen)
        if port == "ha":
            return struct.pack(">q", chosen.randrange(-2, 1 << 20))
        attacks: list[Attack] = self._requests.http if port == "http" else self._requests.calls
        return chosen.choice(attacks).data

    def _slow(self, name: str, chosen: random.Random, most: int) -> int:
        """Reads a few bytes, and then no more, of what it asked for."""
        size = min(200, most)
        data = b"".join(self._requests.one("broker", chosen) for _ in range(size))
        with contextlib.closing(self._connect("broker", "slow", receive_bytes=4096)) as peer:
            peer.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                peer.sendall(data)
                for _ in range(10):
                    peer.recv(100)
                    time.sleep(0.01)  # real time: it is what makes it slow
        return size
