"""A passive producer on a connection of its own: the broker checks its transactions, or sends it replies.

It sends one heartbeat, so that the broker knows its group and client id, and then reads what the broker sends. Frames
as in `remoting.py`; requests as in `raw_client.py`.
"""

import json
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

    def __init__(self, server: Server, group: str, client_id: str) -> None:
        self._connection = server.connect(timeout=READ_TIMEOUT_S)
        self._version = VERSION[server.emulates]
        body = {"clientID": client_id, "producerDataSet": [{"groupName": group}], "consumerDataSet": []}
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

    def answer(self, pushed: Pushed, code: int) -> None:
        header: dict[str, object] = {"code": code, "flag": 1, "language": "JAVA", "opaque": pushed.opaque}
        header |= {"version": self._version, "serializeTypeCurrentRPC": "JSON"}
        self._connection.sendall(remoting.encode(header))
