"""Isolation of slow and failing brokers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client.producing.queue_choice import LatencyFaultTolerance
from pocketmq.client.settings.producer_settings import ProducerSettings

from client_vectors import FakeClock, vectors


@pytest.mark.parametrize(("latency_ms", "isolated_ms"), vectors("isolation"))
def test_latency_isolates_as_long_as_in_java(latency_ms: str, isolated_ms: str):
    assert LatencyFaultTolerance(FakeClock(), ProducerSettings()).not_available_ms(int(latency_ms)) == int(
        isolated_ms
    )


@pytest.mark.parametrize(("latency_ms", "isolated_ms"), vectors("isolation", "4.9.8"))
def test_the_table_of_4_9_can_be_set(latency_ms: str, isolated_ms: str):
    settings = ProducerSettings(
        latency_max=(50, 100, 550, 1000, 2000, 3000, 15000),
        not_available_duration=(0, 0, 30000, 60000, 120000, 180000, 600000),
    )
    faults = LatencyFaultTolerance(FakeClock(), settings)
    assert faults.not_available_ms(int(latency_ms)) == int(isolated_ms)


def test_a_broker_without_failures_is_available():
    faults = LatencyFaultTolerance(FakeClock(), ProducerSettings())
    assert faults.is_available("b")
    assert faults.is_reachable("b")


def test_a_failure_isolates_for_ten_seconds():
    clock = FakeClock()
    faults = LatencyFaultTolerance(clock, ProducerSettings())
    faults.update("b", 1, isolate=True, reachable=False)
    clock.now_ms += 9_999
    assert not faults.is_available("b")
    clock.now_ms += 1
    assert faults.is_available("b")
    assert not faults.is_reachable("b")
    faults.update("b", 1, isolate=False, reachable=True)
    assert faults.is_reachable("b")


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 5_000)), min_size=1))
def test_an_isolation_is_never_shortened(sends: list[tuple[int, int]]):
    clock = FakeClock()
    faults = LatencyFaultTolerance(clock, ProducerSettings())
    until = 0
    for latency_ms, pause_ms in sends:
        clock.now_ms += pause_ms
        faults.update("b", latency_ms, isolate=False, reachable=True)
        isolated_ms = faults.not_available_ms(latency_ms)
        if isolated_ms:
            until = max(until, clock.now_ms + isolated_ms)
        assert faults.is_available("b") == (clock.now_ms >= until)


def test_brokers_are_probed_once_an_interval_until_they_answer():
    clock = FakeClock()
    faults = LatencyFaultTolerance(clock, ProducerSettings())
    faults.update("a", 1, isolate=True, reachable=False)
    faults.update("b", 1, isolate=True, reachable=False)
    assert faults.due_for_detection() == ["a", "b"]
    assert faults.due_for_detection() == []
    faults.note_detected("a")
    faults.remove("b")
    faults.note_detected("b")
    assert faults.is_reachable("a")
    clock.now_ms += 2_000
    assert faults.due_for_detection() == ["a"]
