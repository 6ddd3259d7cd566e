"""One round of a mirror: what is new in each queue is copied to its queue of the other cluster, and then committed.

    source queue  --pull-->  batch  --send, in order-->  target queue      `QUEUES_AT_ONCE` queues side by side
                                         |-> where it was stored: the offset map, from which groups are moved
    then: offset of group pocketmq-mirror-NAME, in the source and in the target

A request without an answer is not sent again at once, and neither is what a killed mirror had in flight: the target
may have stored it. The mirror looks for it (`mirror_recovery.py`), and goes on after the last copy that it finds.
It sends only while it has the lease of a queue (`mirror_lease.py`).
Queues of a broker that does not answer wait for it; the others go on. While a source broker has no master, what its
slave holds is copied.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa
from pocketmq.client.errors import ClientError, RequestRefused
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic
from pocketmq.protocol.wire.response_codes import ResponseCode

from ...errors import GroupInUse, PipelineError, SourceUnreachable
from ...tables.brokers.batch_sender import BatchSender
from ...tables.brokers.broker_client import BrokerClient
from ...tables.brokers.group_offsets import GroupWriter
from ...tables.brokers.range_reader import BYTES_AHEAD, RangeReader
from ...tables.planning.positions import Offsets, Queue
from ...tables.planning.ranges import Bounds, QueueBounds, Range
from ...tables.planning.topic_options import SourceOptions
from ...tables.records.columns import MESSAGE_COLUMNS, arrow_schema
from .copies import ATTEMPTS, BATCH_BYTES, BATCH_ROWS, COLUMNS, Copy, copies_of
from .mirror_lease import MirrorLease
from .mirror_positions import SOURCE, TARGET, MirrorPositions, SideUnreachable, asking
from .mirror_queues import QueuePairs, Side
from .mirror_recovery import MAX_SCANNED, found_copies, ids_of, search_begin
from .offset_map import OffsetMap, Piece, joined

_log = logging.getLogger("pocketmq.pipeline")

SEND_MS: Final = 10_000
ROUND_MS: Final = 2_000
"""How long a round waits for a broker. Then its queues wait for the next round."""
STEP: Final = 20_000
"""Messages of a queue that a round copies; three times as many if there are few queues."""
FEW_QUEUES: Final = 4
QUEUES_AT_ONCE: Final = 16
"""Queues that are copied side by side. The requests of one queue wait for each other, which keeps its order."""
PULLS_AT_ONCE: Final = 256
"""Pulls of all queues that are in flight: 16 of each of 16 queues, all of them of a single one."""
MIN_BYTES: Final = 8 * 1024
"""Below this size of a request messages are sent one by one."""
READ: Final = (*COLUMNS, ATTEMPTS, "queueOffset")


class Mirroring:
    """Copies topics from one cluster to another, round by round. Not thread-safe."""

    def __init__(
        self, source: Side, target: Side, *, group: str, owner: str, starts_at_end: bool, offsets: OffsetMap
    ) -> None:
        """`owner` is this mirror's name in the locks of queues."""
        self._group = group
        self._starts_at_end = starts_at_end
        self._map = offsets
        self._source = BrokerClient(source.namesrv_addr, source.access)
        self._target = BrokerClient(target.namesrv_addr, target.access, beside=self._source)
        self._of_source, self._of_target = (
            SourceOptions(
                namesrv_addr=side.namesrv_addr,
                access=side.access,
                fail_on_data_loss=False,
                retry_timeout_ms=ROUND_MS,
                decode_rows=BATCH_ROWS,
            )
            for side in (source, target)
        )
        self._positions = MirrorPositions(self._source, self._target, group)
        self._lease = MirrorLease(self._source, group, owner)
        self._sure: set[Queue] = set()
        """Queues of the source all of whose copies were acknowledged, and that no other mirror had since."""
        self._target_bounds: dict[Queue, QueueBounds] = {}
        """What the target queues of this round's unsure queues hold, as far as they were asked together."""
        self._sources: Counter[Queue] = Counter()
        """How many queues are copied to each queue of the target."""
        self._most_bytes: dict[str, int] = {}
        """How large a request to a broker of the target may be, as far as its refusals have shown."""
        self.queues = QueuePairs(self._source, self._target, target)
        self.away: dict[tuple[str, str], PipelineError] = {}
        """(side, broker name) of what did not answer in the last round, with the reason."""
        self.slaves: set[str] = set()
        """Brokers of the source that had no master in the last round."""
        self.refused_groups: set[str] = set()
        """Groups that have consumers in the target."""
        self.copied: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        """Messages of each topic that were deleted before they were copied."""
        self.found: Counter[str] = Counter()
        """Messages of each topic that the target already had: they were in flight when a mirror was killed."""

    def close(self) -> None:
        """Give the lease back, and close the connections of both sides."""
        self._lease.release()
        self._target.close()
        with self._source.closing():
            pass

    def round(self, is_ended: Callable[[], bool] = lambda: False) -> int:
        """Copy some messages of each queue. Returns how many were copied, or found in the target.

        `LeaseLost` if another mirror has a queue, or may have had it.
        """
        away_before, self.away = self.away, {}
        done_before = self.copied.total() + self.found.total()
        bounds = self._bounds()
        self.slaves = {queue.broker_name for queue, held in bounds.items() if held.is_of_slave}
        new, unlocked = self._lease.take(bounds)
        self._sure -= new
        self.away |= {(SOURCE, broker_name): error for broker_name, error in unlocked.items()}
        try:
            parts = self._new_parts(bounds, is_ended)
            # Before anything is sent: a mirror that is killed in its first round then knows that it must look.
            if self._positions.has_uncommitted:
                self._commit()
            self._source.run(self._copy_parts(parts, is_ended))
        finally:
            self._commit()
        self._say_what_changed(away_before)
        return self.copied.total() + self.found.total() - done_before

    def _commit(self) -> None:
        """Write the offset map, then commit the positions of the queues that are surely this mirror's."""
        self._map.save()
        lost = {
            (SOURCE, queue.broker_name)
            for queue in self.queues.pairs
            if not self._lease.is_sure(queue.broker_name)
        }
        self._positions.commit(lost | self.away.keys(), self.slaves)

    def _bounds(self) -> Bounds:
        """What the queues hold whose broker answers."""
        try:
            with asking(SOURCE):
                return self._source.bounds(self.queues.pairs, ROUND_MS)
        except SideUnreachable:
            pass
        found: dict[Queue, QueueBounds] = {}
        for broker_name in sorted({queue.broker_name for queue in self.queues.pairs}):
            queues = [queue for queue in self.queues.pairs if queue.broker_name == broker_name]
            try:
                with asking(SOURCE):
                    found |= self._source.bounds(queues, ROUND_MS)
            except SideUnreachable as error:
                self.away[SOURCE, broker_name] = error.error
        return found

    def _new_parts(self, bounds: Bounds, is_ended: Callable[[], bool]) -> dict[Range, Queue]:
        """What each queue has that the target does not, with the target queue."""
        parts: dict[Range, Queue] = {}
        self._sources = Counter(self.queues.pairs.values())
        self._positions.learn({queue: self.queues.pairs[queue] for queue in bounds})
        self._target_bounds.clear()
        unsure = {self.queues.pairs[queue] for queue in bounds if queue not in self._sure}
        if len(unsure) > 1:
            with contextlib.suppress(PipelineError):  # then each is asked by itself, which says what is wrong
                self._target_bounds |= self._target.bounds(unsure, ROUND_MS)
        for queue, held in bounds.items():
            target = self.queues.pairs[queue]
            if is_ended() or self._is_away(queue, target):
                continue
            try:
                part = self._new_part(queue, held, target)
            except SideUnreachable as error:
                self._keep_away(queue, target, error)
                continue
            if part is not None:
                parts[part] = target
        return parts

    def _is_away(self, queue: Queue, target: Queue) -> bool:
        return (SOURCE, queue.broker_name) in self.away or (TARGET, target.broker_name) in self.away

    def _keep_away(self, queue: Queue, target: Queue, error: SideUnreachable) -> None:
        self._sure.discard(queue)
        broker_name = queue.broker_name if error.side == SOURCE else target.broker_name
        self.away[error.side, broker_name] = error.error

    async def _copy_parts(self, parts: Mapping[Range, Queue], is_ended: Callable[[], bool]) -> None:
        """Copy parts of queues side by side. The first error is raised when all of them have ended."""
        limit = asyncio.Semaphore(QUEUES_AT_ONCE)
        at_once = max(1, min(len(parts), QUEUES_AT_ONCE))

        async def copy(part: Range, target: Queue) -> None:
            async with limit:
                if is_ended() or self._is_away(part.queue, target):
                    return
                try:
                    await self._copy(part, target, at_once, is_ended)
                except SideUnreachable as error:
                    self._keep_away(part.queue, target, error)

        keeping = asyncio.create_task(self._lease.keep())
        try:
            results = await asyncio.gather(*(copy(*one) for one in parts.items()), return_exceptions=True)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        for failure in filter(None, results):
            raise failure

    def _new_part(self, queue: Queue, held: QueueBounds, target: Queue) -> Range | None:
        """The messages to copy next, None if there are none."""
        with asking(TARGET):
            is_first_run = self._positions.reached_in(target) is None
        with asking(SOURCE):
            position = self._positions.next_of(
                queue, held, starts_at_end=self._starts_at_end, is_first_run=is_first_run
            )
        if position < held.low:
            if held.is_of_slave:
                return None  # the master may hold more
            self.lost[queue.topic] += held.low - position
            position = held.low
            self._positions.advance(queue, position)
        end = min(held.high, position + self._step(target))
        if end > position and queue not in self._sure:
            position = self._skip_existing_copies(
                Range(queue, position, end), held, target, is_first_run=is_first_run
            )
        return Range(queue, position, end) if end > position else None

    def _step(self, target: Queue) -> int:
        """How many messages a round copies of a queue. A mirror that was killed within it finds its copies."""
        step = 3 * STEP if self._sources.total() <= FEW_QUEUES else STEP
        return min(step, MAX_SCANNED // self._sources[target])

    def _skip_existing_copies(
        self, part: Range, source: QueueBounds, target: Queue, *, is_first_run: bool
    ) -> int:
        """Pass over the messages that the target already has; the next message to copy."""
        self._source.run(self._lease.renew())
        held = self._target_bounds.get(target)
        if held is None:
            with asking(TARGET):
                held = self._target.bounds([target], ROUND_MS)[target]
        if held.is_of_slave:
            raise SideUnreachable(TARGET, SourceUnreachable(f"{target} has no master in its route"))
        if is_first_run:
            self._positions.advance(part.queue, part.lo, target, held.high)
            self._sure.add(part.queue)
            return part.lo
        with asking(SOURCE):
            before = Range(part.queue, max(part.lo - 1, source.low), part.lo)
            known = [message_id for message_id, _ in ids_of(self._source, before, self._of_source)]
            wanted = ids_of(self._source, part, self._of_source)
        with asking(TARGET):
            try:
                first = search_begin(self._target, target, held, known[0] if known else None, self._of_target)
                stored = ids_of(self._target, Range(target, first, held.high), self._of_target)
            except SourceUnreachable:
                raise
            except PipelineError as error:
                self._positions.warn_target_not_committable(error)
                stored = []
        offsets = found_copies([message_id for message_id, _ in wanted], stored)
        if len(offsets) < len(wanted):
            self._sure.add(part.queue)
        if not offsets:
            return part.lo
        places = zip((offset for _, offset in wanted), offsets, strict=False)
        self._map.add(part.queue, (Piece(offset, offset, target, copy) for offset, copy in places))
        position = wanted[len(offsets) - 1][1] + 1
        self.found[part.queue.topic] += len(offsets)
        self._positions.advance(part.queue, position, target, offsets[-1] + 1)
        return position

    async def _copy(self, part: Range, target: Queue, at_once: int, is_ended: Callable[[], bool]) -> None:
        """Copy a part of a queue, one of `at_once` that are copied side by side."""
        schema = arrow_schema(MESSAGE_COLUMNS, READ)
        options = msgspec.structs.replace(self._of_source, pulls_in_flight=PULLS_AT_ONCE // at_once)
        reader = RangeReader(self._source, part, options, max_bytes_ahead=BYTES_AHEAD // at_once)
        # Closed at once: the error of a broker that is away is kept, and would keep the pulls that are in flight.
        async with contextlib.aclosing(reader.each()) as batches:
            while True:
                with asking(SOURCE):
                    records = await anext(batches, None)
                if records is None:
                    break
                records.keep_bodies_compressed()
                batch = pa.RecordBatch.from_arrays(records.columns(READ), schema=schema)
                await self._send(batch, part.queue, target)
                if is_ended():
                    return
        self.lost[part.queue.topic] += reader.lost
        self._positions.advance(part.queue, part.hi)

    async def _send(self, batch: Any, queue: Queue, target: Queue) -> None:
        """Send a batch; in smaller requests if the broker finds these too large."""
        while batch.num_rows:
            most_bytes = self._most_bytes.get(target.broker_name, BATCH_BYTES)
            rows, refusal = await self._send_rows(batch, queue, target, most_bytes)
            batch = batch.slice(rows)
            if refusal is None:
                continue
            if most_bytes == 0:
                offset, size = batch.column("queueOffset")[0], len(batch.column("body")[0].as_buffer())
                raise PipelineError(
                    f"the target refuses the message at offset {offset} of {queue}, whose body has {size:,} bytes: "
                    f"{_root(refusal)}"
                ) from refusal
            self._most_bytes[target.broker_name] = most_bytes // 2 if most_bytes > MIN_BYTES else 0

    async def _send_rows(
        self, batch: Any, queue: Queue, target: Queue, most_bytes: int
    ) -> tuple[int, PipelineError | None]:
        """How many rows were stored, and the error if the target refused the next request as too large."""
        # No retries: a request without an answer may be stored, so the next round looks for it first.
        sender = BatchSender(
            self._target,
            group=self._group,
            in_flight=1,
            timeout_ms=SEND_MS,
            retry_timeout_ms=SEND_MS,
            retries=0,
        )
        stored: list[tuple[int, int, Queue, int]] = []
        copies = copies_of(
            batch,
            target.topic,
            max_bytes=most_bytes,
            keeps_attempts=is_retry_topic(queue.topic) or is_dlq_topic(queue.topic),
        )
        try:
            for copy in copies:

                def told(place: Queue, offset: int, copy: Copy = copy) -> None:
                    stored.append((copy.first, copy.stop, place, offset))

                self._lease.check(queue)
                with asking(TARGET):
                    await sender.deliver(copy.request(sender, target.topic), copy.body, target, told)
        except PipelineError as error:
            root = _root(error)
            if not (isinstance(root, RequestRefused) and root.code == ResponseCode.MESSAGE_ILLEGAL):
                raise
            return max((stop for _, stop, _, _ in stored), default=0), error
        finally:
            self._acknowledged(queue, batch.column("queueOffset").to_pylist(), stored)
        return batch.num_rows, None

    def _acknowledged(
        self, queue: Queue, offsets: list[int], stored: list[tuple[int, int, Queue, int]]
    ) -> None:
        """Remember which rows of a batch are stored: its first ones, because a queue's requests wait for each other."""
        if not stored:
            return
        pieces: list[Piece] = []
        for first, stop, target, begin in sorted(stored):
            if offsets[stop - 1] - offsets[first] == stop - 1 - first:
                pieces.append(Piece(offsets[first], offsets[stop - 1], target, begin))
                continue
            pieces += joined(  # source offsets are missing
                Piece(offsets[row], offsets[row], target, begin + row - first) for row in range(first, stop)
            )
        rows, (_, _, target, _) = max(stop for _, stop, _, _ in stored), stored[-1]
        self.copied[queue.topic] += rows
        self._map.add(queue, pieces)
        self._positions.advance(queue, offsets[rows - 1] + 1, target, pieces[-1].target_end)

    def _say_what_changed(self, before: dict[tuple[str, str], PipelineError]) -> None:
        for place in self.away.keys() - before.keys():
            _log.warning("%s; its queues wait, the others go on", self._reason(place))
        for side, broker_name in before.keys() - self.away.keys():
            _log.warning("broker %s of the %s answers again", broker_name, side)

    def _reason(self, place: tuple[str, str]) -> str:
        side, broker_name = place
        return f"broker {broker_name} of the {side} does not answer: {_root(self.away[place])}"

    def give_up(self, seconds: float) -> SourceUnreachable:
        """The error that says what has not answered for so long."""
        reasons = "; ".join(self._reason(place) for place in sorted(self.away))
        return SourceUnreachable(f"{reasons}, given up after {seconds:g} s")

    def waiting(self) -> int:
        """Messages that are not yet copied, in the queues whose broker answers."""
        return sum(self._positions.waiting(queue, held) for queue, held in self._bounds().items())

    def move_groups(self, groups: Iterable[str]) -> int:
        """Commit the groups' offsets in the target, translated, but never backwards; how many offsets were known.

        A group that has consumers in the target is left alone, which is said once.
        """
        return sum(self._move(group) for group in groups)

    def _move(self, group: str) -> int:
        queues = [queue for queue in self.queues.pairs if (SOURCE, queue.broker_name) not in self.away]
        offsets: Offsets = {}
        try:
            for queue, offset in self._source.committed(group, queues, ROUND_MS).items():
                place = None if offset is None else self._map.translated(queue, offset)
                if place is not None:
                    target, translated = place
                    offsets[target] = max(translated, offsets.get(target, 0))
            if offsets:
                writer = GroupWriter(self._target, group, timeout_ms=ROUND_MS)
                writer.commit(offsets, only_forward=True)
        except GroupInUse:
            if group not in self.refused_groups:
                self.refused_groups.add(group)
                _log.warning("group %s has consumers in the target: its offsets are theirs now", group)
            return 0
        except SourceUnreachable:
            return 0  # the next round tries again
        self.refused_groups.discard(group)
        return len(offsets)


def _root(error: BaseException) -> BaseException:
    """What was wrong at first: the words of the connection."""
    while isinstance(error.__cause__, ClientError | PipelineError):
        error = error.__cause__
    return error
