"""Background tasks are kept until they end, and what failed is logged with its name."""

import asyncio

import pytest
from pocketmq.client.tasks import Tasks, until_ended

from waiting import until


async def test_a_failure_is_logged_and_reported_after_the_task_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    left: list[int] = []
    tasks = Tasks(on_failure=lambda: left.append(len(tasks)))

    async def fail() -> None:
        raise ValueError("broken")

    tasks.spawn(fail(), "the failing one")
    await until(lambda: left)
    assert left == [0]
    assert "the failing one failed" in caplog.text


async def test_cancelling_leaves_out_the_task_that_cancels() -> None:
    tasks = Tasks()
    ended: list[str] = []

    async def wait() -> None:
        await asyncio.Event().wait()

    async def end_the_others() -> None:
        await asyncio.sleep(0)
        others = tasks.cancel()
        await until_ended(others)
        ended.extend(task.get_name() for task in others)

    tasks.spawn(wait(), "waits")
    await tasks.spawn(end_the_others(), "ends the others")
    assert ended == ["waits"]
    await asyncio.sleep(0)
    assert len(tasks) == 0
