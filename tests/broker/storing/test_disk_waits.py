"""Many sends that wait for the disk: answered once each, in their order, by one question to the flusher."""

import asyncio
from collections.abc import Callable

import pytest
from pocketmq.broker.storing.disk_waits import DiskWaits
from pocketmq.store import StoreClosedError, StoreConfig


class Disk:
    """Stands for the store: forces nothing, says what is asked of it."""

    def __init__(self) -> None:
        self.config = StoreConfig(store_path_root_dir="", sync_flush_timeout=20)
        self.flushed_position = 0
        self.asked: list[tuple[int, Callable[[bool], None]]] = []
        self.is_closed = False

    def when_flushed(self, position: int, callback: Callable[[bool], None]) -> None:
        if self.is_closed:
            raise StoreClosedError("closed")
        if position <= self.flushed_position:
            callback(True)
        else:
            self.asked.append((position, callback))

    async def force(self, position: int, *, works: bool = True) -> None:
        """The log is forced up to a position, or the disk refuses."""
        if works:
            self.flushed_position = position
        asked, self.asked = self.asked, []
        for wanted, callback in asked:
            callback(wanted <= self.flushed_position)
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def waits(disk: Disk) -> DiskWaits:
    return DiskWaits(disk)  # type: ignore[arg-type]


@pytest.fixture
def answers() -> list[tuple[int, bool]]:
    return []


def wait(waits: DiskWaits, answers: list[tuple[int, bool]], *ends: int) -> None:
    for end in ends:
        waits.wait(
            asyncio.get_running_loop(),
            end,
            lambda is_safe, end=end: answers.append((end, is_safe)),  # type: ignore[misc]
        )


async def test_one_question_answers_all_that_the_disk_has(disk, waits, answers) -> None:
    wait(waits, answers, 10, 20, 30)
    assert [position for position, _ in disk.asked] == [10]
    await disk.force(20)
    assert answers == [(10, True), (20, True)]
    assert [position for position, _ in disk.asked] == [30], "the rest is asked about again"
    wait(waits, answers, 40)
    await disk.force(40)
    assert answers[2:] == [(30, True), (40, True)]
    assert disk.asked == []


async def test_a_disk_that_refuses_answers_all(disk, waits, answers) -> None:
    wait(waits, answers, 10, 20, 30)
    await disk.force(10)
    await disk.force(10, works=False)
    assert answers == [(10, True), (20, False), (30, False)]


async def test_each_is_answered_once_its_own_time_has_passed(disk, waits, answers) -> None:
    wait(waits, answers, 10)
    await asyncio.sleep(0.012)  # syncFlushTimeout is 20 ms of the event loop's own time
    wait(waits, answers, 20)
    await asyncio.sleep(0.012)
    assert answers == [(10, False)]
    await asyncio.sleep(0.012)
    assert answers == [(10, False), (20, False)]
    await disk.force(20)
    assert len(answers) == 2
    wait(waits, answers, 30)
    await asyncio.sleep(0.03)
    assert answers[2:] == [(30, False)]


async def test_what_is_on_disk_already_is_answered_in_the_next_turn(disk, waits, answers) -> None:
    disk.flushed_position = 10
    wait(waits, answers, 10)
    assert answers == []
    await asyncio.sleep(0)
    assert answers == [(10, True)]


async def test_a_closed_store_takes_no_waits(disk, waits, answers) -> None:
    disk.is_closed = True
    with pytest.raises(StoreClosedError):
        wait(waits, answers, 10)
    disk.is_closed = False
    wait(waits, answers, 20)
    await disk.force(20)
    assert answers == [(20, True)]
