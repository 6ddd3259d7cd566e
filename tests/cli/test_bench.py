"""`pocketmq bench`: its modes and the correctness of its figures."""

import json
import random
from collections.abc import Callable

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.cli.bench.latencies import Latencies


def bench(run: Callable[..., Result], *words: str) -> dict[str, object]:
    result = run("bench", "--json", *words)
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_a_consumer_reads_what_producers_send(run: Callable[..., Result]) -> None:
    sent = [
        bench(run, "producer", "-t", "B", "-d", "0.2", "--warm-up", "0", *words)["messages"]
        for words in (("-w", "3"), ("-w", "2", "-i", "20"), ("-w", "2", "-b", "5"))
    ]
    assert all(sent)
    read = bench(run, "consumer", "-t", "B", "-d", "30")
    assert read["messages"] == sum(sent) + len(sent)  # type: ignore[arg-type]  # each run made sure of the topic


@pytest.mark.slow
def test_end_to_end_counts_each_message_once_and_keeps_the_rate(run: Callable[..., Result]) -> None:
    words = ("-t", "E", "-d", "0.5", "-r", "100", "-w", "4", "--warm-up", "0.2")
    found = bench(run, "end-to-end", *words)
    assert found["failed"] == 0
    assert 5 <= found["messages"] <= 55  # type: ignore[operator]
    assert found["latencies_ms"]["end_to_end"]["p50"] > 0  # type: ignore[index]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200), st.sampled_from((1, 50, 90, 99, 99.9, 100)))
def test_percentiles_are_exact_to_one_per_cent(seconds: list[float], percent: float) -> None:
    latencies = Latencies()
    for one in seconds:
        latencies.add(one)
    ordered = sorted(seconds)
    index = next(i for i in range(len(ordered)) if (i + 1) >= len(ordered) * percent / 100)
    exact_ms = ordered[index] * 1000
    assert latencies.percentile_ms(percent) == pytest.approx(exact_ms, rel=0.01, abs=0.0011)


def test_a_million_latencies_use_little_memory() -> None:
    latencies = Latencies()
    source = random.Random(1)
    for _ in range(100_000):
        latencies.add(source.expovariate(100), 10)
    assert latencies.count == 1_000_000
    assert len(latencies._buckets) < 3000
