"""Holds back every answer of a broker for some time: `cluster.broker("b0").slow(0.5)`.

The broker handles requests at once; its answers leave later, by the wall's time, each after the same time.
"""

from pocketmq.broker.network.watch import ReplyBody, Watched, Watcher
from pocketmq.protocol.wire.command import Command

from ..faults.sending import ReadyReply
from ..faults.shaping import later


class SlowAnswers(Watcher):
    """Watches one server of the broker. It decodes every request, also sends whose headers repeat."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._leaving: Command | None = None
        """The request whose answer leaves now."""

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        if command is self._leaving:
            return False
        ready = ReadyReply.of(reply, body)
        later(connection.loop, self._seconds, self._leave, connection, command, ready)
        return True

    def _leave(self, connection: Watched, command: Command, ready: ReadyReply) -> None:
        self._leaving = command
        try:
            connection.reply(command, ready.command, ready.body or None)
        finally:
            self._leaving = None
