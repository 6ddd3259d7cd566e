"""Timed messages over a stop, a kill, lost files, a full disk and a change of master, on a virtual clock."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from pocketmq.protocol.requests.replication import GetTimerCheckPoint
from pocketmq.store import VirtualClock
from pocketmq.store.errors import DiskFullError
from pocketmq.store.timer.timer_checkpoint import decode_timer_checkpoint
from pocketmq.store.timer.timer_store import TimerStore
from pocketmq.store.timer.timer_wheel import Slot, TimerWheel

from broker_fakes import FakeLoop, ask, make_broker
from timer_sends import bodies, send, stop, with_timer


async def test_waiting_messages_are_delivered_after_a_restart_and_late_ones_at_once(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop
) -> None:
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    for seconds in (2, 30, 60):
        await send(broker, str(seconds).encode(), TIMER_DELAY_SEC=str(seconds))
    loop.run_for(5000)
    stop(broker)
    clock.advance(40_000)
    again = with_timer(make_broker(tmp_path, clock, loop=loop))
    loop.run_for(100)
    assert bodies(again) == [b"2", b"30"]
    loop.run_for(15_000)
    assert bodies(again) == [b"2", b"30", b"60"]
    stop(again)


async def test_no_message_is_delivered_twice_when_the_process_is_killed(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop
) -> None:
    """The checkpoint is then older than the log and the wheel."""
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    for seconds in (10, 20, 20):
        await send(broker, str(seconds).encode(), TIMER_DELAY_SEC=str(seconds))
    broker.state.close()  # the timer saves nothing
    loop.forget()
    clock.advance(1000)
    again = with_timer(make_broker(tmp_path, clock, loop=loop))
    loop.run_for(30_000)
    assert bodies(again) == [b"10", b"20", b"20"]
    stop(again)


async def test_delivered_messages_are_not_delivered_again_when_the_process_is_killed_before_the_next_save(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is saved from the delivery on; one of the messages is due when it is sent."""
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    for seconds in (5, 5, 6, 3600):
        await send(broker, str(seconds).encode(), TIMER_DELAY_SEC=str(seconds))
    loop.run_for(2000)
    with monkeypatch.context() as patch:
        patch.setattr(TimerStore, "flush", lambda timers, checkpoint: None)
        loop.run_for(6000)
        await send(broker, b"now", TIMER_DELIVER_MS=str(clock.now_ms() - 5000))
        loop.run_for(10)
    broker.state.close()
    loop.forget()
    again = with_timer(make_broker(tmp_path, clock, loop=loop))
    loop.run_for(30_000)
    assert sorted(bodies(again)) == [b"5", b"5", b"6", b"now"]
    stop(again)


async def test_rest_of_a_slot_is_delivered_when_the_process_is_killed_in_its_middle(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop
) -> None:
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    for number in range(700):
        await send(broker, str(number).encode(), TIMER_DELAY_SEC="2")
    loop.run_for(1999)
    loop.run_for(1, most=2)
    assert 0 < len(bodies(broker)) < 700
    broker.state.close()
    loop.forget()
    again = with_timer(make_broker(tmp_path, clock, loop=loop))
    loop.run_for(5000)
    assert bodies(again) == [str(number).encode() for number in range(700)]
    stop(again)


async def test_record_that_is_due_later_than_its_unit_is_not_delivered_for_it(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop
) -> None:
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    await send(broker, b"later", TIMER_DELAY_SEC="3600")
    await send(broker, b"soon", TIMER_DELAY_SEC="5")
    timers = broker.delayed.timer._timers
    assert timers is not None
    later, soon = timers.log.read(0), timers.log.read(52)
    assert later is not None
    assert soon is not None
    timers.enqueue(soon.due_ms, [(later.position, later.size, "T", False)], clock.now_ms())
    loop.run_for(10_000)
    assert bodies(broker) == [b"soon"]
    stop(broker)


@pytest.mark.parametrize("lost", ["timerwheel", "timerlog", "both"])
async def test_lost_files_are_made_anew(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop, lost: str
) -> None:
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    for seconds in (2, 30, 60):
        await send(broker, str(seconds).encode(), TIMER_DELAY_SEC=str(seconds))
    loop.run_for(5000)
    stop(broker)
    if lost in ("timerwheel", "both"):
        (tmp_path / "timerwheel").unlink()
    if lost in ("timerlog", "both"):
        for file in (tmp_path / "timerlog").iterdir():
            file.unlink()
    again = with_timer(make_broker(tmp_path, clock, loop=loop))
    loop.run_for(60_000)
    assert bodies(again) == [b"2", b"30", b"60"]
    stop(again)


async def test_slave_that_becomes_a_master_delivers_what_is_left(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop
) -> None:
    """It has the log of its master, and of the timer only the answer to 60."""
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    for seconds in (2, 30, 60):
        await send(broker, str(seconds).encode(), TIMER_DELAY_SEC=str(seconds))
    loop.run_for(5000)
    told = (await ask(broker, GetTimerCheckPoint())).body
    stop(broker)
    for file in (
        *(tmp_path / "timerlog").iterdir(),
        tmp_path / "timerwheel",
        tmp_path / "config" / "timercheck",
    ):
        file.unlink()
    slave = make_broker(tmp_path, clock, loop=loop, store={"broker_role": "SLAVE"})
    slave.delayed.timer.start()
    slave.delayed.timer.follow(decode_timer_checkpoint(told))
    stop(slave)
    again = with_timer(make_broker(tmp_path, clock, loop=loop))
    loop.run_for(60_000)
    assert bodies(again) == [b"2", b"30", b"60"]
    stop(again)


async def test_stop_finishes_the_moment_that_is_being_delivered(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop
) -> None:
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    for number in range(700):
        await send(broker, str(number).encode(), TIMER_DELAY_SEC="2")
    loop.run_for(1999)
    loop.run_for(1, most=2)
    assert 0 < len(bodies(broker)) < 700
    stop(broker)
    again = with_timer(make_broker(tmp_path, clock, loop=loop))
    loop.run_for(5000)
    assert bodies(again) == [str(number).encode() for number in range(700)]
    stop(again)


async def test_message_that_the_full_disk_could_not_enqueue_is_delivered_once(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    await send(broker, b"first", TIMER_DELAY_SEC="5")
    with monkeypatch.context() as patch:

        def full(wheel: TimerWheel, slot: Slot) -> None:
            raise DiskFullError("no space")

        patch.setattr(TimerWheel, "put", full)
        # The first message of a moment may need room in the wheel's file.
        assert (await send(broker, b"second", TIMER_DELAY_SEC="6")).code == 0
        loop.run_for(1500)
        assert broker.delayed.timer.messages_behind == 1
    loop.run_for(1000)
    stop(broker)
    (tmp_path / "timerwheel").unlink()
    again = with_timer(make_broker(tmp_path, clock, loop=loop))
    loop.run_for(10_000)
    assert bodies(again) == [b"first", b"second"]
    stop(again)


async def test_while_the_wheel_cannot_be_written_messages_are_delivered_and_nothing_is_saved(
    tmp_path: Path, clock: VirtualClock, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = with_timer(make_broker(tmp_path, clock, loop=loop))
    for name in (b"first", b"second"):
        await send(broker, name, TIMER_DELAY_SEC="5")
    for name in (b"third", b"fourth"):
        await send(broker, name, TIMER_DELAY_SEC="15")

    def full(wheel: TimerWheel, slots: Iterable[Slot]) -> None:
        raise DiskFullError("no space")

    checkpoint = tmp_path / "config" / "timercheck"
    with monkeypatch.context() as patch:
        patch.setattr(TimerWheel, "put_all", full)
        loop.run_for(10_000)
        assert bodies(broker) == [b"first", b"second"]
        assert not checkpoint.exists()
    loop.run_for(1000)
    assert checkpoint.exists()
    broker.state.close()  # the timer saves nothing more
    loop.forget()
    again = with_timer(make_broker(tmp_path, clock, loop=loop))
    loop.run_for(10_000)
    assert bodies(again) == [b"first", b"second", b"third", b"fourth"]
    stop(again)
