"""Pulls one range of a queue: several pulls in flight, replies joined, some thousand records decoded at once.

    [lo ............................................ hi)      the range of a task
    [ 32 ][ 32 ][ 32 ][ 32 ] ...                              parts, at most `pulls_in_flight` of them requested at once
      |__ after a short reply the rest of the part is requested again

Brokers limit a pull to 32 messages (8 from disk) unless they are configured otherwise, whatever the request says. So
the reply to the first pull, which goes alone, shows how wide a part should be (`_PartWidth`). Decoding 32 at a time
costs three times as much as decoding thousands, and waiting for each reply several times that. Replies are read in the
order of their parts. With a filter a part is wider. A reply may then reach beyond its part; that rest is dropped,
because the next part brings it too.

After a lost connection the part is requested again, until the time for retries is over (`pulls.py`). Memory is limited
to `BYTES_AHEAD` of replies that wait for their turn and one more reply for each part in flight, and `BATCH_BYTES` of
joined ones (one reply may exceed it).
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
from pocketmq.protocol.wire.response_codes import ResponseCode

from ...errors import DataLossError, PipelineError
from ..planning.ranges import Loss, Range
from ..planning.topic_options import SourceOptions, tags_of
from ..records.boundaries import why_none
from ..records.records import Records, scan
from .broker_client import BrokerClient, gather_all
from .pulls import Puller, PullReply
from .wait_log import Silence

_log = logging.getLogger("pocketmq.pipeline")

BATCH_BYTES: Final = 8 * 1024 * 1024
BYTES_AHEAD: Final = 32 * 1024 * 1024
"""Replies of later parts that may wait until the parts before them are complete."""
RANGES_AT_ONCE: Final = 32
FILTERED_PART: Final = 4096
"""Offsets of a part if the broker filters: it examines so many entries for one reply."""


class _PartWidth:
    """How many offsets a part has: as many as the broker gives in one reply, as far as its replies have shown.

    A wider part would take several pulls one after another, a narrower one would waste a pull. After `patience` parts
    that one reply filled, a wider one is tried: the broker may give more of newer messages.
    """

    PATIENCE: Final = 256

    def __init__(self, most: int, *, is_known: bool = False) -> None:
        self.offsets = most
        self.is_known = is_known
        self._most = most
        self._patience = self.PATIENCE
        self._filled = 0

    def saw(self, asked: int, got: int) -> None:
        """The first reply to a part of `asked` offsets had `got` of them."""
        self.is_known = True
        if got < asked:
            # Where bytes are the limit, replies differ: a part a little narrower is filled by most of them.
            self.offsets = min(self.offsets, got if got <= 32 else got * 7 // 8)
            self._filled = 0
            self._patience *= 2
        elif asked >= self.offsets and self.offsets < self._most:
            self._filled += 1
            if self._filled >= self._patience:
                self._filled = 0
                self.offsets = min(self.offsets + max(self.offsets // 4, 1), self._most)


class _Part(msgspec.Struct, eq=False):
    """A part of the range, the offset of its next pull, and its replies that have not been read yet, each with the
    offset it was requested at."""

    range: Range
    offset: int
    replies: deque[tuple[int, PullReply]] = msgspec.field(default_factory=deque)
    task: asyncio.Task[None] | None = None
    is_ended: bool = False
    requested_at: float = 0.0
    """When its quick pull was sent, in seconds of the loop."""


class RangeReader:
    """Reads one range once. Afterwards `losses` has what was missing and tolerated, `lost` how many messages."""

    def __init__(
        self,
        client: BrokerClient,
        wanted: Range,
        options: SourceOptions,
        *,
        max_bytes_ahead: int = BYTES_AHEAD,
    ) -> None:
        self._client = client
        self._max_bytes_ahead = max_bytes_ahead
        self._range = wanted
        self._options = options
        self._puller = Puller(client, wanted.queue, options)
        self._width = _PartWidth(options.pull_batch_size)
        if options.is_filtered:
            self._width = _PartWidth(max(FILTERED_PART, options.pull_batch_size), is_known=True)
        self._unrequested = wanted.lo
        self._pulls: deque[_Part] = deque()
        self._bytes_ahead = 0
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self._is_over = False
        self.losses: list[Loss] = []
        self.lost = 0
        self.rows = 0
        self._replies = 0
        self._tags: frozenset[str] = frozenset()
        if options.filter_type == "TAG":
            self._tags = tags_of(options.expression)

    def batches(self) -> Generator[Records, None, None]:
        """Records in the order of the queue, about `decode_rows` at a time. Runs the client's loop between two batches.

        `DataLossError` if messages are lost and that is not tolerated; `SourceUnreachable` after all retries.
        """
        batches = self.each()
        try:
            while (records := self._client.run(anext(batches, None))) is not None:
                yield records
        finally:
            self._client.run(batches.aclose())

    async def each(self) -> AsyncGenerator[Records, None]:
        """The same for a coroutine of the client's loop."""
        try:
            while (bodies := await self._next_bodies()) is not None:
                for records in self._decoded(bodies):
                    yield records
        finally:
            await self._cancel()
        self._check_count()

    async def _next_bodies(self) -> list[Any] | None:
        """The bodies of the next replies, about `decode_rows` records: the loop is entered once for all of them.

        None at the end of the range.
        """
        await self._puller.connect()
        self._request_parts()
        decode_rows, pulls = self._options.decode_rows, self._pulls
        bodies: list[Any] = []
        count = size = 0
        what, limit_ms = f"pull of {self._range.queue}", self._options.retry_timeout_ms
        with Silence(self._client.notes, what, limit_ms, lambda: self._replies):
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
                    if part.task is not None:
                        await part.task  # raises its failure
                    pulls.popleft()
                    self._has_room.set()  # the next part is the first one now, which need not wait
                    self._request_parts()
                else:
                    self._arrived.clear()
                    await self._arrived.wait()
        return bodies if bodies or pulls else None

    # -- pulls

    def _request_parts(self) -> None:
        """Request as many parts as may be in flight; the first one goes alone until its reply shows how wide parts
        should be."""
        hi, width = self._range.hi, self._width
        while len(self._pulls) < (self._options.pulls_in_flight if width.is_known else 1):
            lo = self._unrequested
            if lo >= hi:
                return
            self._unrequested = min(lo + width.offsets, hi)
            part = _Part(Range(self._range.queue, lo, self._unrequested), lo)
            self._pulls.append(part)
            self._request(part)

    def _request(self, part: _Part) -> None:
        """Start the next pull of a part: quickly if that is possible."""
        part.requested_at = asyncio.get_running_loop().time()
        if self._must_wait(part) or not self._puller.start(
            part.offset, part.range.hi - part.offset, lambda offset, reply: self._replied(part, offset, reply)
        ):
            part.task = asyncio.get_running_loop().create_task(self._pull_part(part))

    def _must_wait(self, part: _Part) -> bool:
        return self._bytes_ahead >= self._max_bytes_ahead and (
            part is not self._pulls[0] or bool(part.replies)
        )

    def _replied(self, part: _Part, offset: int, reply: PullReply | None) -> None:
        """A quick pull has its reply, or must be asked again."""
        if self._is_over:
            return
        if reply is None:
            loop = asyncio.get_running_loop()
            waited_seconds = loop.time() - part.requested_at
            part.task = loop.create_task(self._pull_part(part, waited_seconds))
            return
        self._keep(part, offset, reply)
        part.is_ended = part.offset >= part.range.hi
        self._wake_reader(part)
        if not part.is_ended:
            self._request(part)

    def _keep(self, part: _Part, offset: int, reply: PullReply) -> None:
        """Keep a reply for its turn. The first one of a part tells about the broker."""
        self._replies += 1
        part.replies.append((offset, reply))
        part.offset = reply.next_offset
        self._bytes_ahead += len(reply.body or b"")
        if offset == part.range.lo and not self._options.is_filtered:
            is_first = not self._width.is_known
            self._width.saw(part.range.size, reply.next_offset - offset)
            if is_first:
                if reply.next_offset < part.range.hi:  # the rest becomes parts of the width that is known now
                    self._unrequested = reply.next_offset
                    part.range = Range(part.range.queue, offset, reply.next_offset)
                self._request_parts()

    async def _cancel(self) -> None:
        self._is_over = True
        tasks = [part.task for part in self._pulls if part.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pulls.clear()

    def _wake_reader(self, part: _Part) -> None:
        """Wake the reader, which waits for the first part only."""
        if self._pulls and self._pulls[0] is part:
            self._arrived.set()

    async def _pull_part(self, part: _Part, waited_seconds: float = 0.0) -> None:
        """Pull the rest of a part patiently: with retries, and after room for its replies.

        `waited_seconds` is how long its next pull was waited for already.
        """
        try:
            while part.offset < part.range.hi:
                while self._must_wait(part):
                    self._has_room.clear()
                    await self._has_room.wait()
                offset = part.offset
                reply = await self._puller.pull(offset, part.range.hi - offset, waited_seconds=waited_seconds)
                waited_seconds = 0.0
                at_end = reply.code == ResponseCode.PULL_NOT_FOUND and reply.next_offset <= offset
                if at_end or reply.code == ResponseCode.PULL_OFFSET_MOVED:
                    part.offset = self._skip_lost(part.range, offset, reply)
                    continue
                if reply.next_offset <= offset:
                    raise PipelineError(
                        f"{part.range.queue}: the reply to a pull at offset {offset} names {reply.next_offset} "
                        "as the next offset"
                    )
                self._keep(part, offset, reply)
                if part.offset < part.range.hi:
                    self._wake_reader(part)
        finally:
            part.is_ended = True
            self._width.is_known = True
            self._wake_reader(part)

    def _skip_lost(self, part: Range, offset: int, reply: PullReply) -> int:
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

    # -- decoding

    def _within(self, reply: PullReply, part: Range) -> Any:
        """The reply's bytes, without the records after the part."""
        if reply.code != ResponseCode.SUCCESS or reply.body is None or reply.next_offset <= part.hi:
            return reply.body if reply.code == ResponseCode.SUCCESS else None
        view = memoryview(reply.body)
        records = scan(view, 0, len(view), most=len(view))
        beyond = np.flatnonzero(records.queue_offsets >= part.hi)
        return view[: int(records.starts[beyond[0]])] if len(beyond) else view

    def _decoded(self, bodies: list[Any]) -> Iterator[Records]:
        if not bodies:
            return
        joined = memoryview(b"".join(bodies))
        records = scan(joined, 0, len(joined), most=len(joined), broker_name=self._range.queue.broker_name)
        stop = int(records.starts[-1] + records.sizes[-1]) if len(records) else 0
        if stop != len(joined):
            raise PipelineError(
                f"{self._range.queue}: a reply holds bytes that are not a record: {why_none(joined, stop)}"
            )
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
            return [records async for records in RangeReader(client, wanted, options).each()]

    return client.run(gather_all(map(read, ranges)))
