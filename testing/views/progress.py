"""How far a group has come, as its members say (307) and as it has committed.

A consumer commits every few seconds, so the broker's offsets are old; a member knows its own at once. The offset of a
queue is the larger of both. In a broadcasting group every member counts for itself, and only members know. Messages
behind the offset that the group's filter leaves out are not missing: the offset passes them when a held pull ends.
"""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.message.topics import is_retry_topic, pop_retry_topic

from .source import Source


class Answers(msgspec.Struct, frozen=True):
    """What the members say, asked all at once."""

    infos: Sequence[ConsumerRunningInfo]
    silent: int
    """Members that did not answer."""

    def held_messages(self) -> int:
        """Messages that members have pulled or popped and not consumed."""
        return sum(
            sum(queue.cached_msg_count for queue in info.mq_table.values())
            + sum(queue.wait_ack_count for queue in info.mq_pop_table.values())
            for info in self.infos
        )

    def popped_messages(self, topic: str) -> int:
        """Messages of a topic that members have popped and not acknowledged."""
        return sum(
            state.wait_ack_count
            for info in self.infos
            for queue, state in info.mq_pop_table.items()
            if queue.topic == topic
        )


NO_ANSWERS = Answers((), 0)


async def ask_members(source: Source, group: str) -> Answers:
    members = await source.members(group)
    answers = await asyncio.gather(*(source.running_info(group, member.client_id) for member in members))
    infos = [answer for answer in answers if answer is not None]
    return Answers(infos, len(answers) - len(infos))


async def what_is_missing(
    source: Source, topic: str, group: str, answers: Answers, *, is_counted: bool
) -> str | None:
    """In words, what the group has not consumed of a topic and of its retries by pop; None if it has all. The number
    may be too small unless it is counted."""
    for name in (topic, *(pop_retry_topic(topic, group, v2=v2) for v2 in (False, True))):
        total, left = await _unconsumed(source, name, group, answers, None if is_counted else 1)
        if left:
            return f"{group} has not consumed {left} of {total} messages of {name}"
        popped = await source.unacknowledged(name, group)
        if popped is None:
            popped = answers.popped_messages(name)
        if popped:
            return f"{group} has not acknowledged {popped} of {total} messages of {name}"
    return None


async def _unconsumed(
    source: Source, topic: str, group: str, answers: Answers, most: int | None
) -> tuple[int, int]:
    """How many messages a topic has, and how many of them the group wants and has not consumed."""
    ends = await source.queue_ends(topic)
    readers = await _readers(source, topic, group, answers)
    ranges = {}
    for queue_id, (first, end) in ends.items():
        begin = max(min(offsets.get(queue_id, 0) for offsets in readers), first)
        if begin < end:
            ranges[queue_id] = begin, end
    total = sum(end - first for first, end in ends.values())
    return total, await source.count_wanted(topic, group, ranges, most) if ranges else 0


async def _readers(source: Source, topic: str, group: str, answers: Answers) -> list[dict[int, int]]:
    """Offsets by queue id: those of the group, or of each member of a broadcasting group."""
    by_member = [_known_offsets(info, topic) for info in answers.infos]
    if by_member and await source.is_broadcasting(group):
        return [*by_member, *({} for _ in range(answers.silent))]
    offsets = dict(await source.offsets(topic, group))
    for known in by_member:
        for queue_id, offset in known.items():
            offsets[queue_id] = max(offset, offsets.get(queue_id, offset))
    return [offsets]


def _known_offsets(info: ConsumerRunningInfo, topic: str) -> dict[int, int]:
    """Commit offsets of one member; -1 in a queue where it has none yet."""
    return {
        queue.queue_id: state.commit_offset
        for queue, state in info.mq_table.items()
        if queue.topic == topic and state.commit_offset >= 0
    }


def topics_to_read(subscriptions: Iterable[str]) -> list[str]:
    """Those of a test first, then retry topics."""
    return sorted(subscriptions, key=lambda topic: (is_retry_topic(topic), topic))
