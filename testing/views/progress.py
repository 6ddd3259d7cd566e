"""How far a group has come, as its members say (307) and as it has committed.

A consumer commits every few seconds, so the broker's offsets are old; a member knows its own at once. The offset of a
queue is the larger of both. In a broadcasting group every member counts for itself, and only members know.
"""

import asyncio
from collections.abc import Iterable

import msgspec
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.message.topics import is_retry_topic

from .source import QueueEnds, Source


class Progress(msgspec.Struct, frozen=True):
    """Messages of a topic, and how many of them are consumed."""

    consumed: int
    total: int

    @property
    def is_done(self) -> bool:
        return self.consumed >= self.total


async def running_infos(source: Source, group: str) -> list[ConsumerRunningInfo]:
    """Of the members that answer, asked all at once."""
    members = await source.members(group)
    answers = await asyncio.gather(*(source.running_info(group, member.client_id) for member in members))
    return [answer for answer in answers if answer is not None]


async def committed_progress(source: Source, topic: str, group: str) -> Progress:
    """By the offsets at the broker alone."""
    return _progress(await source.queue_ends(topic), [await source.offsets(topic, group)])


async def progress(source: Source, topic: str, group: str, infos: Iterable[ConsumerRunningInfo]) -> Progress:
    """By the offsets at the broker and those that the members know."""
    ends = await source.queue_ends(topic)
    by_member = [_known_offsets(info, topic) for info in infos]
    if by_member and await source.is_broadcasting(group):
        return _progress(ends, by_member)
    offsets = dict(await source.offsets(topic, group))
    for known in by_member:
        for queue_id, offset in known.items():
            offsets[queue_id] = max(offset, offsets.get(queue_id, offset))
    return _progress(ends, [offsets])


def held_messages(infos: Iterable[ConsumerRunningInfo]) -> int:
    """Messages that members have pulled or popped and not consumed."""
    return sum(
        sum(queue.cached_msg_count for queue in info.mq_table.values())
        + sum(queue.wait_ack_count for queue in info.mq_pop_table.values())
        for info in infos
    )


def popped_messages(infos: Iterable[ConsumerRunningInfo], topic: str) -> int:
    """Messages of a topic that members have popped and not acknowledged."""
    return sum(
        state.wait_ack_count
        for info in infos
        for queue, state in info.mq_pop_table.items()
        if queue.topic == topic
    )


def _known_offsets(info: ConsumerRunningInfo, topic: str) -> dict[int, int]:
    """Commit offsets of one member; -1 in a queue where it has none yet."""
    return {
        queue.queue_id: state.commit_offset
        for queue, state in info.mq_table.items()
        if queue.topic == topic and state.commit_offset >= 0
    }


def _progress(ends: QueueEnds, readers: list[dict[int, int]]) -> Progress:
    """Of the reader that has read least, in each queue."""
    consumed = total = 0
    for queue_id, (first, end) in ends.items():
        total += end - first
        least = min(offsets.get(queue_id, 0) for offsets in readers)
        consumed += min(max(least, first), end) - first
    return Progress(consumed, total)


def topics_to_read(subscriptions: Iterable[str]) -> list[str]:
    """Those of a test first, then retry topics."""
    return sorted(subscriptions, key=lambda topic: (is_retry_topic(topic), topic))
