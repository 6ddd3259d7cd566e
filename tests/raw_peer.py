"""A server process, and a peer that can send any bytes to it: for tests of bad input.

`ServedProcess` is `pocketmq serve` on free ports with its standard error in a file, so that a test can ask
what it logged, how much memory it holds, and whether it ends cleanly. `Peer` is a blocking socket with frames made by
hand: not the codec of the server, which is under test here.

    int32 length | int8 serialize type, int24 header length | header | body
"""

import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

WORDS = struct.Struct(">iI")
END_SECONDS = 20
SUCCESS, SYSTEM_ERROR, NOT_SUPPORTED = 0, 1, 3
ONEWAY = 2
GET_CLUSTER_INFO = 106
GET_MAX_OFFSET = 30
SEND_MESSAGE = 10
PULL_MESSAGE = 11
_opaques = itertools.count(1)


@dataclass(frozen=True)
class Reply:
    """Response code, remark, header fields (all strings), body and opaque of one answer."""

    code: int
    remark: str
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    opaque: int = 0

    @classmethod
    def of(cls, header: dict[str, Any], body: bytes) -> "Reply":
        remark, fields = header.get("remark") or "", header.get("extFields") or {}
        return cls(header["code"], remark, fields, body, header["opaque"])

    def json(self) -> Any:
        return json.loads(self.body)


def frame(header: bytes, body: bytes = b"", *, header_type: int = 0) -> bytes:
    """A well-formed frame around any header bytes."""
    return WORDS.pack(4 + len(header) + len(body), header_type << 24 | len(header)) + header + body


def request(
    code: object,
    fields: Mapping[str, object] | None = None,
    body: bytes = b"",
    *,
    opaque: object = 0,
    flag: object = 0,
    **more: object,
) -> bytes:
    """The frame of a request with a JSON header; any of its values may be of the wrong type."""
    header = {"code": code, "flag": flag, "language": "JAVA", "opaque": opaque, "version": 513, **more}
    header["extFields"] = {} if fields is None else dict(fields)
    return frame(json.dumps(header).encode(), body)


class Peer:
    """One connection to a port. Every wait ends after `timeout` seconds with an error."""

    def __init__(self, port: int, *, timeout: float = 10, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_bytes is not None:  # before connecting: it bounds the window the other side may fill
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """End the connection with RST, as a killed machine's router does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def say(self, data: bytes) -> None:
        """Send bytes; it is no error if the server has closed the connection."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def hear(self) -> Reply | None:
        """The next frame, or None if the server closed the connection."""
        head = self._exactly(WORDS.size)
        if head is None:
            return None
        length, word = WORDS.unpack(head)
        rest = self._exactly(length - 4)
        assert rest is not None, "closed within a frame"
        size = word & 0xFFFFFF
        return Reply.of(json.loads(rest[:size]), rest[size:])

    def answer(self) -> Reply:
        """The next frame; the connection must be open."""
        reply = self.hear()
        assert reply is not None, "closed without an answer"
        return reply

    def call(self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> Reply:
        """Send a request and return its answer; pushes of the server and late answers to other requests are skipped."""
        opaque = next(_opaques)
        self.say(request(code, texts(fields), body, opaque=opaque))
        while True:
            reply = self.hear()
            assert reply is not None, f"closed instead of answering {code}"
            if reply.opaque == opaque:
                return reply

    def is_closed_in_silence(self) -> bool:
        """True when the server closes without another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            try:
                chunk = self.socket.recv(size - len(parts))
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                return None if not parts else bytes(parts)
            parts += chunk
        return bytes(parts)


class ServedProcess:
    """A server in `folder`, started by `with`; at the end it must stop with exit code 0."""

    def __init__(
        self,
        folder: Path,
        words: Sequence[str] = (),
        *,
        command: Sequence[str] = (),
        program: Sequence[str] = ("-m", "pocketmq.cli"),
        descriptors: Sequence[int] = (),
        ends_well: bool = True,
    ) -> None:
        self.folder = folder
        self.store = folder / "store"
        self._descriptors = descriptors
        self._words = (*command, sys.executable, *program, "serve", "--store", str(self.store), *words)
        self._error_file = folder / "stderr"
        self._ends_well = ends_well
        self.namesrv_port = 0
        self.broker_port = 0

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._error_file.open("wb") as errors:
            self.process = subprocess.Popen(
                [*self._words, "--port", "0", "--namesrv-port", "0"],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=self._descriptors,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("NAMESRV_ADDR="), self.errors
        self.namesrv_port = int(line.rpartition(":")[2])
        with Peer(self.namesrv_port) as peer:
            text = peer.call(GET_CLUSTER_INFO).body.decode()
        self.broker_port = int(text.partition("127.0.0.1:")[2].partition('"')[0])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._ends_well:
                self.process.send_signal(signal.SIGTERM)
                assert self.process.wait(END_SECONDS) == 0, self.errors
        finally:
            self.process.kill()
            self.process.communicate()

    @property
    def errors(self) -> str:
        """All of standard error so far."""
        return self._error_file.read_text(encoding="utf-8", errors="replace")

    @property
    def private_bytes(self) -> int:
        """Its private memory: the mapped store, which the kernel may reclaim at any time, is not counted."""
        return self._status("RssAnon")

    @property
    def peak_bytes(self) -> int:
        """The largest memory it ever had, mapped files included."""
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

    @property
    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def broker(self, **options: Any) -> Peer:
        return Peer(self.broker_port, **options)

    def name_server(self, **options: Any) -> Peer:
        return Peer(self.namesrv_port, **options)

    def assert_serves(self) -> None:
        """Both ports answer a new connection."""
        with self.broker() as broker, self.name_server() as name_server:
            assert broker.call(GET_MAX_OFFSET, {"topic": "t", "queueId": 0}).code == SUCCESS
            assert name_server.call(GET_CLUSTER_INFO).code == SUCCESS

    @contextmanager
    def no_surprise(self) -> Iterator[None]:
        """The block causes no exception except those the server expects of bad peers: its log has no traceback."""
        seen = self._error_file.stat().st_size
        yield
        with self._error_file.open("rb") as errors:
            errors.seek(seen)
            news = errors.read().decode("utf-8", "replace")
        assert "Traceback" not in news, news[:6000]


def send_fields(topic: str, queue_id: int = 0, **changes: object) -> dict[str, object]:
    """Header fields of SEND_MESSAGE (10)."""
    fields: dict[str, object] = {"producerGroup": "raw", "topic": topic, "defaultTopic": "TBW102"}
    fields |= {"defaultTopicQueueNums": 4, "queueId": queue_id, "sysFlag": 0, "bornTimestamp": 1}
    return {**fields, "flag": 0, "properties": "", **changes}


def pull_fields(topic: str, queue_id: int = 0, **changes: object) -> dict[str, object]:
    """Header fields of PULL_MESSAGE (11) that does not wait."""
    fields: dict[str, object] = {"consumerGroup": "raw", "topic": topic, "queueId": queue_id}
    fields |= {"queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0}
    return {**fields, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0, **changes}


def registration_fields(broker_name: str, **changes: object) -> dict[str, object]:
    """Header fields of REGISTER_BROKER (103), and of others about one broker."""
    fields: dict[str, object] = {"brokerName": broker_name, "brokerAddr": "127.0.0.1:1", "clusterName": "C"}
    return {**fields, "haServerAddr": "127.0.0.1:2", "brokerId": 0, **changes}


def texts(fields: Mapping[str, object] | None) -> dict[str, str]:
    """Header values as Java writes them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (fields or {}).items()
    }


@contextmanager
def serving_requests(folder: Path) -> Iterator[ServedProcess]:
    """A process with small files, which must still serve at the end."""
    words = ("--set", "mappedFileSizeCommitLog=4194304", "--set", "mappedFileSizeConsumeQueue=20000")
    with ServedProcess(folder, words) as server:
        yield server
        server.assert_serves()


@contextmanager
def broker_without_surprise(served: ServedProcess) -> Iterator[Peer]:
    """A connection to its broker, which has one message of `TopicTest`."""
    with served.broker() as peer, served.no_surprise():
        assert peer.call(SEND_MESSAGE, send_fields("TopicTest"), b"body").code == SUCCESS
        yield peer
