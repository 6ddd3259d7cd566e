"""Asking a cluster many questions at once, but not too many."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

AT_ONCE: Final = 16
"""Questions under way at the same time."""

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")


async def gather_limited(items: Iterable[ItemT], ask: Callable[[ItemT], Awaitable[AnswerT]]) -> list[AnswerT]:
    """The answers in the order of the items. The first failure ends the questions and is raised."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask_one(item: ItemT) -> AnswerT:
        async with gate:
            return await ask(item)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask_one(item)) for item in items]
    return [task.result() for task in tasks]
