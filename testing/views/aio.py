"""`rocketmq.aio`: the waits for coroutines. The loop of the code under test goes on meanwhile."""

from .source import Source
from .stored_message import StoredMessage
from .values import Member
from .waits import WAIT_SECONDS, all_consumed, idle, members_there, messages_there


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
