"""No request costs more than it is worth: turns of the loop, memory, log, and what others get meanwhile.

The rule and its bounds are in `docs/architecture.md`, "Bounds". By day each request is tried with small texts and
bodies, in `make test-all` with large ones. What needs many connections is in `test_many_connections.py`.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile import grpc_rows, http_rows
from hostile.generated_rows import SERVED, Row, header_rows, rows
from hostile.judge import ANSWER_SECONDS, Judge, Limits
from hostile.known_rows import KNOWN_ROWS

KIB = 1 << 10
LIMITS = Limits()


@pytest.fixture
def own_judge(tmp_path: Path) -> Iterator[Judge]:
    """For large rows: what those of one code store is not in the answers, or in the garbage, of another's."""
    with Judge(tmp_path) as judge:
        yield judge


@pytest.fixture(scope="module")
def http_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """With a short log of requests: a request for a page of it reads all. `test_many_connections.py` has long ones."""
    with Judge(tmp_path_factory.mktemp("http")) as judge:
        yield judge


@pytest.fixture(scope="module")
def rpcs(judge: Judge) -> dict[str, Any]:
    """The request of each rpc."""
    return grpc_rows.messages_of(judge.ports["grpc"], ANSWER_SECONDS)


def assert_bounded(judge: Judge, attacks: Iterable[Row]) -> None:
    """Each of them keeps all limits."""
    broken = []
    for what, attack in attacks:
        if found := judge.over(LIMITS, attack):
            broken.append(f"{what} ({len(attack.data)} bytes): {'; '.join(found)}")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(("port", "code"), SERVED)
def test_no_request_costs_more_than_it_is_worth(judge: Judge, port: str, code: int) -> None:
    assert_bounded(judge, rows(port, code, field_bytes=4 * KIB, body_bytes=16 * KIB))


def test_no_header_costs_more_than_it_is_worth(judge: Judge) -> None:
    assert_bounded(judge, header_rows(16 * KIB))


@pytest.mark.parametrize(("path", "method"), http_rows.SERVED)
def test_no_http_request_costs_more_than_it_is_worth(http_judge: Judge, path: str, method: str) -> None:
    assert_bounded(http_judge, http_rows.rows(path, method, body_bytes=16 * KIB))


def test_every_rpc_that_is_served_is_tried(rpcs: dict[str, Any]) -> None:
    assert sorted(rpcs) == sorted(grpc_rows.RPCS)


@pytest.mark.parametrize("rpc", grpc_rows.RPCS)
def test_no_call_costs_more_than_it_is_worth(judge: Judge, rpcs: dict[str, Any], rpc: str) -> None:
    """A kind of message that several rpcs have inside is varied in the first of them; large ones in all."""
    known = grpc_rows.kinds_inside(rpcs[one] for one in grpc_rows.RPCS[: grpc_rows.RPCS.index(rpc)])
    assert_bounded(judge, grpc_rows.rows(rpc, rpcs[rpc], 8 * KIB, ("a||",), known))


def test_no_call_about_the_port_costs_more_than_it_is_worth(judge: Judge) -> None:
    assert_bounded(judge, grpc_rows.inspection_rows(8 * KIB))


@pytest.mark.parametrize("row", [*KNOWN_ROWS, *grpc_rows.known_rows()], ids=lambda row: row.what)
def test_a_request_that_once_stopped_the_server_is_cheap(judge: Judge, row: Row) -> None:
    assert_bounded(judge, [row])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("port", "code"), SERVED)
def test_no_large_request_costs_more_than_it_is_worth(own_judge: Judge, port: str, code: int) -> None:
    assert_bounded(own_judge, rows(port, code, field_bytes=KIB * KIB, body_bytes=KIB * KIB))
    if "POCKETMQ_NIGHTLY" in os.environ:
        assert_bounded(own_judge, rows(port, code, field_bytes=8 * KIB * KIB, body_bytes=15 * KIB * KIB))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("path", "method"), http_rows.SERVED)
def test_no_large_http_request_costs_more_than_it_is_worth(http_judge: Judge, path: str, method: str) -> None:
    assert_bounded(http_judge, http_rows.rows(path, method, body_bytes=KIB * KIB))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rpc", grpc_rows.RPCS)
def test_no_large_call_costs_more_than_it_is_worth(own_judge: Judge, rpcs: dict[str, Any], rpc: str) -> None:
    largest = {"SendMessage": 4 * KIB * KIB, "Telemetry": 4 * KIB * KIB - KIB}
    assert_bounded(own_judge, grpc_rows.rows(rpc, rpcs[rpc], size=largest.get(rpc, KIB * KIB - KIB)))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_large_call_about_the_port_costs_more_than_it_is_worth(judge: Judge) -> None:
    assert_bounded(judge, grpc_rows.inspection_rows(KIB * KIB - KIB))
