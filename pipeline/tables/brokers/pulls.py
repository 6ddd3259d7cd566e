"""One pull of a queue: quick while all is well, with retries otherwise.

`Puller.start` sends a pull over the open connection without a task or a coroutine, because a broker limits a pull to 32
messages and a range takes thousands of them. Whatever is not an ordinary reply with messages is left to `Puller.pull`,
which asks again, for as long as the options say, by fresh routes.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from pocketmq.client.connections.connection import Connection
from pocketmq.client.errors import ClientError, NotReachable, RequestRefused, RouteNotFound
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION
from pocketmq.protocol.requests.pull import PullMessage, PullMessageReply, pull_form
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.header_form import HeaderForm
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Request

from ..planning.positions import Queue
from ..planning.topic_options import SourceOptions
from .broker_client import BrokerClient

_ANSWERED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


class PullReply(msgspec.Struct, gc=False):
    """One reply: the bytes of records, and the offset of the next pull."""

    code: int
    body: bytes | memoryview | None
    next_offset: int
    min_offset: int
    max_offset: int


Done = Callable[[int, PullReply | None], None]
"""Called with the offset that was asked for, and the reply; None if the pull must be asked again by `Puller.pull`."""


class Puller:
    """Pulls of one queue."""

    def __init__(self, client: BrokerClient, queue: Queue, options: SourceOptions) -> None:
        self._client = client
        self._queue = queue
        self._options = options
        self._timeout_seconds = options.pull_timeout_ms / 1000
        self._request = self._request_at(0, options.pull_batch_size)
        self._connection: Connection | None = None
        self._form: HeaderForm | None = None

    async def connect(self) -> None:
        """Open the connection for `start`. If that fails, or only a slave is left, `start` does nothing."""
        try:
            connection, is_slave = await self._client.broker_or_slave(
                self._queue.topic, self._queue.broker_name
            )
        except ClientError:
            self._connection = None
        else:
            if connection is not self._connection:
                forms = connection.takes_templates
                self._form = pull_form(self._request, "PYTHON", V5_5_0) if forms else None
            self._connection = None if is_slave else connection

    def start(self, offset: int, count: int, done: Done) -> bool:
        """Send a pull now, `done` gets its outcome later. False if that is not possible."""
        connection = self._connection
        if connection is None or connection.closed:
            return False
        count = min(count, self._options.pull_batch_size)
        due = asyncio.get_running_loop().time() + self._timeout_seconds
        pull = _QuickPull(self._request, self._timeout_seconds, due, offset, done)
        try:
            if self._form is not None:
                opaque = connection.next_opaque()
                connection.post_frame(pull, opaque, self._form.head((offset, count, opaque), 0), b"")
            else:
                pull.request = self._request_at(offset, count)
                connection.post_call(pull)
        except ClientError:
            return False
        return True

    async def pull(self, offset: int, count: int, *, waited_seconds: float = 0.0) -> PullReply:
        """The reply to a pull; `SourceUnreachable` after all retries, `PipelineError` for a refusal.

        `waited_seconds` were spent on this pull already, and are part of the time for retries.
        """
        queue = self._queue
        request = self._request_at(offset, min(count, self._options.pull_batch_size))

        async def ask(fresh: bool) -> PullReply:
            connection, is_slave = await self._client.broker_or_slave(
                queue.topic, queue.broker_name, fresh=fresh
            )
            command = await connection.post(request, timeout_seconds=self._timeout_seconds)
            # The broker is just starting, or the topic was deleted.
            if command.code == ResponseCode.TOPIC_NOT_EXIST:
                raise RouteNotFound(command.remark or f"{queue} does not exist")
            if command.code not in _ANSWERED:
                raise RequestRefused(command.code, command.remark or "", request.name)
            reply = Connection.read_fields(PullMessageReply, command, request.name)
            if is_slave and not reply.min_offset <= offset < reply.max_offset:
                # It may lag. What is missing here is lost only if the master says so.
                raise NotReachable(
                    f"{queue} has no master in its route, and the slave holds [{reply.min_offset}, {reply.max_offset})"
                )
            return PullReply(
                command.code, command.body, reply.next_begin_offset, reply.min_offset, reply.max_offset
            )

        what, retry_timeout_ms = f"pull of {queue} at {offset}", self._options.retry_timeout_ms
        return await self._client.with_retries(what, ask, retry_timeout_ms, waited_seconds=waited_seconds)

    def _request_at(self, offset: int, count: int) -> PullMessage:
        options, queue = self._options, self._queue
        return PullMessage(
            consumer_group=options.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=PULL_SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription=options.expression,
            sub_version=0,
            expression_type=options.filter_type,
            broker_name=queue.broker_name,
        )


class _QuickPull(msgspec.Struct, eq=False):
    """One pull under way: a `Call` of the connection."""

    request: Request[Any]
    timeout_seconds: float
    due: float
    offset: int
    done: Done

    def stored(self, reply: object) -> bool:
        return False

    def replied(self, reply: Command) -> None:
        self.done(self.offset, _messages_of(reply, self.offset))

    def failed(self, error: Exception) -> None:
        self.done(self.offset, None)


def _messages_of(command: Command, offset: int) -> PullReply | None:
    """The reply if it is one with messages, and names a later offset."""
    fields = command.fields
    if command.code != ResponseCode.SUCCESS or command.body is None or fields is None:
        return None
    try:
        following = int(fields["nextBeginOffset"])
        reply = PullReply(
            command.code, command.body, following, int(fields["minOffset"]), int(fields["maxOffset"])
        )
    except (KeyError, ValueError):
        return None
    return reply if following > offset else None
