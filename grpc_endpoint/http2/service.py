"""What a connection needs of the program above it: something that opens an `Exchange` for each call."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from .headers import RequestHead


class Owner(Protocol):
    """The connection of a call."""

    loop: asyncio.AbstractEventLoop
    peer: str
    packed_host: bytes
    closed: bool

    def transport_wrapped(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None:
        """Put a transport between the connection and its socket."""

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def close(self) -> None:
        """Write what is queued, then close."""

    def abort(self) -> None: ...


class ReplyStream(Protocol):
    """The replies' side of a call, as a program uses it."""

    @property
    def owner(self) -> Owner:
        """Its connection."""

    def send_headers(self) -> None:
        """Send the headers now; otherwise they leave with the first message."""

    def send_message(self, data: bytes) -> None:
        """Send one message. It waits here while the client's window is closed."""

    def answer(self, data: bytes) -> None:
        """Send one message and end the call with OK."""

    def answer_all(self, messages: Sequence[bytes]) -> None:
        """Send several messages and end the call with OK."""

    def finish(self, status: int, text: str) -> None:
        """End the call with a gRPC status, after the messages."""

    def first_half(self, messages: Sequence[bytes]) -> bytes:
        """Frames that end in the middle of these messages, for a test that closes the connection there."""


class Exchange(Protocol):
    """One call, as its stream sees it. After `finish` only `on_undelivered` is called, after `on_cancel` nothing."""

    most_bytes: int
    """The longest message that the client may send."""
    needs_end: bool
    """Whether nothing happens before the client has closed its side: all but streams of both sides."""

    def on_message(self, data: bytes) -> None:
        """A whole message arrived."""

    def on_half_close(self) -> None:
        """The client sends no more messages."""

    def on_cancel(self) -> None:
        """The client wants no reply any more, or its connection is gone."""

    def on_undelivered(self) -> None:
        """The call has finished, but the client, or its connection, has gone before all replies were written."""

    def on_server_stop(self) -> None:
        """End the call now, if it would wait for something."""


class Service(Protocol):
    """The program. Called on the loop; none of its methods waits."""

    def opened(self, stream: ReplyStream, head: RequestHead) -> Exchange | None:
        """A call begins; `None` if it was refused and ended at once."""

    def connection_opened(self, owner: Owner) -> None:
        """A client has connected."""

    def pass_begins(self) -> None:
        """A connection begins to handle what it has read."""

    def pass_ends(self) -> None:
        """It has handled it: what calls of one pass do together is done now."""

    def connection_closed(self, owner: Owner) -> None:
        """A connection is gone, after its calls were cancelled."""
