"""What a lite pull consumer commits when it ends: what was handled for certain, unless it is asked not to."""

from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from client_waits import committed, polling, send


@pytest.fixture
async def ten(namesrv_addr: str) -> str:
    """The address of a name server with ten messages in one queue of T."""
    await send(namesrv_addr, "T", 10, queue_id=0)
    return namesrv_addr


lite = partial(polling, pull_batch_size=4)


async def offset_after(namesrv_addr: str) -> int:
    return (await committed(namesrv_addr, "g", "T"))[0] or 0


async def test_what_was_polled_is_committed_at_the_end(ten: str) -> None:
    async with lite(ten) as consumer:
        polled = len(await consumer.poll()) + len(await consumer.poll())
    assert await offset_after(ten) == polled > 0


@pytest.mark.parametrize("options", [{"commit_on_shutdown": False}, {"auto_commit": False}])
async def test_the_official_behaviour_is_an_argument(ten: str, options: dict[str, Any]) -> None:
    async with lite(ten, **options) as consumer:
        assert await consumer.poll()
    assert await offset_after(ten) == 0


async def test_a_batch_whose_handling_failed_is_not_committed(ten: str) -> None:
    first = []
    with suppress(ZeroDivisionError):
        async with lite(ten) as consumer:
            first = await consumer.poll()
            assert await consumer.poll()
            raise ZeroDivisionError
    assert await offset_after(ten) == len(first) > 0


@pytest.mark.parametrize("leaves_by", ["break", "exception"])
async def test_a_loop_that_is_left_commits_what_it_had_done(ten: str, leaves_by: str) -> None:
    with suppress(ZeroDivisionError):
        async with lite(ten) as consumer:
            async for message in consumer:
                if message.body == b"5":
                    if leaves_by == "break":
                        break
                    raise ZeroDivisionError
    assert await offset_after(ten) == 5


async def test_a_commit_by_hand_is_not_undone(ten: str) -> None:
    async with lite(ten) as consumer:
        async for _ in consumer:
            await consumer.commit()
            break
    assert await offset_after(ten) == 4
