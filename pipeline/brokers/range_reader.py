"""Pulls one range of a queue: several pulls in flight, replies joined, some thousand records decoded at once.

    [lo ............................................ hi)      the range of a task
    [ 32 ][ 32 ][ 32 ][ 32 ] ...                              parts, at most `pulls_in_flight` of them requested at once
      |__ after a short reply the rest of the part is requested again

Brokers limit a pull to 32 messages (8 from disk), whatever the request says. Decoding 32 at a time costs three times as
much as decoding 4096, and waiting for each reply several times that. Replies are read in the order of their parts. With
a filter a part is wider. A reply may then reach beyond its part; that rest is dropped, because the next part brings it
too.

After a lost connection the part is requested again, until the time for retries is over. Memory is limited to
`BYTES_AHEAD` of replies that wait for their turn and one more reply for each part in flight, and `BATCH_BYTES` of
joined ones (one reply may exceed it).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
from pocketmq.client.connections.connection import Connection
from pocketmq.client.errors import NotReachable, RequestRefused, RouteNotFound
from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION
from pocketmq.protocol.requests.pull import PullMessage, PullMessageReply
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import DataLossError, PipelineError
from ..planning.positions import Queue
from ..planning.ranges import Loss, Range
from ..planning.topic_options import SourceOptions, tags_of
from ..records.boundaries import walk_records
from ..records.records import Records
from .broker_client import BrokerClient

_log = logging.getLogger("pocketmq.pipeline")

BATCH_BYTES: Final = 8 * 1024 * 1024
BYTES_AHEAD: Final = 32 * 1024 * 1024
"""Replies of later parts that may wait until the parts before them are complete."""
RANGES_AT_ONCE: Final = 32
FILTERED_PART: Final = 4096
"""Offsets of a part if the broker filters: it examines so many entries for one reply."""
_ANSWERED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


class _Reply(msgspec.Struct):
    """One reply: the bytes of records, and the offset of the next pull."""

    code: int
    body: Any
    next_offset: int
    min_offset: int
    max_offset: int


class _Part:
    """A part of the range, and its replies that have not been read yet, each with the offset it was requested at."""

    def __init__(self, wanted: Range) -> None:
        self.range = wanted
        self.replies: deque[tuple[int, _Reply]] = deque()
        self.task: asyncio.Task[None] | None = None
        self.is_ended = False


class RangeReader:
    """Reads one range once. Afterwards `losses` has what was missing and tolerated, `lost` how many messages."""

    def __init__(self, client: BrokerClient, wanted: Range, options: SourceOptions) -> None:
        self._client = client
        self._range = wanted
        self._options = options
        self._unrequested = self._parts()
        self._pulls: deque[_Part] = deque()
        self._bytes_ahead = 0
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self.losses: list[Loss] = []
        self.lost = 0
        self.rows = 0
        self._tags: frozenset[str] = frozenset()
        if options.filter_type == "TAG":
            self._tags = tags_of(options.expression)

    def batches(self) -> Iterator[Records]:
        """Records in the order of the queue, about `decode_rows` at a time. Runs the client's loop between two batches.

        `DataLossError` if messages are lost and that is not tolerated; `SourceUnreachable` after all retries.
        """
        try:
            while (bodies := self._client.run(self._next_bodies())) is not None:
                yield from self._decoded(bodies)
        finally:
            if self._pulls:
                self._client.run(self._cancel())
        self._check_count()

    async def read_whole(self) -> list[Records]:
        """All records of a small range; errors as `batches`."""
        found: list[Records] = []
        try:
            while (bodies := await self._next_bodies()) is not None:
                found += self._decoded(bodies)
        finally:
            await self._cancel()
        self._check_count()
        return found

    async def _next_bodies(self) -> list[Any] | None:
        """The bodies of the next replies, about `decode_rows` records: the loop is entered once for all of them.

        None at the end of the range.
        """
        decode_rows, pulls = self._options.decode_rows, self._pulls
        bodies: list[Any] = []
        count = size = 0
        self._request_parts()
        while pulls and count < decode_rows and size < BATCH_BYTES:
            part = pulls[0]
            if part.replies:
                offset, reply = part.replies.popleft()
                self._bytes_ahead -= len(reply.body or b"")
                self._has_room.set()
                body = self._within(reply, part.range)
                if body is not None:
                    bodies.append(body)
                    size += len(body)
                count += reply.next_offset - offset
            elif part.is_ended:
                assert part.task is not None
                await part.task  # raises its failure
                pulls.popleft()
                self._has_room.set()  # the next part is the first one now, which need not wait
                self._request_parts()
            else:
                self._arrived.clear()
                await self._arrived.wait()
        return bodies if bodies or pulls else None

    def _request_parts(self) -> None:
        create_task = asyncio.get_running_loop().create_task
        while len(self._pulls) < self._options.pulls_in_flight:
            wanted = next(self._unrequested, None)
            if wanted is None:
                return
            part = _Part(wanted)
            part.task = create_task(self._pull_part(part))
            self._pulls.append(part)

    async def _cancel(self) -> None:
        tasks = [part.task for part in self._pulls if part.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pulls.clear()

    def _parts(self) -> Iterator[Range]:
        options, wanted = self._options, self._range
        step = max(FILTERED_PART, options.pull_batch_size) if options.is_filtered else options.pull_batch_size
        for lo in range(wanted.lo, wanted.hi, step):
            yield Range(wanted.queue, lo, min(lo + step, wanted.hi))

    def _tell_of(self, part: _Part) -> None:
        """Wake the reader, which waits for the first part only."""
        if self._pulls and self._pulls[0] is part:
            self._arrived.set()

    async def _pull_part(self, part: _Part) -> None:
        wanted = part.range
        offset = wanted.lo
        try:
            while offset < wanted.hi:
                while self._bytes_ahead >= BYTES_AHEAD and (part is not self._pulls[0] or part.replies):
                    self._has_room.clear()
                    await self._has_room.wait()
                reply = await self._pull(wanted.queue, offset, wanted.hi - offset)
                at_end = reply.code == ResponseCode.PULL_NOT_FOUND and reply.next_offset <= offset
                if at_end or reply.code == ResponseCode.PULL_OFFSET_MOVED:
                    offset = self._skip_lost(wanted, offset, reply)
                    continue
                if reply.next_offset <= offset:
                    raise PipelineError(
                        f"{wanted.queue}: the reply to a pull at offset {offset} names {reply.next_offset} "
                        "as the next offset"
                    )
                part.replies.append((offset, reply))
                self._bytes_ahead += len(reply.body or b"")
                offset = reply.next_offset
                if offset < wanted.hi:
                    self._tell_of(part)
        finally:
            part.is_ended = True
            self._tell_of(part)

    def _skip_lost(self, part: Range, offset: int, reply: _Reply) -> int:
        """The queue no longer has this offset: report the loss, and return the offset to continue at."""
        end = min(max(reply.min_offset, offset), part.hi) if reply.min_offset > offset else part.hi
        reason = f"the queue holds [{reply.min_offset}, {reply.max_offset})"
        loss = Loss(part.queue, offset, end, reason)
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{loss}; failOnDataLoss=false skips them")
        _log.warning("skipped, because failOnDataLoss is false: %s", loss)
        self.losses.append(loss)
        self.lost += end - offset
        return end

    async def _pull(self, queue: Queue, offset: int, count: int) -> _Reply:
        options = self._options
        request = PullMessage(
            consumer_group=options.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=min(count, options.pull_batch_size),
            sys_flag=PULL_SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription=options.expression,
            sub_version=0,
            expression_type=options.filter_type,
            broker_name=queue.broker_name,
        )

        async def ask(fresh: bool) -> _Reply:
            connection, is_slave = await self._client.broker_or_slave(
                queue.topic, queue.broker_name, fresh=fresh
            )
            command = await connection.exchange(request, timeout_seconds=options.pull_timeout_ms / 1000)
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
            return _Reply(
                command.code, command.body, reply.next_begin_offset, reply.min_offset, reply.max_offset
            )

        return await self._client.with_retries(f"pull of {queue} at {offset}", ask, options.retry_timeout_ms)

    # -- decoding

    def _within(self, reply: _Reply, part: Range) -> Any:
        """The reply's bytes, without the records after the part."""
        if reply.code != ResponseCode.SUCCESS or reply.body is None or reply.next_offset <= part.hi:
            return reply.body if reply.code == ResponseCode.SUCCESS else None
        view = memoryview(reply.body)
        records = Records(view, walk_records(view, 0, len(view)).starts)
        beyond = np.flatnonzero(records.queue_offsets >= part.hi)
        return view[: int(records.starts[beyond[0]])] if len(beyond) else view

    def _decoded(self, bodies: list[Any]) -> Iterator[Records]:
        if not bodies:
            return
        joined = memoryview(b"".join(bodies))
        found = walk_records(joined, 0, len(joined))
        if found.stop != len(joined):
            raise PipelineError(
                f"{self._range.queue}: a reply holds bytes that are not a record: {found.reason}"
            )
        records = Records(joined, found.starts, broker_name=self._range.queue.broker_name)
        if not self._options.decompresses:
            records.keep_bodies_compressed()
        if self._tags:  # the broker compares hashes only, and two tags may share one
            records = records.only(records.has_tag(self._tags))
        self.rows += len(records)
        if len(records):
            yield records

    def _check_count(self) -> None:
        """Without a filter every offset is one message."""
        if self._options.is_filtered or self.rows + self.lost == self._range.size:
            return
        lo, hi = self._range.lo, self._range.hi
        text = f"{self._range.queue}: {self.rows} messages where offsets [{lo}, {hi}) should have {self._range.size}"
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{text}; failOnDataLoss=false accepts that")
        _log.warning("accepted, because failOnDataLoss is false: %s", text)
        self.lost = max(0, self._range.size - self.rows)


def read_ranges_whole(
    client: BrokerClient, ranges: Iterable[Range], options: SourceOptions
) -> list[list[Records]]:
    """The records of several small ranges, `RANGES_AT_ONCE` of them read at a time; errors as `RangeReader.batches`."""
    limit = asyncio.Semaphore(RANGES_AT_ONCE)

    async def read(wanted: Range) -> list[Records]:
        async with limit:
            return await RangeReader(client, wanted, options).read_whole()

    async def read_all() -> list[list[Records]]:
        return await asyncio.gather(*map(read, ranges))

    return client.run(read_all())
