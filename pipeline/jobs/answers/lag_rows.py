"""The lag of groups, queue by queue: from the files of a store, or from brokers. No engine, no Spark.

store     the offset table; the end and one unit of each consume queue; the head of one record
brokers   the statistics of each group (request 208); with topics and groups the offsets of those queues, for which
          the right to read is enough; one pull for the time of the next unread message
"""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from pocketmq.client.admin.client import AdminClient
from pocketmq.client.errors import ClientError, NotReachable, RequestRefused
from pocketmq.protocol.message.topics import is_internal_group
from pocketmq.protocol.wire.response_codes import ResponseCode

from ...errors import PipelineError, SourceUnreachable
from ...tables.brokers.broker_client import BrokerClient, gather_all
from ...tables.brokers.range_reader import read_ranges_whole
from ...tables.brokers.reachable import admin_client, check_reachable, master_addresses
from ...tables.brokers.wait_log import Waiting, WaitLog
from ...tables.files.consume_queues import UnitFiles, consumer_offsets
from ...tables.files.log_files import log_files, map_file
from ...tables.planning.option_values import names_in
from ...tables.planning.positions import Queue
from ...tables.planning.ranges import Range
from ...tables.planning.topic_options import SourceOptions
from ...tables.records.records import scan
from ..sql.message_input import MessageInput

RETRY_TIMEOUT_MS: Final = 10_000
STATISTICS_TIMEOUT_MS: Final = 15_000
"""How long a broker has for the statistics of a group."""
GROUPS_AT_ONCE: Final = 16


class Lag(msgspec.Struct, frozen=True, order=True):
    """A group in one queue. `stored_ms` is when its next unread message was stored; None without one."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int
    end: int
    stored_ms: int | None = None

    @property
    def messages(self) -> int:
        return max(self.end - self.offset, 0)

    def waiting_seconds(self, now_ms: float) -> float | None:
        return None if self.stored_ms is None else round((now_ms - self.stored_ms) / 1000, 1)


# -- a store


def lags_of_store(source: MessageInput, groups: list[str]) -> list[Lag]:
    """From the files. A queue that no longer has a folder is left out: its topic was deleted."""
    root, topics = Path(source.store or ""), names_in(source.topics)
    found = []
    for group, topic, queue_id, offset in consumer_offsets(root, str(root)):
        folder = root / "consumequeue" / topic / str(queue_id)
        if (groups and group not in groups) or (topics and topic not in topics) or not folder.is_dir():
            continue
        queue = UnitFiles(str(folder))
        first, end = queue.bounds()
        unread = max(offset, first)
        stored_ms = _stored_ms(root, queue, unread) if unread < end else None
        found.append(Lag(group, topic, "", queue_id, offset, end, stored_ms))
    return found


def _stored_ms(root: Path, queue: UnitFiles, offset: int) -> int | None:
    """When the message of a unit was stored; None if its log file was deleted, or is damaged there."""
    position = next((int(found["position"][0]) for _, found in queue.pieces(offset, offset + 1)), -1)
    for file in log_files(root / "commitlog"):
        if file.base <= position < file.base + file.size:
            at = position - file.base
            found = scan(map_file(file.path), at, at + 1, file.base, most=1)
            return int(found.store_times_ms[0]) if len(found) else None
    return None


# -- brokers


def lags_of_brokers(source: MessageInput, groups: list[str]) -> list[Lag]:
    """From the brokers. Groups of the brokers and of their tools are left out, unless they are named."""
    assert source.namesrv_addr is not None
    topics = names_in(source.topics)
    check_reachable(source.namesrv_addr, topics, source.access)
    with BrokerClient(source.namesrv_addr, source.access).closing() as client:
        if groups and topics:
            found = list(_committed(client, groups, topics))
        else:
            found = client.run(_statistics(source, groups, client.notes))
        wanted = [lag for lag in found if not topics or lag.topic in topics]
        stored = _stored_times(client, [lag for lag in wanted if lag.messages], source)
        return [
            msgspec.structs.replace(lag, stored_ms=stored.get((_queue_of(lag), lag.offset))) for lag in wanted
        ]


def _committed(client: BrokerClient, groups: list[str], topics: list[str]) -> Iterable[Lag]:
    for topic in topics:
        bounds = client.bounds(client.queues(topic, RETRY_TIMEOUT_MS), RETRY_TIMEOUT_MS)
        for group in groups:
            for queue, offset in client.committed(group, bounds, RETRY_TIMEOUT_MS).items():
                if offset is not None:
                    yield Lag(group, topic, queue.broker_name, queue.queue_id, offset, bounds[queue].high)


async def _statistics(source: MessageInput, groups: list[str], notes: WaitLog) -> list[Lag]:
    """Every queue for which a master has an offset of one of the groups, or of any group."""
    found = []
    assert source.namesrv_addr is not None
    try:
        async with admin_client(
            source.namesrv_addr, source.access, timeout_ms=STATISTICS_TIMEOUT_MS // 3
        ) as admin:
            for address in await master_addresses(admin, source.access):
                with Waiting(notes, f"offsets of groups at {address}", STATISTICS_TIMEOUT_MS):
                    found += await _statistics_at(admin, address, groups)
    except NotReachable as error:
        raise SourceUnreachable(str(error)) from error
    except ClientError as error:
        raise PipelineError(str(error)) from error
    return found


async def _statistics_at(admin: AdminClient, address: str, groups: list[str]) -> list[Lag]:
    names = groups or [name for name in await admin.group_configs(address) if not is_internal_group(name)]
    limit = asyncio.Semaphore(GROUPS_AT_ONCE)

    async def of_group(group: str) -> list[Lag]:
        try:
            async with limit:
                table = (await admin.consume_stats_at(address, group)).offset_table
        except NotReachable:
            raise
        except ClientError as error:
            if isinstance(error, RequestRefused) and error.code == ResponseCode.NO_PERMISSION:
                raise
            return []  # a group that has no offsets here
        return [
            Lag(
                group, each.topic, each.broker_name, each.queue_id, place.consumer_offset, place.broker_offset
            )
            for each, place in table.items()
            if place.consumer_offset >= 0
        ]

    return [lag for lags in await gather_all(map(of_group, names)) for lag in lags]


def _queue_of(lag: Lag) -> Queue:
    return Queue(lag.topic, lag.broker_name, lag.queue_id)


def _stored_times(
    client: BrokerClient, lags: Sequence[Lag], source: MessageInput
) -> dict[tuple[Queue, int], int]:
    """When the first unread message of each queue and offset was stored, of those that can be pulled."""
    options = SourceOptions(namesrv_addr=client.namesrv_addr, access=source.access, fail_on_data_loss=False)
    places = sorted({(_queue_of(lag), lag.offset) for lag in lags})
    bounds = client.bounds({queue for queue, _ in places}, RETRY_TIMEOUT_MS)
    firsts = {(queue, offset): max(offset, bounds[queue].low) for queue, offset in places}
    unread = [place for place, first in firsts.items() if first < bounds[place[0]].high]
    parts = [Range(queue, firsts[queue, offset], firsts[queue, offset] + 1) for queue, offset in unread]
    found = read_ranges_whole(client, parts, options)
    return {
        place: int(records[0].store_times_ms[0])
        for place, records in zip(unread, found, strict=True)
        if records and len(records[0])
    }
