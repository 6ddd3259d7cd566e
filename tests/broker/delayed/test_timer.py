"""Timed messages on a virtual clock: rerouting, delivery, recall, restart. Texts and times are those of 5.5.0."""

import base64
import itertools

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.protocol.requests.replication import GetTimerCheckPoint, GetTimerMetrics
from pocketmq.protocol.requests.send import RecallMessage
from pocketmq.protocol.wire.frame import FrameCutter
from pocketmq.store import AppendResult, NewMessage, PutStatus, VirtualClock
from pocketmq.store.errors import StoreDamagedError

from broker_fakes import FakeLoop, MakeBroker, after_the_flush, ask, records, send_request
from send_frames import a_send
from timer_sends import bodies, send, text, with_timer
from transaction_sends import COMMIT, ending, send_half
from wire_without_socket import Wire

NOW_MS = 1_700_000_000_000


@pytest.fixture
async def timed(broker: Broker) -> Broker:
    """The broker, with a timer that runs on the virtual clock."""
    return with_timer(broker)


@pytest.mark.parametrize(
    ("properties", "out_ms"),
    [
        ({"TIMER_DELAY_SEC": "2"}, NOW_MS + 1000),
        ({"TIMER_DELAY_SEC": "+2"}, NOW_MS + 1000),
        ({"TIMER_DELAY_MS": "2500"}, NOW_MS + 2000),
        ({"TIMER_DELIVER_MS": str(NOW_MS + 3000)}, NOW_MS + 2000),
        ({"TIMER_DELIVER_MS": str(NOW_MS + 3001)}, NOW_MS + 3000),
        ({"TIMER_DELAY_SEC": "1", "TIMER_DELAY_MS": "999999999999"}, NOW_MS),
        ({"TIMER_DELAY_SEC": "1", "DELAY": "0"}, NOW_MS),
        ({"TIMER_DELAY_SEC": "259200"}, NOW_MS + 259_199_000),
    ],
)
async def test_message_waits_for_the_second_before_its_time(
    timed: Broker, properties: dict[str, str], out_ms: int
) -> None:
    answer = await send(timed, UNIQ_KEY="U", **properties)
    (waiting,) = records(timed, TIMER_TOPIC)
    kept = text(waiting)
    assert (kept["TIMER_OUT_MS"], kept["REAL_TOPIC"], kept["REAL_QID"]) == (str(out_ms), "T", "1")
    assert (answer.fields["queueId"], answer.fields["queueOffset"]) == ("1", "0")
    handle = base64.urlsafe_b64decode(answer.fields["recallHandle"])
    assert handle == f"v1 T broker-a {out_ms + 1} U".encode()
    assert timed.store.queues_of("T") == []


async def test_message_whose_time_is_now_is_stored_at_once(timed: Broker) -> None:
    """Other times that are over, or are none, are in the recorded conversation `stored`."""
    answer = await send(timed, TIMER_DELIVER_MS=str(NOW_MS))
    assert "recallHandle" not in answer.fields
    assert bodies(timed) == [b"x"]


async def test_time_of_many_digits_is_refused(timed: Broker) -> None:
    assert (await send(timed, TIMER_DELAY_MS="9" * 5000)).code == 13
    assert timed.store.log_end <= 0


async def test_4_9_does_not_know_these_properties(broker4: Broker) -> None:
    with_timer(broker4)
    assert (await send(broker4, TIMER_DELAY_SEC="100")).code == 0
    assert bodies(broker4) == [b"x"]
    assert not (broker4.config.store.root / "timerwheel").exists()


async def test_messages_come_in_order_of_their_time_at_the_first_second_not_before_it(
    timed: Broker, clock: VirtualClock, loop: FakeLoop
) -> None:
    clock.advance(300)
    for delay_ms in (3200, 700, 2500, 701, 2600):
        await send(timed, str(delay_ms).encode(), TIMER_DELAY_MS=str(delay_ms))
    loop.run_for(699)
    assert timed.store.queues_of("T") == []
    loop.run_for(1)
    assert bodies(timed) == [b"700"]
    loop.run_for(1000)
    assert bodies(timed) == [b"700", b"701"]
    loop.run_for(999)
    assert len(bodies(timed)) == 2
    loop.run_for(1)
    assert bodies(timed) == [b"700", b"701", b"2500", b"2600"]
    loop.run_for(1000)
    assert bodies(timed)[4:] == [b"3200"]
    loop.run_for(5000)
    assert loop.waiting == 0, "nothing runs while nothing waits"


async def test_delivered_message_says_how_it_waited(timed: Broker, loop: FakeLoop) -> None:
    timed.clock.advance(123)
    await send(timed, TIMER_DELAY_SEC="2", UNIQ_KEY="U", KEYS="k", TAGS="ta", WAIT="true")
    loop.run_for(5000)
    (message,) = records(timed, "T", 1)
    assert bytes(message.properties).decode() == (
        "TIMER_DELAY_SEC\x012\x02TIMER_OUT_MS\x011700000002000\x02MSG_REGION\x01DefaultRegion\x02UNIQ_KEY\x01U\x02"
        "CLUSTER\x01DefaultCluster\x02TIMER_ENQUEUE_MS\x011700000000000\x02TAGS\x01ta\x02KEYS\x01k\x02WAIT\x01true\x02"
        "TRACE_ON\x01true\x02TIMER_DEQUEUE_MS\x011700000003000\x02REAL_TOPIC\x01T\x02REAL_QID\x011\x02"
    )
    assert (message.flag, message.born_timestamp) == (3, NOW_MS + 123)


async def test_recalled_message_is_never_delivered(timed: Broker, loop: FakeLoop) -> None:
    timed.config.recall_message_enable = True
    kept, recalled = [
        await send(timed, body, TIMER_DELAY_SEC="4", UNIQ_KEY=body.decode())
        for body in (b"kept", b"recalled")
    ]
    handle = recalled.fields["recallHandle"]
    answer = await ask(timed, RecallMessage(producer_group="pg", topic="T", recall_handle=handle))
    assert (answer.code, answer.remark) == (0, "not set any response code")
    assert answer.fields == {"msgId": "recalled", "MSG_REGION": "DefaultRegion"}
    (*_, stored) = records(timed, TIMER_TOPIC)
    assert bytes(stored.properties).decode() == (
        "TIMER_DEL_UNIQKEY\x01recalled\x02REAL_TOPIC\x01T\x02BORN_TIMESTAMP\x011700000000000\x02TRACE_CONTEXT\x01\x02"
        "TIMER_DELIVER_MS\x011700000003001\x02UNIQ_KEY\x01recalled\x02PGROUP\x01pg\x02TAGS\x01_RECALL_TAG_\x02"
        "TIMER_OUT_MS\x011700000003000\x02REAL_QID\x010\x02"
    )
    loop.run_for(10_000)
    assert bodies(timed) == [b"kept"]
    assert kept.code == 0
    assert timed.delayed.timer.metrics.count("T") == 0


@pytest.mark.parametrize(
    ("handle", "topic", "code", "remark"),
    [
        ("v1 nope broker-a 1700000009001 U", "nope", 17, "recall failed, the topic[nope] not exist"),
        ("v1 T broker-a zz U", "T", 604, "recall failed, timestamp invalid"),
        ("v1 T broker-a 1800000000000 U", "T", 604, "recall failed, timestamp invalid"),
    ],
)
async def test_recall_that_cannot_be_is_refused(
    timed: Broker, handle: str, topic: str, code: int, remark: str
) -> None:
    timed.config.recall_message_enable = True
    await send(timed)  # makes the topic
    encoded = base64.urlsafe_b64encode(handle.encode()).decode()
    answer = await ask(timed, RecallMessage(producer_group="pg", topic=topic, recall_handle=encoded))
    assert (answer.code, answer.remark) == (code, remark)
    unreadable = await ask(timed, RecallMessage(producer_group="pg", topic="T", recall_handle="\u00e9*"))
    assert unreadable.code == 604


async def test_recall_is_answered_once_it_is_on_disk(syncing: Broker) -> None:
    """SYNC_FLUSH: else a power loss could deliver a message whose recall was confirmed."""
    with_timer(syncing).config.recall_message_enable = True
    request = send_request("T", queue_id=1, properties="TIMER_DELAY_SEC\x014\x02UNIQ_KEY\x01U\x02")
    handle = (await after_the_flush(syncing, request, b"x")).fields["recallHandle"]
    recall = RecallMessage(producer_group="pg", topic="T", recall_handle=handle)
    recalled = await after_the_flush(syncing, recall)
    assert recalled.fields == {"msgId": "U", "MSG_REGION": "DefaultRegion"}


async def test_far_messages_are_stored_again_on_the_way(broker_maker: MakeBroker, loop: FakeLoop) -> None:
    """Beyond the window: after half of it for a little more, after the whole of it for much more."""
    timed = with_timer(broker_maker(store={"timer_roll_window_slot": 120}))
    await send(timed, b"far", TIMER_DELAY_SEC="130")
    await send(timed, b"farther", TIMER_DELAY_SEC="200")
    loop.run_for(61_000)
    again = records(timed, TIMER_TOPIC)[2:]
    assert [bytes(record.body) for record in again] == [b"far"]
    assert text(again[0])["TIMER_ROLL_TIMES"] == "1"
    assert text(again[0])["TIMER_OUT_MS"] == str(NOW_MS + 129_000)
    loop.run_for(60_000)
    assert [bytes(record.body) for record in records(timed, TIMER_TOPIC)[3:]] == [b"farther"]
    loop.run_for(8000)
    assert timed.store.queues_of("T") == []
    loop.run_for(1000)
    assert bodies(timed) == [b"far"]
    loop.run_for(70_000)
    assert bodies(timed) == [b"far", b"farther"]


async def test_many_of_one_moment_come_in_turns_and_in_order(timed: Broker, loop: FakeLoop) -> None:
    wanted = [str(number).encode() for number in range(1100)]
    for body in wanted:
        await send(timed, body, TIMER_DELAY_SEC="3")
    fired = loop.fired
    loop.run_for(3000)
    assert bodies(timed) == wanted
    assert loop.fired - fired > 5


async def test_too_many_for_one_moment_are_refused(timed: Broker) -> None:
    timed.config.store.timer_congest_num_each_slot = 2
    codes = [(await send(timed, TIMER_DELAY_SEC="3")).code for _ in range(100)]
    assert codes[:3] == [0, 0, 0]
    assert codes[-1] == 1
    remark = (await send(timed, TIMER_DELAY_SEC="3")).remark
    assert remark == (
        "timer message is under flow control, max num limit is 4 or the current value is greater than 2 and less "
        "than 4, trigger random flow control"
    )
    assert (await send(timed, TIMER_DELAY_SEC="9")).code == 0


async def test_chance_decides_about_each_message_of_a_pass_for_a_full_slot(
    timed: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed.config.store.timer_congest_num_each_slot = 16
    chances = itertools.cycle((0, 999))
    monkeypatch.setattr(timed.state.random, "randrange", lambda _: next(chances))
    wire, codes = Wire(timed), []
    for count in (20, 8):
        frames = [a_send(opaque=number, pairs={"TIMER_DELAY_SEC": "3"}) for number in range(count)]
        codes.append([answer.code for answer in FrameCutter().feed(await wire.exchange(*frames))])
    wire.end()
    assert codes == [[0] * 20, [0, 1] * 4]


async def test_message_is_tried_until_the_store_takes_it(
    timed: Broker, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(timed, b"one", TIMER_DELAY_SEC="2")
    await send(timed, b"two", TIMER_DELAY_SEC="2")
    with monkeypatch.context() as patch:
        refused = AppendResult(PutStatus.SERVICE_NOT_AVAILABLE)
        patch.setattr(timed.store, "append", lambda message: refused)
        loop.run_for(10_000)
    loop.run_for(600)
    assert bodies(timed) == [b"one", b"two"]


async def test_enqueue_and_dequeue_can_be_stopped(timed: Broker, loop: FakeLoop) -> None:
    config = timed.config.store
    config.timer_stop_enqueue = True
    await send(timed, b"a", TIMER_DELAY_SEC="2")
    loop.run_for(10_000)
    assert timed.delayed.timer.messages_behind == 1
    config.timer_stop_enqueue = False
    config.timer_stop_dequeue = True
    await send(timed, b"b", TIMER_DELAY_SEC="2")
    loop.run_for(10_000)
    assert bodies(timed) == [b"a"], "its time was over when it could be enqueued"
    config.timer_stop_dequeue = False
    loop.run_for(2000)
    assert bodies(timed) == [b"a", b"b"]
    assert text(records(timed, "T", 1)[0])["TIMER_ENQUEUE_MS"] == "9223372036854775807"


async def test_committed_message_may_wait_for_its_time(timed: Broker) -> None:
    half = await send_half(timed)
    position = int(half.fields["msgId"][16:], 16)
    data = timed.store.read_record(position)
    assert data is not None
    at = bytes(data).index(b"KEYS\x01k1")
    assert len(b"KEYS\x01k1") == 7
    data[at : at + 7] = b"DELAY\x011"
    assert (await ask(timed, ending(half, COMMIT))).code == 0
    assert timed.store.max_offset("SCHEDULE_TOPIC_XXXX", 0) == 1
    assert timed.store.queues_of("T") == []


async def test_slave_and_tools_get_the_state_of_the_timer(timed: Broker) -> None:
    await send(timed, TIMER_DELAY_SEC="100")
    body = (await ask(timed, GetTimerCheckPoint())).body
    assert len(body) == 56
    assert int.from_bytes(body[16:24], "big") == 1
    table = (await ask(timed, GetTimerMetrics())).json
    assert table["timingCount"]["T"]["count"] == 1
    assert (
        timed.delayed.timer.waiting,
        timed.delayed.timer.messages_behind,
        timed.delayed.timer.behind_ms,
    ) == (1, 0, 0)


async def test_a_timer_that_waits_for_a_restart_is_not_opened_by_a_request(
    timed: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: object) -> None:
        raise StoreDamagedError("made up")

    with monkeypatch.context() as patch:
        patch.setattr(type(timed.delayed.timer), "_open", fails)
        await send(timed, TIMER_DELAY_SEC="100")
    answer = await ask(timed, GetTimerCheckPoint())
    assert answer.remark == "the timer does not run: timed messages wait for a restart"


async def test_nothing_is_opened_where_nothing_is_timed(broker_maker: MakeBroker, loop: FakeLoop) -> None:
    broker = with_timer(broker_maker())
    await send(broker)
    assert not (broker.config.store.root / "timerwheel").exists()
    assert loop.waiting == 0


async def test_unit_that_fails_is_skipped_and_earlier_ones_come_once(
    broker_maker: MakeBroker, loop: FakeLoop
) -> None:
    """Clients may send any TIMER_ROLL_TIMES; int() refuses texts of more than 4,300 digits."""
    timed = with_timer(broker_maker(store={"timer_roll_window_slot": 120}))
    await send(timed, b"early", TIMER_DELAY_SEC="130")
    await send(timed, b"bad", TIMER_DELAY_SEC="130", TIMER_ROLL_TIMES="9" * 5000)
    await send(timed, b"late", TIMER_DELAY_SEC="130")
    loop.run_for(140_000)
    assert bodies(timed) == [b"early", b"bad", b"late"]
    rolled = records(timed, TIMER_TOPIC)[3:]
    assert [text(record)["TIMER_ROLL_TIMES"] for record in rolled] == ["1", "1", "1"]


async def test_message_that_cannot_be_delivered_is_skipped_and_logged(
    timed: Broker, loop: FakeLoop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await send(timed, str(number).encode(), TIMER_DELAY_SEC="2")
    append = timed.store.append

    def failing(message: NewMessage) -> AppendResult:
        if bytes(message.body) == b"1":
            raise ValueError("made up")
        return append(message)

    monkeypatch.setattr(timed.store, "append", failing)
    loop.run_for(10_000)
    assert bodies(timed) == [b"0", b"2"]
    assert ["skipped" in record.message for record in caplog.records] == [True]
