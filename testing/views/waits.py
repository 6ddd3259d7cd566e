"""The four waits of `rocketmq`, as coroutines on the loop of a source. The error says "n of m".

Members are asked with request 307 at growing intervals, so that a slow consumer is not kept busy with questions.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from ..errors import MessagesMissingError
from .progress import NO_ANSWERS, Answers, ask_members, topics_to_read, what_is_missing
from .source import Source
from .stored_message import StoredMessage
from .values import Member

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
        for topic in topics_to_read(subscriptions):
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
