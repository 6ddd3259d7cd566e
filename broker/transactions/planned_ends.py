"""Commits of one pass of a connection, stored together if their half messages have plans (5.x).

What has no plan, is no commit, or does not match its half message goes to the handler (`transaction_handlers.py`), in
its place among the others. What is stored and answered is the same either way. Owned by the event loop.
"""

from collections.abc import Sequence

import msgspec
from pocketmq.protocol.errors import FieldError
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT
from pocketmq.protocol.requests.send import EndTransaction
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import from_fields
from pocketmq.store.lookup.message_template import MessageTemplate

from ..network.connection import Connection
from ..network.dispatch import Answer
from .end_plans import PlannedHalf
from .transactions import Transactions


class Commit(msgspec.Struct, frozen=True, gc=False):
    """A commit that has a plan."""

    command: Command
    half: PlannedHalf
    template: MessageTemplate


class PlannedEnds:
    """Takes the ends of transactions of all connections of a broker."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def take(self, connection: Connection, commands: Sequence[Command]) -> None:
        """Handle ends of one pass, in their order."""
        if not self._transactions.config.is_5:  # each commit is followed by its op message
            for command in commands:
                connection.take(command)
            return
        alike: list[Commit] = []
        for command in commands:
            commit = self._commit_of(command)
            if alike and (commit is None or commit.template is not alike[0].template):
                self._store(connection, alike)
                alike = []
            if commit is None:
                connection.take(command)
            else:
                alike.append(commit)
        if alike:
            self._store(connection, alike)

    def _commit_of(self, command: Command) -> Commit | None:
        transactions = self._transactions
        try:
            request = from_fields(EndTransaction, command.fields)
        except FieldError:
            return None
        if transactions.config.is_slave or request.commit_or_rollback != TRANSACTION_COMMIT:
            return None
        half = transactions.planned_half(request)
        template = None if half is None else half.template(transactions.store)
        return None if half is None or template is None else Commit(command, half, template)

    def _store(self, connection: Connection, alike: Sequence[Commit]) -> None:
        try:
            count = self._transactions.half_messages.commit_alike(
                alike[0].template, [commit.half for commit in alike]
            )
        except Exception as error:  # as for a handler: our mistake must not end the connection
            for commit in alike:  # they may be in the log: handled one by one they would be stored again
                connection.refuse(commit.command, error)
            return
        for commit in alike[:count]:
            connection.answer(commit.command, Answer())
        for commit in alike[count:]:
            connection.take(commit.command)
