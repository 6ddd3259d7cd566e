"""A passive client on a connection of its own: the broker checks its transactions, sends it replies, asks its status.

It sends one heartbeat, so that the broker knows its groups and client id, and then reads what the broker sends. Frames
as in `remoting.py`; requests as in `raw_client.py`.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType

from conformance.servers import remoting
from conformance.servers.server import Server

HEART_BEAT, CHECK_TRANSACTION_STATE, PUSH_REPLY = 34, 39, 326
VERSION = {"4.9": 409, "5.5": 513}
READ_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Pushed:
    """A request of the broker."""

    code: int
    opaque: int
    fields: dict[str, str]
    body: bytes


class ProducerPeer:
    """Use it as a context manager."""

    def __init__(self, server: Server, group: str, client_id: str, *consumers: Mapping[str, object]) -> None:
        self._connection = server.connect(timeout=READ_TIMEOUT_S)
        self._version = VERSION[server.emulates]
        body = {
            "clientID": client_id,
            "producerDataSet": [{"groupName": group}],
            "consumerDataSet": consumers,
        }
        reply = remoting.call(self._connection, HEART_BEAT, {}, json.dumps(body).encode(), self._version)
        assert reply.code == 0, reply

    def __enter__(self) -> "ProducerPeer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def next(self, code: int) -> Pushed:
        """The next request with that code; others are skipped."""
        while True:
            header, body = remoting.read_frame(self._connection)
            if header["code"] != code:
                continue
            fields, opaque = header.get("extFields"), header["opaque"]
            assert isinstance(fields, dict)
            assert isinstance(opaque, int)
            return Pushed(code, opaque, fields, body)

    def keep_answering(self, bodies: Mapping[int, bytes]) -> None:
        """From a thread of its own: each request with its body, until the connection is closed."""

        def serve() -> None:
            while True:
                try:
                    header, _ = remoting.read_frame(self._connection)
                except OSError:
                    return
                code, opaque = header["code"], header["opaque"]
                assert isinstance(code, int)
                assert isinstance(opaque, int)
                if header["flag"] == 0 and code in bodies:
                    self.answer(Pushed(code, opaque, {}, b""), 0, bodies[code])

        threading.Thread(target=serve, daemon=True).start()

    def answer(self, pushed: Pushed, code: int, body: bytes = b"") -> None:
        header: dict[str, object] = {"code": code, "flag": 1, "language": "JAVA", "opaque": pushed.opaque}
        header |= {"version": self._version, "serializeTypeCurrentRPC": "JSON"}
        self._connection.sendall(remoting.encode(header, body))
