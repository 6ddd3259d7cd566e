"""Many sends that wait for the disk: answered once each, in their order, by one question to the flusher."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.broker.storing.disk_waits import DiskWaits
from pocketmq.store import StoreClosedError, StoreConfig

TIMEOUT_SECONDS = 5


class Loop:
    """An event loop whose time is moved by the test."""

    def __init__(self) -> None:
        self._now = 100.0
        self._soon: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Callable[..., None], *arguments: Any) -> None:
        self.timers.append((when, lambda: callback(*arguments)))

    def call_soon_threadsafe(self, callback: Callable[..., None], *arguments: Any) -> None:
        self._soon.append(lambda: callback(*arguments))

    def turn(self) -> None:
        soon, self._soon = self._soon, []
        for callback in soon:
            callback()

    def advance(self, seconds: float) -> None:
        self._now += seconds
        due = [timer for timer in self.timers if timer[0] <= self._now]
        self.timers = [timer for timer in self.timers if timer[0] > self._now]
        for _, callback in due:
            callback()


class Disk:
    """Stands for the store: forces nothing, keeps what is asked of it."""

    def __init__(self) -> None:
        self.config = StoreConfig(store_path_root_dir="", sync_flush_timeout=1000 * TIMEOUT_SECONDS)
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


class Sends:
    """What waits, and what was answered."""

    def __init__(self) -> None:
        self.loop, self.disk = Loop(), Disk()
        self.waits = DiskWaits(self.disk)  # type: ignore[arg-type]
        self.answers: list[tuple[int, bool]] = []

    def wait(self, *ends: int) -> None:
        for end in ends:
            self.waits.wait(self.loop, end, functools.partial(self._answered, end))  # type: ignore[arg-type]

    def _answered(self, end: int, is_safe: bool) -> None:
        self.answers.append((end, is_safe))

    def force(self, position: int, *, works: bool = True) -> None:
        """The log is forced up to a position, or the disk refuses."""
        if works:
            self.disk.flushed_position = position
        asked, self.disk.asked = self.disk.asked, []
        for wanted, callback in asked:
            callback(wanted <= self.disk.flushed_position)
        self.loop.turn()


@pytest.fixture
def sends() -> Sends:
    return Sends()


def test_one_question_answers_all_that_the_disk_has(sends: Sends) -> None:
    sends.wait(10, 20, 30)
    assert [position for position, _ in sends.disk.asked] == [10]
    sends.force(20)
    assert sends.answers == [(10, True), (20, True)]
    assert [position for position, _ in sends.disk.asked] == [30], "the rest is asked about again"
    sends.wait(40)
    sends.force(40)
    assert sends.answers[2:] == [(30, True), (40, True)]
    assert sends.disk.asked == []


def test_a_disk_that_refuses_answers_all(sends: Sends) -> None:
    sends.wait(10, 20, 30)
    sends.force(10)
    sends.force(10, works=False)
    assert sends.answers == [(10, True), (20, False), (30, False)]


def test_each_is_answered_once_its_own_time_has_passed(sends: Sends) -> None:
    sends.wait(10)
    sends.loop.advance(TIMEOUT_SECONDS - 1)
    sends.wait(20)
    sends.loop.advance(1)
    assert sends.answers == [(10, False)]
    sends.loop.advance(TIMEOUT_SECONDS)
    assert sends.answers == [(10, False), (20, False)]
    sends.force(20)
    assert len(sends.answers) == 2
    sends.wait(30)
    sends.loop.advance(TIMEOUT_SECONDS)
    assert sends.answers[2:] == [(30, False)]


def test_there_is_one_timer_however_many_wait(sends: Sends) -> None:
    for number in range(1, 100):
        sends.wait(number)
        sends.force(number)
        sends.loop.advance(0.1)
        assert len(sends.loop.timers) <= 1
    assert sends.answers == [(number, True) for number in range(1, 100)]


def test_what_is_on_disk_already_is_answered_in_the_next_turn(sends: Sends) -> None:
    sends.disk.flushed_position = 10
    sends.wait(10)
    assert sends.answers == []
    sends.loop.turn()
    assert sends.answers == [(10, True)]


def test_a_closed_store_takes_no_waits(sends: Sends) -> None:
    sends.disk.is_closed = True
    with pytest.raises(StoreClosedError):
        sends.wait(10)
    sends.disk.is_closed = False
    sends.wait(20)
    sends.force(20)
    assert sends.answers == [(20, True)]
