"""One request that a rule hit, on its way: answered, held back, sent twice, cut off. All on the server's loop."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import msgspec
from pocketmq.broker.network.dispatch import Answer
from pocketmq.broker.network.listening import not_lingering
from pocketmq.broker.network.watch import ReplyBody, Watched
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import encode_prefix

from ..requests.logged_request import LoggedConnection, LoggedRequest
from ..requests.values import response_code
from .outcomes import Reply, wire_body, wire_fields

if TYPE_CHECKING:
    import asyncio


class ReadyReply(msgspec.Struct, frozen=True):
    """A reply that is ready, with a copy of its body: views of store files must not be kept."""

    command: Command
    body: bytes

    @classmethod
    def altered(cls, former: Command, reply: Reply, opaque: int) -> "ReadyReply":
        """The frame of a test's reply, in the form of the former one."""
        command = Command(
            response_code("code", reply.code),
            opaque,
            former.flag,
            reply.remark,
            wire_fields(reply.fields),
            None,
            former.language,
            former.version,
            former.header_type,
        )
        return cls(command, wire_body(reply.body))

    def first_half(self) -> bytes:
        """The frame up to the middle of its body; of its header, if it has no body."""
        head = encode_prefix(self.command, len(self.body))
        return head + self.body[: len(self.body) // 2] if self.body else head[: len(head) // 2]


class Exchange(msgspec.Struct, eq=False):
    """A hit request and the connection it came on. `watcher` owns it."""

    watcher: "Answering"
    fail: Callable[[str, BaseException], None]
    """Notes that a function of the test raised."""
    request: LoggedRequest
    _connection: Watched
    _known: LoggedConnection
    _command: Command
    _body: ReplyBody = None
    """Of a request to a client."""

    def is_on(self, connection: Watched) -> bool:
        return self._connection is connection

    def handle(self) -> None:
        """Let the broker handle the request after all."""
        if not self._connection.closed:
            self._connection.dispatch(self._command)

    def answer(self, answer: Answer) -> None:
        """Answer in the broker's place."""
        self.watcher.pass_on(self._command, lambda: self._connection.answer(self._command, answer))

    def send(self, reply: ReadyReply) -> None:
        """Send a reply that was held back."""
        body = reply.body or None
        self.watcher.pass_on(
            self._command, lambda: self._connection.reply(self._command, reply.command, body)
        )

    def first_half(self, reply: ReadyReply) -> bytes:
        """The bytes of a reply up to its middle."""
        of_grpc = getattr(self._connection, "first_half", None)  # a client of the gRPC port knows its stream
        if of_grpc is None:
            return reply.first_half()
        half: bytes = of_grpc(self._command, reply.body)
        return half

    def call_now(self) -> None:
        """Send the client a request that was held back, or send it once more."""
        if not self._connection.closed:
            self._connection.write(self._command, self._body or None)

    def forget(self) -> None:
        """No reply will be sent."""
        self.watcher.forget(self._command)

    def disconnect(self, *, reset: bool, first: bytes = b"") -> None:
        """Close the connection, after what was written before and `first`; what it has sent already is not handled."""
        self._known.is_cut = True
        cut(self._connection, reset=reset, first=first)


class Answering:
    """What an exchange needs of its watcher (`fault_watcher.py`)."""

    @property
    def random(self) -> Random:
        raise NotImplementedError

    def pass_on(self, command: Command, send: Callable[[], None]) -> None: ...

    def call_later(self, seconds: float, function: Callable[[], None]) -> None:
        """Call a function after so many seconds of the server's clock."""

    def forget(self, command: Command) -> None: ...


def cut(connection: Watched, *, reset: bool, first: bytes = b"") -> None:
    """Close a connection, or reset it, after writing some last bytes."""

    def wrap(transport: "asyncio.Transport") -> "asyncio.Transport":
        if first:
            transport.write(first)
        return not_lingering(transport) if reset else transport

    connection.wrap_transport(wrap)
    connection.close()
