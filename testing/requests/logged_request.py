"""One request with its reply, as a test sees it: an entry of the request log, and what a rule's function gets.

The log keeps what the connection has anyway (`LogEntry`); names and fields are read when somebody looks.
"""

from functools import cached_property
from typing import Final, cast

import msgspec
from pocketmq.console import values
from pocketmq.protocol.requests.admin import UpdateBrokerConfig
from pocketmq.protocol.requests.name_server import UpdateNamesrvConfig
from pocketmq.protocol.requests.names import request_name
from pocketmq.protocol.requests.security import AuthCreateUser, AuthUpdateUser
from pocketmq.protocol.requests.send import SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command
from pocketmq.protocol.wire.frame import FrameCutter
from pocketmq.protocol.wire.schema import REQUESTS

from .values import response_name

_SECRET_FIELDS: Final = frozenset(("secretKey", "Signature", "SecurityToken"))
_SECRET_BODIES: Final = frozenset(
    kind.code for kind in (AuthCreateUser, AuthUpdateUser, UpdateBrokerConfig, UpdateNamesrvConfig)
)
_HIDDEN: Final = "********"
"""In JSON, for a password and for what signs a request: it can be sent again."""

SHOWN_BYTES: Final = 4 << 20
"""The longest body that JSON has."""
_SAME_IN_JSON: Final = (
    *("id", "at_ms", "topic", "queue_id", "group", "client_id", "broker"),
    *("peer", "oneway", "to_client", "remark", "reply_fields"),
)


class LoggedConnection(msgspec.Struct, eq=False):
    """What the log knows of a connection."""

    peer: str
    broker: str | None
    """Name of the broker it leads to; `None` for a name server."""
    client_id: str | None = None
    """That of its last heartbeat."""
    is_cut: bool = False
    """A fault closed it: what the peer has sent already is not handled."""
    is_of_broker: bool = False
    """A broker of the test has registered over it, since the log began."""


class LogEntry(msgspec.Struct, gc=False):
    """An entry as the log keeps it: decoded frames, or the bytes of whole ones. `reply` is None until it is sent.

    `count` sends that were answered together are kept together; their ids begin with `id`. Not seen by the garbage
    collector: nothing in it refers back to it.
    """

    id: int
    at_ns: int
    connection: LoggedConnection
    request: Command | bytes
    reply: Command | bytes | None = None
    is_to_client: bool = False
    count: int = 1
    answered_ns: int = 0
    """When its reply was sent; 0 without one, and for those that were answered as they arrived."""

    def singly(self, first: int = 0) -> "list[LogEntry]":
        """Itself; or an entry for each of its sends, from the one with that number on."""
        if not isinstance(self.request, bytes):
            return [self]
        requests, replies = FrameCutter().feed(self.request), FrameCutter().feed(cast(bytes, self.reply))
        return [
            LogEntry(self.id + number, self.at_ns, self.connection, requests[number], replies[number])
            for number in range(first, self.count)
        ]


class LoggedRequest:
    """One request, decoded. Two are equal if they are the same entry. Its reply appears once it was sent."""

    def __init__(self, kept: LogEntry) -> None:
        """`kept` is single (`LogEntry.singly`)."""
        self._kept = kept

    @property
    def id(self) -> int:
        """Rises by one with each request of the server."""
        return self._kept.id

    @property
    def at_ms(self) -> int:
        """When it arrived: milliseconds since 1970, by the machine's clock."""
        return self._kept.at_ns // 1_000_000

    @property
    def answered_ms(self) -> int | None:
        """When its reply was sent, by the machine's clock; None if none was."""
        if self._reply is None:
            return None
        return (self._kept.answered_ns or self._kept.at_ns) // 1_000_000

    @property
    def code(self) -> int:
        return self._command.code

    @property
    def name(self) -> str:
        """The official name of the code; the number as text if it has none."""
        return request_name(self.code)

    @property
    def topic(self) -> str | None:
        return self._field("topic")

    @property
    def queue_id(self) -> int | None:
        try:
            return int(self._field("queueId") or "")
        except ValueError:
            return None

    @property
    def group(self) -> str | None:
        """The consumer group, producer group or group that the request names in its header."""
        return self._field("consumerGroup") or self._field("producerGroup") or self._field("group")

    @property
    def client_id(self) -> str | None:
        """The client id of the connection's last heartbeat; None if it sent none, as on a name server."""
        return self._kept.connection.client_id

    @property
    def broker(self) -> str | None:
        """The name of the broker that got the request; None for a name server."""
        return self._kept.connection.broker

    @property
    def is_of_broker(self) -> bool:
        """Whether a broker of the test asks a name server, as it does for its gRPC clients. Known of brokers that have
        registered, or have sent a new topic, since the log began."""
        return self._kept.connection.is_of_broker

    @property
    def peer(self) -> str:
        """`host:port` of the other side."""
        return self._kept.connection.peer

    @property
    def version(self) -> int:
        """The sender's version number, as its frame says."""
        return self._command.version

    @property
    def oneway(self) -> bool:
        """Whether the sender wants no reply."""
        return self._command.flag & ONEWAY_FLAG != 0

    @property
    def to_client(self) -> bool:
        """True for a request that the broker sent to a client."""
        return self._kept.is_to_client

    def _field(self, name: str) -> str | None:
        """One header field by its long name; quicker than `fields` for the rules."""
        command = self._command
        short_names = SHORT_NAMES.get(command.code)
        return (command.fields or {}).get(name if short_names is None else short_names.get(name, name))

    @cached_property
    def fields(self) -> dict[str, str]:
        """Header fields with their long names, also of the sends that have single letters on the wire."""
        command = self._command
        fields = command.fields or {}
        long_names = LONG_NAMES.get(command.code)
        if long_names is None:
            return dict(fields)
        return {long_names.get(name, name): value for name, value in fields.items()}

    @cached_property
    def body(self) -> bytes:
        """The body of the request; empty if it has none."""
        body = self._command.body
        return b"" if body is None else bytes(body)

    @property
    def response(self) -> int | None:
        """The code of the reply; None for a one-way request, or if no reply was sent."""
        reply = self._reply
        return None if reply is None else int(reply.code)

    @property
    def remark(self) -> str | None:
        """The remark of the reply."""
        reply = self._reply
        return None if reply is None else reply.remark

    @property
    def reply_fields(self) -> dict[str, str]:
        """Header fields of the reply."""
        reply = self._reply
        return {} if reply is None else dict(reply.fields or {})

    @property
    def _command(self) -> Command:
        return cast(Command, self._kept.request)

    @property
    def _reply(self) -> Command | None:
        return cast("Command | None", self._kept.reply)

    def as_json(self) -> values.LoggedRequest:
        """For JSON: the same names. Passwords are hidden, and the bodies that may hold some."""
        response = self.response
        body = _HIDDEN.encode() if self.code in _SECRET_BODIES else self.body
        is_shown = len(body) <= SHOWN_BYTES
        return values.LoggedRequest(
            **{name: getattr(self, name) for name in _SAME_IN_JSON},
            code=self.name,
            fields={
                name: _HIDDEN if name in _SECRET_FIELDS else value for name, value in self.fields.items()
            },
            text=values.text_of(body) if is_shown else None,
            body_base64=values.base64_of(body) if is_shown else None,
            response=None if response is None else response_name(response),
            error=msgspec.UNSET
            if is_shown
            else f"the body has {len(body)} bytes: more than {SHOWN_BYTES} are not shown",
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LoggedRequest):
            return NotImplemented
        return (self.id, self._kept.connection) == (other.id, other._kept.connection)

    def __hash__(self) -> int:
        return hash(self.id)

    def __str__(self) -> str:
        words = [f"#{self.id}", self.name]
        for name in ("topic", "queue_id", "group", "client_id", "broker"):
            value = getattr(self, name)
            if value is not None:
                words.append(f"{name}={value}")
        if self.to_client:
            words.append(f"to {self.peer}")
        if self.oneway:
            words.append("one-way")
        elif self.response is None:
            words.append("-> no reply")
        else:
            remark = f" ({self.remark})" if self.remark else ""
            words.append(f"-> {response_name(self.response)}{remark}")
        return " ".join(words)

    def __repr__(self) -> str:
        return f"<request {self}>"


def _long_names_of_sends() -> dict[int, dict[str, str]]:
    """The sends of version 2 have single letters: the names of the long form, by code."""
    long_form = dict(zip(SendMessage.__struct_fields__, SendMessage.__struct_encode_fields__, strict=True))
    found = {}
    for code, kind in REQUESTS.items():
        wire = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        if wire.get("producer_group") == "a":
            found[code] = {letter: long_form[attribute] for attribute, letter in wire.items()}
    return found


SENDS: Final = frozenset(
    code for code, kind in REQUESTS.items() if issubclass(kind, SendMessage | SendMessageV2)
)
"""Codes of requests that store messages."""
LONG_NAMES: Final = _long_names_of_sends()
SHORT_NAMES: Final = {
    code: {long: short for short, long in names.items()} for code, names in LONG_NAMES.items()
}
