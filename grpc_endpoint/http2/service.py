"""What a connection needs of its surroundings: the program above it, and the port that it belongs to."""

import asyncio
from typing import Any, Protocol

from .headers import RequestHead
from .limits import Limits, MemoryBudget
from .server_stream import Exchange, Owner, ServerStream


class Service(Protocol):
    """The program. Called on the loop; none of its methods waits."""

    def opened(self, stream: ServerStream, head: RequestHead) -> Exchange | None:
        """A call begins; `None` if it was refused and ended at once."""

    def connection_opened(self, owner: Owner) -> None:
        """A client has connected."""

    def pass_begins(self) -> None:
        """A connection begins to handle what it has read."""

    def pass_ends(self) -> None:
        """It has handled it: what calls of one pass do together is done now."""

    def connection_closed(self, owner: Owner) -> None:
        """A connection is gone, after its calls were cancelled."""


class ConnectionOwner(Protocol):
    """The port, as its connections see it."""

    loop: asyncio.AbstractEventLoop
    service: Service
    limits: Limits
    memory: MemoryBudget

    def connected(self, connection: Any, descriptor: int) -> None: ...

    def disconnected(self, connection: Any) -> None: ...
