"""ServerAccess: what the HTTP port shows and changes: one running node.

What only a stand-in has is added by `pocketmq.testing`: `server/stand_in_views.py` there. Everything belongs to the
node's event loop, where the port runs too.
"""

from collections.abc import Callable
from typing import Final

from pocketmq.broker.broker import Broker
from pocketmq.broker.node import Node
from pocketmq.broker.time.timers import MovedTime
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2

from .pages import Reading

SEND_SECONDS = 5.0
"""How long the broker may take to answer a message that was posted."""


class NotRunning(Exception):
    """The broker that is asked for is stopped; answered with 409."""


class ServerAccess:
    """A running node as the port sees it."""

    def __init__(
        self, node: Callable[[], Node], *, time: Callable[[], MovedTime | None] | None = None
    ) -> None:
        """`node` is asked anew for each request: in a cluster, brokers end and start. It raises `NotRunning` while none
        runs. `time` is what several brokers share; without it, the node's own."""
        self._node = node
        self._time = time
        self.reading: Final = Reading()

    @property
    def node(self) -> Node:
        return self._node()

    @property
    def broker(self) -> Broker:
        return self.node.broker

    @property
    def time(self) -> MovedTime | None:
        """The virtual time; None if the node follows the wall's."""
        return self.node.time if self._time is None else self._time()

    async def send(self, request: SendMessageV2, body: bytes) -> SendMessageReply:
        """Send the broker a message over TCP, as a client does. `Refusal`, `PeerError`."""
        node = self.node
        connection = await node.server.connect(node.bound_address)
        try:
            _, reply = await connection.call(request, body, timeout_seconds=SEND_SECONDS)
        finally:
            connection.close()
        return reply
