"""One round of a mirror: what is new in each queue is copied to its queue of the other cluster, and then committed.

    source queue  --pull-->  batch  --send, in order-->  target queue
                                         |-> where it was stored: the offset map, from which groups are moved
    then: offset of group pocketmq-mirror-NAME in the source

The offset is committed after the target has acknowledged everything, so a mirror that is killed repeats the messages in
flight, with the same ids, and loses none.
"""

import asyncio
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
from pocketmq.client.admin.client import AdminClient
from pocketmq.client.errors import ClientError
from pocketmq.protocol.bodies.topic_config import TopicConfig

from ..brokers.batch_sender import BatchSender
from ..brokers.broker_client import BrokerClient
from ..brokers.group_offsets import GroupWriter
from ..brokers.range_reader import RangeReader
from ..errors import OptionError, PipelineError, SourceUnreachable, TopicMissing
from ..planning.access import Access
from ..planning.positions import Offsets, Queue
from ..planning.ranges import Range
from ..planning.topic_options import SourceOptions
from ..records.columns import MESSAGE_COLUMNS, arrow_schema
from .copies import COLUMNS, send_copies
from .offset_map import OffsetMap, Piece

TIMEOUT_MS: Final = 10_000
RETRY_TIMEOUT_MS: Final = 60_000
STEP: Final = 20_000
"""Messages of a queue that are copied before its offset is committed."""
READ: Final = (*COLUMNS, "queueOffset")


class Side(msgspec.Struct, frozen=True):
    """One of the two clusters."""

    namesrv_addr: str
    access: Access


class Mirroring:
    """Copies topics from one cluster to another, round by round. Not thread-safe."""

    def __init__(
        self, source: Side, target: Side, *, group: str, starts_at_end: bool, offsets: OffsetMap
    ) -> None:
        self._sides = source, target
        self._group = group
        self._starts_at_end = starts_at_end
        self._map = offsets
        self._source = BrokerClient(source.namesrv_addr, source.access)
        self._target = BrokerClient(target.namesrv_addr, target.access)
        self._pairs: dict[Queue, Queue] = {}
        self._topics: dict[str, str] = {}
        self.lost: Counter[str] = Counter()
        """Messages of each topic that were deleted before they were copied."""

    def close(self) -> None:
        """Close the connections of both sides."""
        for client in (self._source, self._target):
            with client.closing():
                pass

    def pair(self, topics: dict[str, str]) -> None:
        """Find the queues of the topics, and create topics that the target lacks. `topics` is source -> target.

        `OptionError` for a topic that does not exist. `target_of` says which queues are paired.
        """
        self._topics = topics
        for topic, target_topic in topics.items():
            queues = self._source.queues(topic, TIMEOUT_MS)
            try:
                targets = self._target.queues(target_topic, TIMEOUT_MS)
            except OptionError:
                most = max(queue.queue_id for queue in queues) + 1
                asyncio.run(_create(self._sides[1], target_topic, most))
                targets = self._target.queues(target_topic, TIMEOUT_MS)
            for queue in queues:
                if queue not in self._pairs:
                    self._pairs[queue] = target_of(queue, targets)

    def pair_new_queues(self) -> None:
        """Find queues that were added, and those of a broker that was away. Pairs that exist stay as they are."""
        try:
            self.pair(self._topics)
        except (TopicMissing, SourceUnreachable):
            pass  # no broker has a topic at the moment: the next round asks again

    def round(self) -> Counter[str]:
        """Copy at most `STEP` messages of each queue; the copied messages of each topic."""
        bounds = self._source.bounds(self._pairs, RETRY_TIMEOUT_MS)
        stored = self._source.committed(self._group, self._pairs, RETRY_TIMEOUT_MS)
        copied: Counter[str] = Counter()
        for queue, target in self._pairs.items():
            held, position = bounds[queue], stored[queue]
            if position is None:
                position = held.high if self._starts_at_end else held.low
                self._commit({queue: position})
            if position < held.low:
                self.lost[queue.topic] += held.low - position
                position = held.low
            end = min(held.high, position + STEP)
            if end > position:
                copied[queue.topic] += self._copy(Range(queue, position, end), target)
                self._commit({queue: end})
        return copied

    def _commit(self, offsets: Offsets) -> None:
        self._source.commit(self._group, offsets, RETRY_TIMEOUT_MS)

    def _copy(self, part: Range, target: Queue) -> int:
        side = self._sides[0]
        options = SourceOptions(namesrv_addr=side.namesrv_addr, access=side.access, fail_on_data_loss=False)
        sender = BatchSender(
            self._target,
            group=self._group,
            in_flight=4,
            timeout_ms=TIMEOUT_MS,
            retry_timeout_ms=RETRY_TIMEOUT_MS,
        )
        pieces: list[Piece] = []
        schema, rows = arrow_schema(MESSAGE_COLUMNS, READ), 0
        for records in RangeReader(self._source, part, options).batches():
            batch = pa.RecordBatch.from_arrays(records.columns(READ), schema=schema)
            offsets = batch.column("queueOffset").to_pylist()
            firsts: dict[int, tuple[Queue, int]] = {}
            send_copies(
                sender,
                batch,
                target.topic,
                target,
                stored=lambda row, queue, offset, firsts=firsts: firsts.__setitem__(row, (queue, offset)),  # type: ignore[misc]
            )
            sender.finish()
            pieces += _pieces(offsets, firsts)
            rows += batch.num_rows
        self._map.add(part.queue, pieces)
        return rows

    def waiting(self) -> int:
        """Messages that are not yet copied."""
        bounds = self._source.bounds(self._pairs, RETRY_TIMEOUT_MS)
        stored = self._source.committed(self._group, self._pairs, RETRY_TIMEOUT_MS)
        return sum(max(held.high - (stored[queue] or 0), 0) for queue, held in bounds.items())

    def move_groups(self, groups: tuple[str, ...], *, shares_group: bool = False) -> int:
        """Commit the groups' offsets in the target, translated, but never backwards; how many offsets were known.

        `GroupInUse` if consumers of such a group are connected to the target.
        """
        known = 0
        for group in groups:
            offsets: Offsets = {}
            for queue, offset in self._source.committed(group, self._pairs, RETRY_TIMEOUT_MS).items():
                place = None if offset is None else self._map.translated(queue, offset)
                if place is not None:
                    target, translated = place
                    offsets[target] = max(translated, offsets.get(target, 0))
            known += len(offsets)
            if offsets:
                writer = GroupWriter(self._target, group, shares_group=shares_group, timeout_ms=TIMEOUT_MS)
                writer.commit(offsets, only_forward=True)
        return known


def target_of(queue: Queue, targets: Sequence[Queue]) -> Queue:
    """The queue of the other side that takes the copies of a queue, so that their order is kept.

    The same broker name and id, else the same id on the broker that the names choose. The choice depends neither on
    other queues of the source nor, unless it is the chosen one, on a broker of the target that is away.
    """
    for each in targets:
        if (each.broker_name, each.queue_id) == (queue.broker_name, queue.queue_id):
            return each
    same_id = [each for each in targets if each.queue_id == queue.queue_id]
    return max(same_id or targets, key=lambda each: (zlib.crc32(f"{queue} {each}".encode()), each))


def _pieces(offsets: list[int], firsts: dict[int, tuple[Queue, int]]) -> list[Piece]:
    """The pieces of one batch: from each acknowledged row to the next, cut where source offsets are missing."""
    pieces, starts = [], sorted(firsts)
    for start, stop in zip(starts, [*starts[1:], len(offsets)], strict=True):
        queue, stored = firsts[start]
        row = start
        for after in range(start + 1, stop + 1):
            if after == stop or offsets[after] != offsets[after - 1] + 1:
                pieces.append(Piece(offsets[row], offsets[after - 1], queue, stored + row - start))
                row = after
    return pieces


async def _create(side: Side, topic: str, queues: int) -> None:
    """Create a topic on every master. `PipelineError` if a broker refuses."""
    settings: dict[str, Any] = {"namesrv_addr": side.namesrv_addr}
    if side.access.uses_tls:
        settings |= side.access.tls_settings()
    config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
    try:
        async with AdminClient(hooks=side.access.hooks(), **settings) as admin:
            for cluster in (await admin.cluster_info()).cluster_addr_table or {}:
                await admin.update_topic(config, cluster=cluster)
    except ClientError as error:
        raise PipelineError(f"topic {topic} cannot be created at {side.namesrv_addr}: {error}") from error
