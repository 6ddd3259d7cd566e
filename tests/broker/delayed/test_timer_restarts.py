"""Timed messages over a stop, a kill, lost files, a full disk and a change of master, on a virtual clock."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.time.slices import ITEMS_IN_A_TURN, MAX_LATE_FACTOR
from pocketmq.protocol.requests.replication import GetTimerCheckPoint
from pocketmq.protocol.requests.send import RecallMessage
from pocketmq.store import MessageStore, VirtualClock
from pocketmq.store.errors import DiskFullError
from pocketmq.store.timer.timer_checkpoint import decode_timer_checkpoint
from pocketmq.store.timer.timer_log import TimerLog
from pocketmq.store.timer.timer_store import TimerStore
from pocketmq.store.timer.timer_wheel import TimerWheel

from broker_fakes import FakeLoop, ask, make_broker
from timer_sends import bodies, send, stop, with_timer


class Life:
    """The processes that serve one store, one after the other."""

    def __init__(self, folder: Path, clock: VirtualClock, loop: FakeLoop) -> None:
        self.folder = folder
        self.clock = clock
        self.loop = loop
        self._broker: Broker | None = None

    def begin(self, **store: str) -> Broker:
        """A broker whose timer is started."""
        self._broker = with_timer(make_broker(self.folder, self.clock, loop=self.loop, store=store))
        return self._broker

    def stop(self) -> None:
        if self._broker is not None:
            stop(self._broker)
        self._broker = None

    def kill(self) -> None:
        """The timer saves nothing more."""
        assert self._broker is not None
        self._broker.state.close()
        self._broker = None
        self.loop.forget()


@pytest.fixture
async def life(tmp_path: Path, clock: VirtualClock, loop: FakeLoop) -> AsyncIterator[Life]:
    life = Life(tmp_path, clock, loop)
    yield life
    life.stop()


async def send_for(broker: Broker, *seconds: int) -> None:
    """A message for each time from now, with the time as its body."""
    for one in seconds:
        await send(broker, str(one).encode(), TIMER_DELAY_SEC=str(one))


async def test_waiting_messages_are_delivered_after_a_restart_and_late_ones_at_once(life: Life) -> None:
    broker = life.begin()
    await send_for(broker, 2, 30, 60)
    life.loop.run_for(5000)
    life.stop()
    life.clock.advance(40_000)
    again = life.begin()
    life.loop.run_for(100)
    assert bodies(again) == [b"2", b"30"]
    life.loop.run_for(15_000)
    assert bodies(again) == [b"2", b"30", b"60"]


async def test_no_message_is_delivered_twice_when_the_process_is_killed(life: Life) -> None:
    """The checkpoint is then older than the log and the wheel."""
    broker = life.begin()
    await send_for(broker, 10, 20, 20)
    life.kill()
    life.clock.advance(1000)
    again = life.begin()
    life.loop.run_for(30_000)
    assert bodies(again) == [b"10", b"20", b"20"]


async def test_delivered_messages_are_not_delivered_again_when_the_process_is_killed_before_the_next_save(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is saved from the delivery on; one of the messages is due when it is sent."""
    broker = life.begin()
    await send_for(broker, 5, 5, 6, 3600)
    life.loop.run_for(2000)
    with monkeypatch.context() as patch:
        patch.setattr(TimerStore, "flush", lambda timers, checkpoint: None)
        life.loop.run_for(6000)
        await send(broker, b"now", TIMER_DELIVER_MS=str(life.clock.now_ms() - 5000))
        life.loop.run_for(10)
    life.kill()
    again = life.begin()
    life.loop.run_for(30_000)
    assert sorted(bodies(again)) == [b"5", b"5", b"6", b"now"]


@pytest.mark.parametrize("is_killed", [False, True])
async def test_rest_of_a_slot_is_delivered_when_the_process_ends_in_its_middle(
    life: Life, is_killed: bool
) -> None:
    """A stop delivers it first."""
    broker = life.begin()
    for number in range(700):
        await send(broker, str(number).encode(), TIMER_DELAY_SEC="2")
    life.loop.run_for(1999)
    life.loop.run_for(1, most=2)
    assert 0 < len(bodies(broker)) < 700
    if is_killed:
        life.kill()
    else:
        life.stop()
    again = life.begin()
    life.loop.run_for(5000)
    assert bodies(again) == [str(number).encode() for number in range(700)]


async def test_record_that_is_due_later_than_its_unit_is_not_delivered_for_it(life: Life) -> None:
    broker = life.begin()
    await send(broker, b"later", TIMER_DELAY_SEC="3600")
    await send(broker, b"soon", TIMER_DELAY_SEC="5")
    timers = broker.delayed.timer._timers
    assert timers is not None
    later, soon = timers.log.read(0), timers.log.read(52)
    assert later is not None
    assert soon is not None
    timers.enqueue(soon.due_ms, [(later.position, later.size, "T", False)], life.clock.now_ms())
    life.loop.run_for(10_000)
    assert bodies(broker) == [b"soon"]
    life.stop()


@pytest.mark.parametrize("lost", ["timerwheel", "timerlog", "both"])
async def test_lost_files_are_made_anew(life: Life, lost: str) -> None:
    broker = life.begin()
    await send_for(broker, 2, 30, 60)
    life.loop.run_for(5000)
    life.stop()
    if lost in ("timerwheel", "both"):
        (life.folder / "timerwheel").unlink()
    if lost in ("timerlog", "both"):
        for file in (life.folder / "timerlog").iterdir():
            file.unlink()
    again = life.begin()
    life.loop.run_for(60_000)
    assert bodies(again) == [b"2", b"30", b"60"]


async def test_slave_that_becomes_a_master_delivers_what_is_left(life: Life) -> None:
    """It has the log of its master, and of the timer only the answer to 60."""
    broker = life.begin()
    await send_for(broker, 2, 30, 60)
    life.loop.run_for(5000)
    told = (await ask(broker, GetTimerCheckPoint())).body
    life.stop()
    for file in (
        *(life.folder / "timerlog").iterdir(),
        life.folder / "timerwheel",
        life.folder / "config" / "timercheck",
    ):
        file.unlink()
    slave = life.begin(broker_role="SLAVE")
    slave.delayed.timer.follow(decode_timer_checkpoint(told))
    life.stop()
    again = life.begin()
    life.loop.run_for(60_000)
    assert bodies(again) == [b"2", b"30", b"60"]


def full(*_: object) -> None:
    """In the place of what writes slots or units: a disk without room."""
    raise DiskFullError("no space")


async def test_message_that_the_full_disk_could_not_enqueue_is_delivered_once(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = life.begin()
    await send(broker, b"first", TIMER_DELAY_SEC="5")
    with monkeypatch.context() as patch:
        patch.setattr(TimerWheel, "put_all", full)
        # The first message of a moment may need room in the wheel's file.
        assert (await send(broker, b"second", TIMER_DELAY_SEC="6")).code == 0
        life.loop.run_for(1500)
        assert broker.delayed.timer.messages_behind == 1
    life.loop.run_for(1000)
    life.stop()
    (life.folder / "timerwheel").unlink()
    again = life.begin()
    life.loop.run_for(10_000)
    assert bodies(again) == [b"first", b"second"]


async def test_message_that_waited_for_the_disk_overtakes_none_that_is_due_earlier(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pop's ack would be read before its checkpoint, and count for nothing."""
    broker = life.begin()
    await send(broker, b"first", TIMER_DELAY_SEC="5")
    with monkeypatch.context() as patch:
        patch.setattr(TimerWheel, "put_all", full)
        assert (await send(broker, b"second", TIMER_DELAY_SEC="6")).code == 0
        life.clock.advance(10_000)
    life.loop.run_for(5_000)
    assert bodies(broker) == [b"first", b"second"]


async def test_while_the_wheel_cannot_be_written_messages_are_delivered_and_nothing_is_saved(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = life.begin()
    for name in (b"first", b"second"):
        await send(broker, name, TIMER_DELAY_SEC="5")
    for name in (b"third", b"fourth"):
        await send(broker, name, TIMER_DELAY_SEC="15")

    checkpoint = life.folder / "config" / "timercheck"
    with monkeypatch.context() as patch:
        patch.setattr(TimerWheel, "put_all", full)
        life.loop.run_for(10_000)
        assert bodies(broker) == [b"first", b"second"]
        assert not checkpoint.exists()
    life.loop.run_for(1000)
    assert checkpoint.exists()
    life.kill()
    again = life.begin()
    life.loop.run_for(10_000)
    assert bodies(again) == [b"first", b"second", b"third", b"fourth"]


@pytest.mark.parametrize("between", [0, 300])
async def test_recall_that_could_not_be_enqueued_before_its_time_still_counts(
    life: Life, monkeypatch: pytest.MonkeyPatch, between: int
) -> None:
    """Its answer was a success: a power loss may have taken its unit from the timer log, or the disk was full."""
    broker = life.begin()
    broker.config.recall_message_enable = True
    sent = await send(broker, b"recalled", TIMER_DELAY_SEC="5", UNIQ_KEY="U")
    await send(broker, b"kept", TIMER_DELAY_SEC="5")
    with monkeypatch.context() as patch:
        patch.setattr(TimerLog, "append", full)
        for number in range(between):
            await send(broker, b"%d" % number, TIMER_DELAY_SEC="60")
        recall = RecallMessage(producer_group="pg", topic="T", recall_handle=sent.fields["recallHandle"])
        assert (await ask(broker, recall)).code == 0
        life.clock.advance(10_000)
    life.loop.run_for(5_000)
    assert bodies(broker) == [b"kept"]


async def test_slots_are_delivered_although_more_arrives_in_each_turn_than_one_enqueues_of_a_backlog(
    life: Life,
) -> None:
    """What arrives while there is a backlog is enqueued behind it."""
    broker = life.begin()
    broker.config.store.timer_stop_enqueue = True
    await send_for(broker, *[2] * 300)
    broker.config.store.timer_stop_enqueue = False
    life.clock.advance(5000)
    for _ in range(20):
        await send_for(broker, *[60] * (ITEMS_IN_A_TURN + 10))
        life.loop.run_for(1, most=1)
    assert bodies(broker) == [b"2"] * 300
    assert broker.delayed.timer.messages_behind == 0


@pytest.mark.parametrize(("late_ms", "turns"), [(0, 1), (1000, 2), (60_000, MAX_LATE_FACTOR)])
async def test_a_slot_that_is_late_is_delivered_faster(life: Life, late_ms: int, turns: int) -> None:
    """Else each slot of a broker without a pause would be later than the one before."""
    broker = life.begin()
    await send_for(broker, *[2] * (10 * ITEMS_IN_A_TURN))
    life.clock.advance(2000 + late_ms)
    life.loop.run_for(1, most=1)
    assert len(bodies(broker)) == turns * ITEMS_IN_A_TURN


async def test_the_log_is_forced_before_the_timer_is_saved(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint says that a message was delivered: a power loss must not take that message."""
    forced: list[int] = []
    monkeypatch.setattr(MessageStore, "force_log", lambda store, position: forced.append(position))
    broker = life.begin()
    await send_for(broker, 2)
    life.loop.run_for(5000)
    assert bodies(broker) == [b"2"]
    assert forced[-1] == broker.store.log_end
