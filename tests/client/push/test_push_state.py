"""What a push consumer keeps besides its queues: a pause by its user, and when a popped queue was popped last."""

import time
from collections.abc import Callable

import pytest
from pocketmq.client import PushConsumerSettings, clock
from pocketmq.client.rebalancing.flow_control import PullControl
from pocketmq.client.rebalancing.process_queue import PopProcessQueue


def test_a_reset_of_the_offsets_does_not_end_a_pause_by_the_user() -> None:
    control = PullControl(PushConsumerSettings())
    control.resets += 1
    assert control.is_paused
    control.is_suspended = True
    control.resets -= 1
    assert control.is_paused
    control.is_suspended = False
    assert not control.is_paused


def shifted(read: Callable[..., int], seconds: int) -> Callable[..., int]:
    return lambda *arguments: read(*arguments) + seconds * 1_000_000_000


def test_a_clock_that_is_set_does_not_restart_the_pops(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = PopProcessQueue(clock.steady_ms)
    monkeypatch.setattr(time, "time_ns", shifted(time.time_ns, 600))
    assert not queue.is_expired


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="no clock here goes on in a sleep")
def test_ages_go_on_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    read, before = time.clock_gettime_ns, clock.steady_ms()
    asleep = {time.CLOCK_BOOTTIME: 3_600_000_000_000}
    monkeypatch.setattr(time, "clock_gettime_ns", lambda kind: read(kind) + asleep.get(kind, 0))
    assert clock.steady_ms() - before >= 3_600_000
