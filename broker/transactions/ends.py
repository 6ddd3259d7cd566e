"""The ends of transactions of a pass: what their commits store is stored together. Owned by the event loop."""

from collections.abc import Sequence

from pocketmq.core.records import Message
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT
from pocketmq.protocol.requests.send import EndTransaction
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import from_fields
from pocketmq.store.put_values import RefusedError

from ..network.connection import Connection
from ..network.dispatch import HELD, Answer, Held
from .transaction_handlers import Commit, prepare_end, refused_commit
from .transactions import Transactions

_Pending = tuple[Command, Commit, Message]


class Ends:
    """Handles the ends of transactions that the connections of a broker receive."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def take(self, connection: Connection, commands: Sequence[Command]) -> None:
        """Handle ends in their order."""
        transactions = self._transactions
        if not transactions.config.is_5:  # each commit is followed by its op message
            for command in commands:
                connection.take(command)
            return
        pending: list[_Pending] = []
        for command in commands:
            end: Commit | Answer | Held | Exception
            try:
                request = from_fields(EndTransaction, command.fields)
                if request.commit_or_rollback != TRANSACTION_COMMIT:
                    self._store(connection, pending)  # a rollback is done at once: ends are in order
                end = prepare_end(transactions, request)
                if isinstance(end, Commit):
                    pending.append((command, end, transactions.store.packed(end.message)))
                    continue
            except RefusedError as error:
                end = refused_commit(transactions, error.status)
            except Exception as error:
                end = error
            self._store(connection, pending)  # answers are in order
            if isinstance(end, Exception):
                connection.refuse(command, end)
            elif end is not HELD:
                connection.answer(command, end)
        self._store(connection, pending)

    def _store(self, connection: Connection, pending: list[_Pending]) -> None:
        """Store and answer commits in their order; the list is empty then."""
        transactions = self._transactions
        while pending:
            try:
                placed = transactions.store.append_all([message for *_, message in pending])
                done = len(placed.runs)
                for (command, (half, message, real_topic), _), size in zip(
                    pending, placed.sizes, strict=False
                ):
                    transactions.half_messages.stored(half, message.topic, real_topic, size)
                    connection.answer(command, Answer())
            except Exception as error:  # our mistake must not end the connection; some may be in the log
                for command, *_ in pending:
                    connection.refuse(command, error)
                pending.clear()
                return
            if placed.refusal is not None:
                connection.refuse(pending[done][0], refused_commit(transactions, placed.refusal))
            del pending[: done + 1]
