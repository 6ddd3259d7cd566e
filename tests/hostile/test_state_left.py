"""Requests that are repeated leave nothing behind: memory, descriptors and threads stay as they were.

Names repeat too, so what may be kept by name (topics, groups, positions) is kept once. The server has no HTTP port,
so it keeps no log of requests.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostile import grpc_rows
from hostile.generated_rows import SERVED, Row, rows
from hostile.judge import ANSWER_SECONDS, MIB, Judge

FIRST_ROUNDS, ROUNDS = 2, 2
KEPT_BYTES = 2 * MIB
"""What the allocator's choice of places makes of equal requests; 12,000 requests that left 200 bytes each are more."""


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    with Judge(tmp_path, has_http=False) as judge:
        yield judge


def assert_nothing_is_left(judge: Judge, attacks: list[Row]) -> None:
    for _ in range(FIRST_ROUNDS):
        for _, attack in attacks:
            judge.run(attack)
    memory, descriptors, threads = judge.kept()
    for _ in range(ROUNDS):
        for _, attack in attacks:
            judge.run(attack)
    memory_after, descriptors_after, threads_after = judge.kept()
    assert memory_after < memory + KEPT_BYTES
    assert descriptors_after <= descriptors + 2  # some come and go by time
    assert threads_after <= threads


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_repeated_requests_leave_nothing(judge: Judge) -> None:
    """Every row of every code, small."""
    attacks = [row for port, code in SERVED for row in rows(port, code, field_bytes=512, body_bytes=2048)]
    assert_nothing_is_left(judge, attacks)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_repeated_calls_leave_nothing(judge: Judge) -> None:
    """Every row of every rpc, small."""
    rpcs = grpc_rows.messages_of(judge.ports["grpc"], ANSWER_SECONDS)
    attacks = [row for rpc in grpc_rows.RPCS for row in grpc_rows.rows(rpc, rpcs[rpc], 512)]
    assert_nothing_is_left(judge, attacks)
