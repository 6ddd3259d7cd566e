"""Search by time: the tables of both official lines, with one and with several queue files."""

import pytest

from store_batches import put

TIMES = [1000, 1000, 2000, 3000, 3000, 3000, 7000]
START_MS = 1_700_000_000_000


@pytest.fixture
def make(open_store, clock):
    """A store whose messages were stored at TIMES after the start; queue files hold ten units."""

    def make_store(times=TIMES, **settings):
        store = open_store(**settings)
        for time_ms in times:
            clock.set_now_ms(START_MS + time_ms)
            put(store)
        return store

    return make_store


@pytest.mark.parametrize(
    ("time_ms", "lower", "upper", "four"),
    [
        (500, 0, 0, {0}),
        (1000, 0, 1, {0, 1}),
        (1400, 2, 1, {1}),
        (1500, 2, 1, {1}),
        (1600, 2, 1, {2}),
        (2000, 2, 2, {2}),
        (3000, 3, 5, {3, 4, 5}),
        (4999, 6, 5, {5}),
        (5001, 6, 5, {6}),
        (7000, 6, 6, {6}),
        (7001, 7, 6, {6}),
    ],
)
def test_offset_for_a_time_by_each_rule(make, time_ms, lower, upper, four):
    store = make()
    asked = START_MS + time_ms
    assert store.search_offset("orders", 0, asked) == lower
    assert store.search_offset("orders", 0, asked, "LOWER") == lower
    assert store.search_offset("orders", 0, asked, "UPPER") == upper
    store.config.emulate = 4
    assert store.search_offset("orders", 0, asked) in four


def test_unknown_and_empty_queues_answer_zero(open_store):
    store = open_store()
    for emulate in (4, 5):
        store.config.emulate = emulate
        assert store.search_offset("nobody", 0, START_MS) == 0


@pytest.mark.parametrize("number", range(0, 35, 3))
def test_the_right_queue_file_is_found(make, number):
    store = make([1000 * n for n in range(35)])
    exact, between = START_MS + 1000 * number, START_MS + 1000 * number + 400
    assert store.search_offset("orders", 0, exact) == number
    assert store.search_offset("orders", 0, exact, "UPPER") == number
    assert store.search_offset("orders", 0, between, "LOWER") == number + 1
    assert store.search_offset("orders", 0, between, "UPPER") == number
    store.config.emulate = 4
    assert store.search_offset("orders", 0, exact) == number


def test_answers_stay_within_the_messages_kept(make):
    store = make([1000 * n for n in range(60)])
    assert store.delete_oldest_log_file()
    minimum = store.min_offset("orders", 0)
    assert minimum > 0
    assert store.search_offset("orders", 0, START_MS) == minimum
    assert store.search_offset("orders", 0, START_MS, "UPPER") == minimum
    assert store.search_offset("orders", 0, START_MS + 10**9) == 60
    store.config.emulate = 4
    assert store.search_offset("orders", 0, START_MS) == minimum


def test_time_in_the_future_after_all_messages_are_deleted(make, clock):
    """5.x answers the max offset, so nothing old is read; 4.x finds no time at all and answers 0."""
    store = make([1000 * n for n in range(5)])
    while len(store.log.files) < 3:
        put(store, topic="other", body=bytes(1500))
    while store.delete_oldest_log_file():
        pass
    assert store.search_offset("orders", 0, START_MS + 10**9) == 5
    store.config.emulate = 4
    assert store.search_offset("orders", 0, START_MS + 10**9) == 0


def test_store_times_of_a_queue(make):
    store = make()
    assert store.earliest_store_time("orders", 0) == START_MS + 1000
    assert store.store_time("orders", 0, 6) == START_MS + 7000
    assert store.store_time("orders", 0, 7) == -1
    assert store.earliest_store_time("nobody", 0) == -1
    assert store.earliest_log_time() == START_MS + 1000
