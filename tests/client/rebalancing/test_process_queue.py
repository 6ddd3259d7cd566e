"""The process queue: official scripts of operations, and the property that makes consumption at-least-once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.values.message import MessageExt
from pocketmq.protocol.bodies.client_state import ProcessQueueInfo

from client_vectors import FakeClock, pulled_message, scripts


def messages_of(text: str) -> list[MessageExt]:
    pairs = [part.split(":") for part in text.split(",") if part]
    return [pulled_message(int(offset), b"x" * int(size)) for offset, size in pairs]


def state(queue: ProcessQueue) -> str:
    cached = ",".join(map(str, sorted(queue._cached)))
    taken = ",".join(map(str, sorted(queue._taken)))
    return f"{queue.count} {queue.cached_bytes} {queue.max_span()} [{cached}] [{taken}]"


def perform(queue: ProcessQueue, operation: str) -> str:
    name, _, argument = operation.partition(" ")
    match name:
        case "put":
            return str(queue.put(messages_of(argument))).lower()
        case "remove":
            return str(queue.remove(messages_of(argument)))
        case "take":
            return ",".join(str(message.queue_offset) for message in queue.take(int(argument)))
        case "commit":
            return str(queue.commit())
        case "rollback":
            queue.rollback()
        case "again":
            queue.consume_again(messages_of(argument))
    return ""


@pytest.mark.parametrize("script", scripts())
def test_operations_have_the_results_of_the_official_class(script: list[tuple[str, str]]):
    queue = ProcessQueue(FakeClock())
    for operation, recorded in script:
        result = perform(queue, operation)
        assert f"{result}|{state(queue)}" == recorded, operation


def test_the_first_message_is_found_at_once_after_many_were_removed():
    queue = ProcessQueue(FakeClock())
    messages = [pulled_message(offset) for offset in range(50_000)]
    queue.put(messages)
    for message in messages[:-1]:
        assert queue.remove([message]) == message.queue_offset + 1
    assert queue.remove(messages[-1:]) == 50_000
    assert queue.remove(messages[-1:]) == -1


@given(st.lists(st.lists(st.integers(0, 12), max_size=6), max_size=6))
def test_pulls_in_any_order_leave_each_offset_once(pulls: list[list[int]]):
    """As if every message had been put on its own."""
    together, singly = ProcessQueue(FakeClock()), ProcessQueue(FakeClock())
    for offsets in pulls:
        messages = [pulled_message(offset, b"x" * (offset + number)) for number, offset in enumerate(offsets)]
        together.put(messages)
        for message in messages:
            singly.put([message])
        assert state(together) == state(singly)
        assert together.first_offset() == singly.first_offset()
    everything = singly.take(99)
    assert [id(message) for message in together.take(99)] == [id(message) for message in everything]
    assert together.cached_bytes == sum(len(message.body) for message in everything)


def test_commit_with_nothing_taken_stores_nothing():
    assert ProcessQueue(FakeClock()).commit() == -1


def test_only_a_first_message_whose_listener_started_long_ago_expires():
    clock = FakeClock()
    queue = ProcessQueue(clock)
    first, second = pulled_message(1), pulled_message(2)
    assert queue.first_expired(15) is None
    queue.put([first, second])
    second.consume_start_ms = clock.now_ms
    clock.now_ms += 15 * 60_000 + 1
    assert queue.first_expired(15) is None  # waits for a listener
    first.consume_start_ms = clock.now_ms - 15 * 60_000
    assert queue.first_expired(15) is None  # exactly the timeout
    clock.now_ms += 1
    assert queue.first_expired(15) is first
    queue.remove_expired(second)
    assert queue.count == 2
    queue.remove_expired(first)
    assert queue.first_expired(15) is second


def test_limits_of_time_are_exceeded_not_reached():
    clock = FakeClock()
    queue = ProcessQueue(clock)
    clock.now_ms += 20_000
    queue.dropped = True
    assert not queue.may_be_forced
    clock.now_ms += 1
    assert queue.may_be_forced
    queue.dropped = False
    assert not queue.may_be_forced
    clock.now_ms += 9_999
    assert not queue.is_lock_expired
    clock.now_ms += 1
    assert queue.is_lock_expired
    queue.note_locked(False)
    assert queue.is_lock_expired
    queue.note_locked(True)
    assert queue.locked
    assert not queue.is_lock_expired
    clock.now_ms += 90_000 - 1
    assert not queue.is_pull_expired
    clock.now_ms += 1
    assert queue.is_pull_expired
    queue.note_pull()
    assert not queue.is_pull_expired


def test_running_info_has_the_official_fields():
    clock = FakeClock(5)
    queue = ProcessQueue(clock)
    assert queue.info() == ProcessQueueInfo(
        last_lock_timestamp=5, last_pull_timestamp=5, last_consume_timestamp=5
    )
    queue.put([pulled_message(offset, b"x" * 700_000) for offset in (3, 4, 5, 7)])
    clock.now_ms = 6
    queue.take(2)
    queue.note_locked(True)
    queue.dropped = True
    queue.try_unlock_times = 2
    assert queue.info(2) == ProcessQueueInfo(
        commit_offset=2,
        cached_msg_min_offset=5,
        cached_msg_max_offset=7,
        cached_msg_count=2,
        cached_msg_size_in_mib=2,
        transaction_msg_min_offset=3,
        transaction_msg_max_offset=4,
        transaction_msg_count=2,
        locked=True,
        try_unlock_times=2,
        last_lock_timestamp=6,
        droped=True,
        last_pull_timestamp=5,
        last_consume_timestamp=6,
    )


def test_clear_forgets_everything():
    queue = ProcessQueue(FakeClock())
    queue.put([pulled_message(1, b"x"), pulled_message(2, b"x")])
    queue.take(1)
    queue.clear()
    assert state(queue) == "0 0 0 [] []"


class Consumption(RuleBasedStateMachine):
    """Pulls in order of offset; finishes, in any order or in sequence; never stores beyond what is unfinished."""

    @initialize(ordered=st.booleans(), start=st.integers(0, 100))
    def begin(self, ordered: bool, start: int) -> None:
        self.ordered = ordered
        self.queue = ProcessQueue(FakeClock())
        self.next = start
        self.unfinished: dict[int, MessageExt] = {}
        self.in_hand: list[MessageExt] = []
        self.stored = -1

    def store(self, offset: int) -> None:
        if offset >= 0:
            assert offset <= min(self.unfinished, default=self.next)
            assert offset >= self.stored, "an offset goes back only if messages were pulled again"
            self.stored = offset

    @rule(gaps=st.lists(st.integers(1, 4), max_size=5), size=st.integers(0, 3))
    def pull(self, gaps: list[int], size: int) -> None:
        pulled = []
        for gap in gaps:
            self.next += gap
            pulled.append(pulled_message(self.next - 1, b"x" * size))
        self.queue.put(pulled)
        self.unfinished |= {message.queue_offset: message for message in pulled}

    @precondition(lambda self: not self.ordered)
    @rule(data=st.data())
    def finish_any(self, data: st.DataObject) -> None:
        offsets = data.draw(st.lists(st.sampled_from(sorted(self.unfinished) or [0]), unique=True))
        done = [self.unfinished.pop(offset) for offset in offsets if offset in self.unfinished]
        self.store(self.queue.remove(done))

    @precondition(lambda self: self.ordered)
    @rule(count=st.integers(1, 4))
    def take(self, count: int) -> None:
        taken = self.queue.take(count)
        expected = sorted(set(self.unfinished) - {message.queue_offset for message in self.in_hand})[:count]
        assert [message.queue_offset for message in taken] == expected
        self.in_hand += taken

    @precondition(lambda self: self.ordered)
    @rule()
    def commit(self) -> None:
        for message in self.in_hand:
            del self.unfinished[message.queue_offset]
        self.in_hand = []
        self.store(self.queue.commit())

    @precondition(lambda self: self.ordered)
    @rule(count=st.integers(0, 3))
    def again(self, count: int) -> None:
        back = self.in_hand[len(self.in_hand) - min(count, len(self.in_hand)) :]
        del self.in_hand[len(self.in_hand) - len(back) :]
        self.queue.consume_again(back)

    @precondition(lambda self: self.ordered)
    @rule()
    def rollback(self) -> None:
        self.queue.rollback()
        self.in_hand = []

    @invariant()
    def counts_are_those_of_the_unfinished(self) -> None:
        if hasattr(self, "queue"):
            assert self.queue.count == len(self.unfinished)
            assert self.queue.cached_bytes == sum(len(message.body) for message in self.unfinished.values())


TestConsumption = Consumption.TestCase
TestConsumption.settings = settings(max_examples=60, stateful_step_count=30)
