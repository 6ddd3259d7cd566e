"""A passive client on a connection of its own: the broker checks its transactions, sends it replies, asks its status.

It sends one heartbeat, so that the broker knows its groups and client id, and then reads what the broker sends. Frames
as in `remoting.py`; requests as in `raw_client.py`.
"""

import json
import threading
from collections.abc import Mapping

from conformance.servers import remoting
from conformance.servers.raw_client import CLIENT_VERSION
from conformance.servers.server import Server
from raw_peer import frame

HEART_BEAT, CHECK_TRANSACTION_STATE, PUSH_REPLY = 34, 39, 326
READ_TIMEOUT_S = 60.0


class ProducerPeer:
    """Use it as a context manager."""

    def __init__(self, server: Server, group: str, client_id: str, *consumers: Mapping[str, object]) -> None:
        self._connection = server.connect(timeout=READ_TIMEOUT_S)
        self._version = CLIENT_VERSION[server.emulates]
        body = {
            "clientID": client_id,
            "producerDataSet": [{"groupName": group}],
            "consumerDataSet": consumers,
        }
        reply = remoting.call(self._connection, HEART_BEAT, {}, json.dumps(body).encode(), self._version)
        assert reply.code == 0, reply

    def __enter__(self) -> "ProducerPeer":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def next(self, code: int) -> remoting.Reply:
        """The next request with that code, as if it were a reply; others are skipped."""
        while True:
            header, body = remoting.read_frame(self._connection)
            if header["code"] == code:
                return remoting.Reply.of(header, body)

    def keep_answering(self, bodies: Mapping[int, bytes]) -> None:
        """From a thread of its own: each request with its body, until the connection is closed."""

        def serve() -> None:
            while True:
                try:
                    header, _ = remoting.read_frame(self._connection)
                except OSError:
                    return
                if header["flag"] == 0 and header["code"] in bodies:
                    self.answer(header["opaque"], 0, bodies[header["code"]])

        threading.Thread(target=serve, daemon=True).start()

    def answer(self, opaque: int, code: int, body: bytes = b"") -> None:
        header = {"code": code, "flag": 1, "language": "JAVA", "opaque": opaque}
        header |= {"version": self._version, "serializeTypeCurrentRPC": "JSON"}
        self._connection.sendall(frame(json.dumps(header).encode(), body))
