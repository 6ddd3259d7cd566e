"""The four waits of `rocketmq`, as coroutines on the loop of a source. The error says "n of m".

Members are asked with request 307 at growing intervals, so that a slow consumer is not kept busy with questions.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ..errors import MessagesMissingError
from .progress import (
    Progress,
    committed_progress,
    held_messages,
    popped_messages,
    progress,
    running_infos,
    topics_to_read,
)
from .source import Source
from .stored_message import StoredMessage
from .values import Member

WAIT_SECONDS: Final = 5.0
_FIRST_QUESTION_SECONDS: Final = 0.01
_LONGEST_PAUSE_SECONDS: Final = 0.2

ResultT = TypeVar("ResultT")
Look = Callable[[], Awaitable[ResultT | str]]
"""The result, or a text that says what is missing."""


async def messages_there(
    source: Source, topic: str, count: int, timeout_seconds: float
) -> list[StoredMessage]:
    """At least `count` messages in a topic; all of them."""

    async def look() -> list[StoredMessage] | str:
        ends = await source.queue_ends(topic)
        present = sum(end - first for first, end in ends.values())
        if present < count:
            return f"{present} of {count} messages arrived in {topic}"
        return await source.messages(topic)

    return await _until(look, timeout_seconds, source.look_seconds)


async def all_consumed(source: Source, topic: str, group: str, timeout_seconds: float) -> None:
    """A group has consumed every message of a topic."""
    questions, last = _Pauses(), [""]

    async def look() -> str | None:
        known = await committed_progress(source, topic, group)
        # Broadcasting members commit nothing here; a pop moves the offset before its messages are consumed.
        is_popping = await source.is_popping(topic, group)
        if known.is_done and not is_popping and not await source.is_broadcasting(group):
            return None
        if not questions.is_due():
            return last[0]
        infos = await running_infos(source, group)
        known = await progress(source, topic, group, infos)
        last[0] = _consumed_text(known, topic, group)
        if not known.is_done:
            return last[0]
        popped = popped_messages(infos, topic)
        return (
            f"the members of {group} still hold {popped} of {known.total} messages of {topic}"
            if popped
            else None
        )

    await _until(look, timeout_seconds, source.look_seconds)


async def members_there(source: Source, group: str, count: int, timeout_seconds: float) -> list[Member]:
    """Exactly `count` members in a group."""

    async def look() -> list[Member] | str:
        members = await source.members(group)
        return members if len(members) == count else f"{group} has {len(members)} of {count} members"

    return await _until(look, timeout_seconds, source.look_seconds)


async def idle(source: Source, group: str, timeout_seconds: float) -> None:
    """No message is left to consume on any subscribed topic, and the members hold none."""
    questions = _Pauses()
    last: list[str] = [f"{group} has no members"]

    async def look() -> str | None:
        if not questions.is_due():
            return last[0]
        subscriptions = await source.subscriptions(group)
        if not subscriptions:
            return f"{group} has 0 of 1 members"
        infos = await running_infos(source, group)
        for topic in topics_to_read(subscriptions):
            known = await progress(source, topic, group, infos)
            if not known.is_done:
                last[0] = _consumed_text(known, topic, group)
                return last[0]
        held = held_messages(infos)
        last[0] = f"the members of {group} still hold {held} messages"
        return last[0] if held else None

    await _until(look, timeout_seconds, source.look_seconds)


def _consumed_text(known: Progress, topic: str, group: str) -> str:
    left = known.total - known.consumed
    return f"{group} has not consumed {left} of {known.total} messages of {topic}"


class _Pauses:
    """When to ask the members again: soon at first, then less often."""

    def __init__(self) -> None:
        self._pause = _FIRST_QUESTION_SECONDS
        self._due = 0.0

    def is_due(self) -> bool:
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + self._pause
        self._pause = min(self._pause * 1.5, _LONGEST_PAUSE_SECONDS)
        return True


async def _until(look: Look[ResultT], timeout_seconds: float, look_seconds: float) -> ResultT:
    """The first result; `MessagesMissingError` with the last text after the time limit, which is wall time."""
    deadline = time.monotonic() + timeout_seconds
    while isinstance(found := await look(), str):
        if time.monotonic() >= deadline:
            raise MessagesMissingError(f"{found} within {timeout_seconds:g} s")
        await asyncio.sleep(look_seconds)
    return found
