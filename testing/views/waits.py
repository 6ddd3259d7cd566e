"""The four waits of `rocketmq`, as coroutines on the loop of a source. The error says "n of m".

Members are asked with request 307 at growing intervals, so that a slow consumer is not kept busy with questions. A
consumer commits every few seconds, so the broker's offsets are old; a member knows its own at once. The offset of a
queue is the larger of both. In a broadcasting group every member counts for itself, and only members know. Messages
behind the offset that the group's filter leaves out are not missing: the offset passes them when a held pull ends.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

import msgspec
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.message.topics import is_retry_topic, pop_retry_topic

from ..errors import MessagesMissingError
from .values import Member, StoredMessage

if TYPE_CHECKING:
    from .embedded_source import EmbeddedSource
    from .wire_source import WireSource

Source: TypeAlias = "EmbeddedSource | WireSource"
"""Where views and waits look."""


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


WAIT_SECONDS: Final = 5.0
_FIRST_QUESTION_SECONDS: Final = 0.01
_LONGEST_PAUSE_SECONDS: Final = 0.2

ResultT = TypeVar("ResultT")
Look = Callable[[], Awaitable[ResultT | str]]
"""The result, or a text that says what is missing."""


class Check(Protocol):
    """What is missing, in words; the last time with exact numbers."""

    def __call__(self, answers: Answers, *, is_last: bool) -> Awaitable[str | None]: ...


async def messages_there(
    source: Source, topic: str, count: int, timeout_seconds: float
) -> list[StoredMessage]:
    """At least `count` messages in a topic, which must exist by then; all of them."""

    async def look() -> list[StoredMessage] | str:
        ends = await source.queue_ends(topic)
        present = sum(end - first for first, end in ends.values())
        if present < count:
            return f"{present} of {count} messages arrived in {topic}"
        return await source.messages(topic) or await source.unknown_name(topic, None) or []

    return await _until(look, timeout_seconds, source.look_seconds)


async def all_consumed(source: Source, topic: str, group: str, timeout_seconds: float) -> None:
    """A group has consumed every message of a topic that it wants. Topic and group must exist by then."""

    async def check(answers: Answers, *, is_last: bool) -> str | None:
        missing = await what_is_missing(source, topic, group, answers, is_counted=is_last)
        return missing or await source.unknown_name(topic, group)

    await _checked(source, topic, group, check, timeout_seconds)


async def members_there(source: Source, group: str, count: int, timeout_seconds: float) -> list[Member]:
    """Exactly `count` members in a group, which must exist by then."""

    async def look() -> list[Member] | str:
        members = await source.members(group)
        if len(members) != count:
            return f"{group} has {len(members)} of {count} members"
        return members or await source.unknown_name(None, group) or []

    return await _until(look, timeout_seconds, source.look_seconds)


async def idle(source: Source, group: str, timeout_seconds: float) -> None:
    """No message is left to consume on any subscribed topic, and the members hold none."""

    async def check(answers: Answers, *, is_last: bool) -> str | None:
        subscriptions = await source.subscriptions(group)
        if not subscriptions:
            return f"{group} has 0 of 1 members"
        for topic in sorted(subscriptions, key=lambda topic: (is_retry_topic(topic), topic)):  # retries last
            missing = await what_is_missing(source, topic, group, answers, is_counted=is_last)
            if missing is not None:
                return missing
        held = answers.held_messages()
        return f"the members of {group} still hold {held} messages" if held else None

    await _checked(source, None, group, check, timeout_seconds)


async def _checked(
    source: Source, topic: str | None, group: str, check: Check, timeout_seconds: float
) -> None:
    """Until the check finds nothing missing: with the answers of the members; with a topic also without them, as soon
    as something was stored, or committed by the group."""
    pauses, text, seen = _Pauses(), "", None

    async def look() -> str | None:
        nonlocal text, seen
        if pauses.is_due():
            text = await check(await ask_members(source, group), is_last=False) or ""
        elif (
            topic is not None
            and pauses.is_rested()
            and (state := await source.state(topic, group)) != seen
            and not await source.is_broadcasting(group)
        ):
            seen = state
            text = await check(NO_ANSWERS, is_last=False) or ""
        else:
            return text
        pauses.end_check()
        return text or None

    async def look_for_the_last_time() -> str | None:
        return await check(await ask_members(source, group), is_last=True)

    await _until(look, timeout_seconds, source.look_seconds, look_for_the_last_time)


class _Pauses:
    """When to check again. Members are asked soon at first, then less often; checks leave time for other work."""

    def __init__(self) -> None:
        self._pause = _FIRST_QUESTION_SECONDS
        self._due = self._rested = self._begun = 0.0

    def is_due(self) -> bool:
        """Whether to ask the members now; then the pause to the next question is longer."""
        if self._begin() < self._due:
            return False
        self._due = self._begun + self._pause
        self._pause = min(self._pause * 1.5, _LONGEST_PAUSE_SECONDS)
        return True

    def is_rested(self) -> bool:
        """Whether to check without asking them."""
        return self._begin() >= self._rested

    def end_check(self) -> None:
        now = asyncio.get_running_loop().time()
        self._rested = now + min(4 * (now - self._begun), _LONGEST_PAUSE_SECONDS)
        self._due = max(self._due, self._rested)

    def _begin(self) -> float:
        self._begun = asyncio.get_running_loop().time()
        return self._begun


async def _until(
    look: Look[ResultT],
    timeout_seconds: float,
    look_seconds: float,
    look_for_the_last_time: Look[ResultT] | None = None,
) -> ResultT:
    """The first result; `MessagesMissingError` with the last text after the time limit, which is wall time."""
    loop = asyncio.get_running_loop()  # a test may have stopped the clocks of `time`
    deadline = loop.time() + timeout_seconds
    while isinstance(found := await look(), str):
        if loop.time() >= deadline:
            if look_for_the_last_time is not None:
                found = await look_for_the_last_time()
            if isinstance(found, str):
                raise MessagesMissingError(f"{found} within {timeout_seconds:g} s")
            break
        await asyncio.sleep(look_seconds)
    return found


class AsyncWaits:
    """The same waits as those of `RocketMQ`; cancelling one ends it. `timeout_seconds` is wall time."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def wait_messages(
        self, topic: str, count: int, *, timeout_seconds: float = WAIT_SECONDS
    ) -> list[StoredMessage]:
        """Wait until a topic has at least `count` messages; returns all of them. `MessagesMissingError` otherwise."""
        return await self._source.run_async(messages_there(self._source, topic, count, timeout_seconds))

    async def wait_consumed(self, topic: str, group: str, *, timeout_seconds: float = WAIT_SECONDS) -> None:
        """Wait until a group has consumed every message of a topic that it wants. `MessagesMissingError` otherwise."""
        await self._source.run_async(all_consumed(self._source, topic, group, timeout_seconds))

    async def wait_members(
        self, group: str, count: int = 1, *, timeout_seconds: float = WAIT_SECONDS
    ) -> list[Member]:
        """Wait until a group has `count` members; returns them. `MessagesMissingError` otherwise."""
        return await self._source.run_async(members_there(self._source, group, count, timeout_seconds))

    async def wait_idle(self, group: str, *, timeout_seconds: float = WAIT_SECONDS) -> None:
        """Wait until a group has nothing left to consume on any topic that it subscribes to, and its members hold no
        message. `MessagesMissingError` otherwise."""
        await self._source.run_async(idle(self._source, group, timeout_seconds))
