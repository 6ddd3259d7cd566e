"""How far groups have consumed, and moving them: resets by time, skipping, cloning, setting; offsets of queues."""

from typing import Final

import msgspec
from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.bodies.offsets import ConsumeStats, OffsetWrapper
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import pop_retry_topic, retry_topic
from pocketmq.protocol.requests.group import GetConsumeStats
from pocketmq.protocol.requests.offset import (
    ExplainFirstPosition,
    GetMaxOffset,
    InvokeBrokerToResetOffset,
    QueryConsumerOffset,
    SearchOffsetByTimestamp,
    UpdateConsumerOffset,
    Verdict,
)
from pocketmq.protocol.requests.topic import GetTopicStatsInfo
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..arguments import checks_arguments
from ..errors import Absence, NotOnline, RequestRefused
from ..values.validators import check_group
from .calls import one_address
from .groups import AdminGroups

AT_END: Final = -1
"""As a time: after the last message."""


class RollbackStats(msgspec.Struct, frozen=True):
    """One queue after a reset made by this client instead of the broker (official RollbackStats)."""

    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    timestamp_offset: int
    rollback_offset: int


@checks_arguments
class AdminOffsets(AdminGroups):
    """A group without offsets may be online and broadcasting, so this builds on `AdminGroups`."""

    async def consume_stats(
        self, group: str, topic: str | None = None, *, route_topic: str | None = None
    ) -> ConsumeStats:
        """A group's offset in each queue and its rate (examineConsumeStats); `total_diff` is its lag.

        Without `topic` all topics it consumes. The brokers of the group's retry topic are asked, or if it does not
        exist those of the topic, or of `route_topic`, a cluster's name. `NotOnline` if the group has no offsets.
        """
        check_group(group)
        topics = [retry_topic(group)]
        if topic is not None:
            topics += [topic, pop_retry_topic(topic, group, v2=True)]
        if route_topic is not None:
            topics.append(route_topic)
        route = await self._first_route(topics)
        offsets: dict[MessageQueue, OffsetWrapper] = {}
        tps = 0.0
        request = GetConsumeStats(consumer_group=group, topic=topic)
        for broker in route.broker_datas:
            address = one_address(broker)
            if address is not None:
                stats = await self._call(address, request, is_slow=True)
                offsets.update(stats.offset_table)
                tps += stats.consume_tps
        if not offsets:
            raise await self._why_no_offsets(group)
        return ConsumeStats(offset_table=dict(sorted(offsets.items())), consume_tps=tps)

    async def lag(self, group: str, topic: str | None = None) -> int:
        """Messages a group has still to consume (ConsumeStats.computeTotalDiff)."""
        return (await self.consume_stats(group, topic)).total_diff

    async def consume_stats_at(self, address: str, group: str) -> ConsumeStats:
        """What one broker knows of a group's offsets, in every topic; an empty table if it has none."""
        return await self._call(address, GetConsumeStats(consumer_group=group), is_slow=True)

    async def query_offset(
        self, group: str, queue: MessageQueue, *, set_zero_if_not_found: bool | None = None
    ) -> int | None:
        """What the broker answers a group that asks where to start a queue (queryConsumerOffset); `None`: not found.

        A 5.x broker that is asked with `set_zero_if_not_found=False` answers a stored offset only. Asking changes
        nothing.
        """
        address = await self._require_running().routes.find_master(queue)
        request = QueryConsumerOffset(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            set_zero_if_not_found=set_zero_if_not_found,
            broker_name=queue.broker_name,
        )
        try:
            return (await self._call(address, request)).offset
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise

    async def verdicts(self, address: str, group: str, topic: str) -> list[Verdict]:
        """Where a group would start each queue of the topic at one broker, and which rule decides.

        Only a PocketMQ answers; others refuse with REQUEST_CODE_NOT_SUPPORTED.
        """
        return await self._call(address, ExplainFirstPosition(consumer_group=group, topic=topic))

    # -- moving a group

    async def reset_offsets(
        self,
        group: str,
        topic: str,
        timestamp_ms: int,
        *,
        is_force: bool = True,
        route_topic: str | None = None,
    ) -> dict[MessageQueue, int]:
        """Move a group to a time, -1 for the end; the new offset of each queue (resetOffsetByTimestamp).

        5.x brokers do it alone. 4.9 brokers pass it on to the members, and refuse with CONSUMER_NOT_ONLINE if none is
        online: use `reset_offsets_offline` then. Without `is_force` a 4.9 broker moves backwards only.
        """
        offsets: dict[MessageQueue, int] = {}
        request = InvokeBrokerToResetOffset(
            topic=topic, group=group, timestamp=timestamp_ms, is_force=is_force, offset=-1
        )
        for address in await self._brokers_of(route_topic or topic):
            answer = await self._call(address, request, is_slow=True)
            if answer is not None:
                offsets.update(answer.offset_table)
        return dict(sorted(offsets.items()))

    async def reset_offsets_offline(
        self,
        group: str,
        topic: str,
        timestamp_ms: int,
        *,
        is_force: bool = True,
        route_topic: str | None = None,
    ) -> list[RollbackStats]:
        """The same for a group without members, done by this client queue by queue (resetOffsetByTimestampOld)."""
        route = await self.topic_route(route_topic or topic)
        counts = {queues.broker_name: queues.read_queue_nums for queues in route.queue_datas}
        rollbacks: list[RollbackStats] = []
        for broker in route.broker_datas:
            address = one_address(broker)
            if address is None:
                continue
            queues = [
                MessageQueue(topic, broker.broker_name or "", queue_id)
                for queue_id in range(counts.get(broker.broker_name, 0))
            ]
            for queue, present in sorted((await self._offsets_at(address, group, topic, queues)).items()):
                rollbacks.append(
                    await self._roll_back(address, group, queue, present, timestamp_ms, is_force=is_force)
                )
        return rollbacks

    async def skip_accumulated(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """Move a group to the end of a topic, whether it is online or not (official SkipAccumulationSubCommand)."""
        try:
            return await self.reset_offsets(group, topic, AT_END)
        except RequestRefused as refusal:
            if refusal.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
        rollbacks = await self.reset_offsets_offline(group, topic, AT_END)
        return {
            MessageQueue(topic, moved.broker_name, moved.queue_id): moved.rollback_offset
            for moved in rollbacks
        }

    async def reset_offset_of_queue(
        self, address: str, group: str, topic: str, queue_id: int, offset: int
    ) -> dict[MessageQueue, int]:
        """Move a group in one queue of one broker, online members too; 5.x (resetOffsetByQueueId)."""
        await self._call(
            address,
            UpdateConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset),
        )
        request = InvokeBrokerToResetOffset(topic=topic, group=group, queue_id=queue_id, offset=offset)
        answer = await self._call(address, request, is_slow=True)
        return {} if answer is None else answer.offset_table

    async def set_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Store a group's offset in a queue; online members overwrite it (updateConsumeOffset)."""
        await self._commit(
            await self._require_running().routes.find_master(queue, main_port=True), group, queue, offset
        )

    async def clone_offsets(self, src_group: str, dest_group: str, topic: str) -> dict[MessageQueue, int]:
        """Give one group the offsets of another (official CloneGroupOffsetCommand); the offsets that were set.

        As in Java every topic the source consumes is cloned as far as the brokers of `topic` hold it.
        """
        stats = await self.consume_stats(src_group)
        addresses = {
            broker.broker_name: one_address(broker) for broker in (await self.topic_route(topic)).broker_datas
        }
        cloned: dict[MessageQueue, int] = {}
        for queue, progress in stats.offset_table.items():
            address = addresses.get(queue.broker_name)
            if address is not None and progress.consumer_offset >= 0:
                await self._commit(address, dest_group, queue, progress.consumer_offset)
                cloned[queue] = progress.consumer_offset
        return cloned

    async def search_offset_at(self, address: str, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """As `search_offset` at one broker, whatever the route says (searchOffset by address)."""
        request = SearchOffsetByTimestamp(topic=topic, queue_id=queue_id, timestamp=timestamp_ms)
        return (await self._call(address, request)).offset

    # -- parts

    async def _why_no_offsets(self, group: str) -> NotOnline:
        text = "Not found the consumer group consume stats, because return offset table is empty"
        try:
            connections = await self.consumer_connections(group)
        except NotOnline:
            return NotOnline(f"{text}, maybe the consumer not online")
        if connections.message_model == MessageModel.BROADCASTING:
            return NotOnline(f"{text}, the consumer is under the broadcast mode", Absence.BROADCASTING)
        return NotOnline(text, Absence.NO_OFFSETS)

    async def _offsets_at(
        self, address: str, group: str, topic: str, queues: list[MessageQueue]
    ) -> dict[MessageQueue, OffsetWrapper]:
        """The offsets of a group at one broker; if it has none in the topic, the start of each queue."""
        table = (await self._call(address, GetConsumeStats(consumer_group=group))).offset_table
        offsets = {queue: progress for queue, progress in table.items() if queue.topic == topic}
        if offsets:
            return offsets
        ends = (await self._call(address, GetTopicStatsInfo(topic=topic))).offset_table
        return {
            queue: OffsetWrapper(ends[queue].max_offset, ends[queue].min_offset)
            for queue in queues
            if queue in ends
        }

    async def _roll_back(
        self,
        address: str,
        group: str,
        queue: MessageQueue,
        present: OffsetWrapper,
        timestamp_ms: int,
        *,
        is_force: bool,
    ) -> RollbackStats:
        if timestamp_ms == AT_END:
            request = GetMaxOffset(topic=queue.topic, queue_id=queue.queue_id)
            found = (await self._call(address, request)).offset
        else:
            found = await self.search_offset_at(address, queue.topic, queue.queue_id, timestamp_ms)
        rollback = present.consumer_offset
        if is_force or found <= present.consumer_offset:
            rollback = found
            await self._commit(address, group, queue, found)
        return RollbackStats(
            queue.broker_name, queue.queue_id, present.broker_offset, present.consumer_offset, found, rollback
        )

    async def _commit(self, address: str, group: str, queue: MessageQueue, offset: int) -> None:
        request = UpdateConsumerOffset(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            broker_name=queue.broker_name,
        )
        await self._call(address, request)
