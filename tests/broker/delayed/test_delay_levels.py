"""Delay levels: delivery when a message is due; how it waits is in the recorded conversation `stored`."""

from pathlib import Path

import msgspec
import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.delayed.delay_levels import FAILURE_PAUSE_MS
from pocketmq.broker.delayed.delayed_sends import delay_if_asked
from pocketmq.broker.time.slices import ITEMS_IN_A_TURN, MAX_LATE_FACTOR
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_PREPARED
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.properties import decode_properties, encode_properties, tags_code
from pocketmq.protocol.message.topics import HALF_TOPIC, SCHEDULE_TOPIC
from pocketmq.store import NewMessage, PutStatus, VirtualClock

from broker_fakes import FakeLoop, MakeBroker, close_broker, make_broker, record_at

BORN_HOST = pack_host("10.0.0.9", 50_000)
STORE_HOST = pack_host("10.0.0.8", 10_911)


@pytest.fixture
async def broker(broker: Broker) -> Broker:
    broker.delayed.levels.start()
    return broker


def new_message(properties: dict[str, str], /, **fields: object) -> NewMessage:
    message = NewMessage(
        topic="T1",
        queue_id=3,
        body=b"hello",
        properties=encode_properties(properties),
        flag=7,
        born_timestamp=1234,
        born_host=BORN_HOST,
        store_host=STORE_HOST,
        reconsume_times=2,
    )
    return msgspec.structs.replace(message, **fields)


def stored_text(broker: Broker, message: NewMessage) -> bytes:
    text = broker.store.pack_message(message)[3]
    assert text is not None
    return text


def send(broker: Broker, properties: dict[str, str], **fields: object) -> None:
    """Store a message as the send path does."""
    message = delay_if_asked(broker.delayed, new_message(properties, **fields))
    assert broker.store.append(message).status is PutStatus.PUT_OK


def delivered(broker: Broker, topic: str = "T1", queue_id: int = 3) -> int:
    return broker.store.max_offset(topic, queue_id)


async def test_half_messages_do_not_wait_and_committed_ones_do(broker: Broker) -> None:
    half = delay_if_asked(broker.delayed, new_message({"DELAY": "1"}, sys_flag=TRANSACTION_PREPARED))
    assert half.topic == "T1"
    committed = delay_if_asked(broker.delayed, new_message({"DELAY": "1"}, sys_flag=TRANSACTION_COMMIT))
    assert committed.topic == SCHEDULE_TOPIC


class TestDelivery:
    async def test_the_delivered_record_is_the_waiting_one_at_its_real_place(
        self, broker: Broker, loop: FakeLoop, clock: VirtualClock
    ) -> None:
        send(broker, {"TAGS": "A", "KEYS": "k", "DELAY": "1"}, sys_flag=0x1)
        waiting = record_at(broker, SCHEDULE_TOPIC, 0, 0)
        loop.run_for(1000)
        record = record_at(broker, "T1", 3, 0)
        same = ("flag", "sys_flag", "born_timestamp", "born_host", "store_host", "reconsume_times")
        assert [getattr(record, name) for name in same] == [getattr(waiting, name) for name in same]
        assert bytes(record.body) == b"hello"
        assert bytes(record.properties) == bytes(waiting.properties)
        assert {"DELAY", "REAL_TOPIC", "REAL_QID"} <= decode_properties(record.properties).keys()
        assert record.store_timestamp == clock.now_ms() == waiting.store_timestamp + 1000

    async def test_tags_are_a_tags_code_again(self, broker: Broker, loop: FakeLoop) -> None:
        send(broker, {"TAGS": "A", "DELAY": "1"})
        loop.run_for(1000)
        entry = broker.store.queue_unit("T1", 3, 0)
        assert entry is not None
        assert entry[2] == tags_code("A")

    async def test_one_level_is_delivered_in_order(self, broker: Broker, loop: FakeLoop) -> None:
        for number in range(20):
            send(broker, {"DELAY": "1"}, body=b"%d" % number)
            loop.run_for(37)
        loop.run_for(1000)
        bodies = [bytes(record_at(broker, "T1", 3, offset).body) for offset in range(delivered(broker))]
        assert bodies == [b"%d" % number for number in range(20)]

    async def test_many_due_messages_are_spread_over_turns_of_the_loop(
        self, broker: Broker, loop: FakeLoop, clock: VirtualClock
    ) -> None:
        for _ in range(ITEMS_IN_A_TURN):
            send(broker, {"DELAY": "1"})
            send(broker, {"DELAY": "2"}, topic="T2")
        clock.advance(5000)
        broker.delayed.levels.deliver_due(clock.now_ms())
        assert (delivered(broker), delivered(broker, "T2")) == (ITEMS_IN_A_TURN, 0)
        loop.run_for(0)
        assert (delivered(broker), delivered(broker, "T2")) == (ITEMS_IN_A_TURN, ITEMS_IN_A_TURN)

    async def test_late_messages_are_delivered_faster(self, broker: Broker, clock: VirtualClock) -> None:
        for _ in range((2 + MAX_LATE_FACTOR) * ITEMS_IN_A_TURN):
            send(broker, {"DELAY": "1"})
        clock.advance(61_000)
        for turns in (1, 1 + MAX_LATE_FACTOR):
            broker.delayed.levels.deliver_due(clock.now_ms())
            assert delivered(broker) == turns * ITEMS_IN_A_TURN

    async def test_nothing_runs_while_nothing_waits(self, broker: Broker, loop: FakeLoop) -> None:
        assert loop.waiting == 0
        send(broker, {"DELAY": "1"})
        assert loop.waiting == 1
        loop.run_for(1000)
        assert (delivered(broker), loop.waiting, loop.fired) == (1, 0, 1)

    async def test_a_store_that_takes_nothing_is_tried_again_without_loss_or_repetition(
        self, broker: Broker, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        send(broker, {"DELAY": "1"})
        send(broker, {"DELAY": "1"})
        monkeypatch.setattr(broker.store.admission, "accepting", False)
        loop.run_for(2000)
        assert delivered(broker) == 0
        monkeypatch.undo()
        loop.run_for(100)
        assert delivered(broker) == 2
        assert broker.delays.offset(1) == 2

    async def test_a_message_that_fails_is_skipped_and_blocks_no_other(
        self, broker: Broker, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for topic in ("good", "bad", "good"):
            send(broker, {"DELAY": "1"}, topic=topic)
        append = broker.store.append

        def failing(message: NewMessage) -> object:
            if message.topic == "bad":
                raise RuntimeError("made up")
            return append(message)

        monkeypatch.setattr(broker.store, "append", failing)
        loop.run_for(5000)
        assert (delivered(broker, "bad"), delivered(broker, "good")) == (0, 2)
        assert broker.delays.offset(1) == 3

    async def test_an_error_of_the_system_loses_no_message(
        self, broker: Broker, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        send(broker, {"DELAY": "1"})

        def failing(message: NewMessage) -> object:
            raise OSError(5, "made up")

        monkeypatch.setattr(broker.store, "append", failing)
        loop.run_for(5000)
        monkeypatch.undo()
        loop.run_for(200)
        assert delivered(broker) == 1

    async def test_a_failure_rests_one_level_and_no_other(
        self, broker: Broker, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        send(broker, {"DELAY": "1"}, topic="bad")
        send(broker, {"DELAY": "2"}, topic="good")
        consume_queue = broker.store.consume_queue

        def failing(topic: str, queue_id: int) -> object:
            if queue_id == 0:
                raise RuntimeError("made up")
            return consume_queue(topic, queue_id)

        monkeypatch.setattr(broker.store, "consume_queue", failing)
        loop.run_for(5000)
        assert (delivered(broker, "bad"), delivered(broker, "good")) == (0, 1)
        monkeypatch.undo()
        loop.run_for(FAILURE_PAUSE_MS)
        assert delivered(broker, "bad") == 1

    @pytest.mark.parametrize("queue_id", ["", "x"])
    async def test_a_message_without_a_real_place_does_not_block_its_level(
        self, broker: Broker, loop: FakeLoop, queue_id: str
    ) -> None:
        broken = {"DELAY": "1", "REAL_QID": queue_id, "REAL_TOPIC": "T1"}
        text = "".join(f"{name}\x01{value}\x02" for name, value in broken.items() if value).encode()
        broker.store.append(
            new_message(broken, topic=SCHEDULE_TOPIC, queue_id=0, properties=text),
        )
        send(broker, {"DELAY": "1"}, topic=HALF_TOPIC)
        send(broker, {"DELAY": "1"})
        loop.run_for(1000)
        assert delivered(broker) == 1
        assert delivered(broker, HALF_TOPIC) == 0
        assert broker.delays.offset(1) == 3

    @pytest.mark.parametrize("topic", ["%RETRY%../../up", "%RETRY%" + "g" * 300])
    async def test_a_message_that_can_never_be_stored_does_not_block_its_level(
        self, broker: Broker, loop: FakeLoop, topic: str
    ) -> None:
        send(broker, {"DELAY": "1"}, topic=topic)
        send(broker, {"DELAY": "1"})
        loop.run_for(1000)
        assert delivered(broker) == 1
        assert broker.delays.offset(1) == 2

    async def test_a_clock_set_back_does_not_hold_messages_for_longer_than_their_level(
        self, broker: Broker, loop: FakeLoop, clock: VirtualClock
    ) -> None:
        send(broker, {"DELAY": "1"})
        clock.set_now_ms(clock.now_ms() - 3_600_000)
        loop.run_for(1000)
        assert delivered(broker) == 1

    async def test_a_clock_set_ahead_is_noticed_within_a_second(self, broker: Broker, loop: FakeLoop) -> None:
        send(broker, {"DELAY": "5"})
        broker.clock.set_now_ms(broker.clock.now_ms() + 3_600_000)
        loop.run_for(1000)
        assert delivered(broker) == 1

    async def test_delivery_is_counted(self, broker: Broker, loop: FakeLoop) -> None:
        send(broker, {"DELAY": "1"})
        loop.run_for(1000)
        assert broker.statistics.find("TOPIC_PUT_NUMS", "T1") is not None
        assert broker.statistics.find("GROUP_GET_NUMS", f"{SCHEDULE_TOPIC}@SCHEDULE_CONSUMER") is not None

    async def test_waiting_pulls_hear_of_a_delivery(
        self, broker: Broker, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heard: list[tuple[str, int, int]] = []
        monkeypatch.setattr(
            broker.pulling.waiters,
            "arrived",
            lambda topic, queue_id, offset, *_: heard.append((topic, queue_id, offset)),
        )
        monkeypatch.setattr(broker.pulling.waiters, "has_waiting", lambda topic, queue_id: True)
        send(broker, {"DELAY": "1"})
        loop.run_for(1000)
        assert heard == [(SCHEDULE_TOPIC, 0, 0), ("T1", 3, 0)]

    async def test_nothing_is_delivered_after_stop(self, broker: Broker, loop: FakeLoop) -> None:
        send(broker, {"DELAY": "1"})
        broker.delayed.levels.stop()
        send(broker, {"DELAY": "1"})
        loop.run_for(5000)
        assert (delivered(broker), loop.waiting) == (0, 0)


class TestRestart:
    async def test_late_messages_are_delivered_at_once_after_a_restart_and_only_once(
        self, tmp_path: Path, clock: VirtualClock, loop: FakeLoop
    ) -> None:
        broker = started(tmp_path, clock, loop)
        send(broker, {"DELAY": "1"}, body=b"before")
        loop.run_for(1000)
        send(broker, {"DELAY": "2"}, body=b"during")
        assert delivered(broker) == 1
        stopped(broker)
        clock.advance(60_000)
        broker = started(tmp_path, clock, loop)
        assert delivered(broker) == 1
        loop.run_for(0)
        assert delivered(broker) == 2
        loop.run_for(5000)
        assert delivered(broker) == 2
        assert bytes(record_at(broker, "T1", 3, 1).body) == b"during"
        stopped(broker)

    async def test_the_offset_of_a_message_that_is_not_due_is_in_the_offset_file(
        self, tmp_path: Path, clock: VirtualClock, loop: FakeLoop
    ) -> None:
        broker = started(tmp_path, clock, loop)
        send(broker, {"DELAY": "18"})
        stopped(broker)
        broker = started(tmp_path, clock, loop)
        loop.run_for(1000)
        assert b'"offsetTable":{18:0}' in broker.delays.to_json(pretty=False)
        stopped(broker)

    async def test_line_4_notes_a_level_only_with_its_first_delivery(
        self, tmp_path: Path, clock: VirtualClock, loop: FakeLoop
    ) -> None:
        broker = started(tmp_path, clock, loop, emulate=4)
        send(broker, {"DELAY": "1"})
        assert broker.delays.levels_with_offset() == []
        loop.run_for(2000)
        assert broker.delays.levels_with_offset() == [1]
        stopped(broker)

    async def test_an_offset_outside_its_queue_is_corrected(
        self, tmp_path: Path, clock: VirtualClock, loop: FakeLoop
    ) -> None:
        broker = started(tmp_path, clock, loop)
        send(broker, {"DELAY": "1"})
        broker.delays.update(1, 77)
        stopped(broker)
        broker = started(tmp_path, clock, loop)
        assert broker.delays.offset(1) == 1
        send(broker, {"DELAY": "1"}, body=b"next")
        loop.run_for(1000)
        assert bytes(record_at(broker, "T1", 3, 0).body) == b"next"
        stopped(broker)

    async def test_a_slave_delivers_nothing(
        self, broker_maker: MakeBroker, clock: VirtualClock, loop: FakeLoop
    ) -> None:
        broker = broker_maker(store={"broker_role": "SLAVE"})
        delayed = broker.delayed.levels
        delayed.start()
        delayed.arrived(0, clock.now_ms())
        assert loop.waiting == 0


def started(folder: Path, clock: VirtualClock, loop: FakeLoop, emulate: int = 5) -> Broker:
    broker = make_broker(folder, clock, loop=loop, emulate=emulate)
    broker.delayed.levels.start()
    return broker


def stopped(broker: Broker) -> None:
    broker.delayed.levels.stop()
    close_broker(broker)
