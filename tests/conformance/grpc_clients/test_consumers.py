"""The official Java consumers, unmodified, at our endpoint: push, simple, in order, filtered, retried to the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.grpc.java_clients import LIBRARIES, lines, start
from conformance.grpc_clients.consumer_side import ENDPOINT, make_endpoint, make_group, make_topic
from conformance.on_demand import ON_DEMAND
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import Server

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(params=["ours", pytest.param("official-proxy", marks=ON_DEMAND)])
def server(request: pytest.FixtureRequest, peers: None, tmp_path: Path) -> Iterator[Server]:
    with make_endpoint(request.param, tmp_path / "s") as made:
        with RawClient(made) as client:
            for name in ("NormalT", "GrpcTopic"):
                make_topic(client, name, "NORMAL")
            make_topic(client, "FifoT", "FIFO", queues=2)
            for group in ("grpc_simple", "grpc_push", "normal", "by_tag", "by_sql"):
                make_group(client, group)
            make_group(client, "fifo", consumeMessageOrderly=True)
        yield made


@pytest.mark.parametrize("version", LIBRARIES)
def test_messages_are_received_acknowledged_and_pushed(server: Server, version: str) -> None:
    said = dict(
        line.split(" ", 1) for line in lines(server, version, "GrpcTalk", "GrpcTopic") if " [" in line
    )
    once = {f"m{number}/1" for number in range(10)}
    assert said["ACKNOWLEDGED"] == _set({*once, "m3/2"} - {"m3/1"})
    assert said["PUSHED"] == _set({*once, "m5/2"})


def test_tags_and_sql_choose_messages(server: Server) -> None:
    said = lines(server, "5.2.0", "GrpcConsumers", ENDPOINT, "filters", "NormalT")
    assert "TAG [m1, m2, m4, m5, m7, m8]" in said
    assert "SQL [m6, m7, m8, m9]" in said


def test_message_groups_are_consumed_in_their_order(server: Server) -> None:
    said = lines(server, "5.2.0", "GrpcConsumers", ENDPOINT, "order", "FifoT", "fifo")
    even = [f"m{number}/1" for number in range(0, 20, 2)]
    odd = [f"m{number}/{attempt}" for number in range(1, 20, 2) for attempt in (1, 2)[: 1 + (number == 3)]]
    assert f"ORDER group0 [{', '.join(even)}]" in said
    assert f"ORDER group1 [{', '.join(odd)}]" in said


@pytest.mark.parametrize(("topic", "group"), [("NormalT", "normal"), ("FifoT", "fifo")])
def test_a_message_that_always_fails_becomes_a_dead_letter(server: Server, topic: str, group: str) -> None:
    with start(server, "5.2.0", "GrpcConsumers", ENDPOINT, "retries", topic, group) as running:
        running.wait_for("TRIED 3", timeout=120)
        with RawClient(server) as client:
            wait_until(lambda: client.max_offset(f"%DLQ%{group}", 0) == 1, "no dead letter", 60)
        said = [line for line in running.output.splitlines() if line.startswith("TRIED")]
    assert said == ["TRIED 1", "TRIED 2", "TRIED 3"]


def _set(texts: set[str]) -> str:
    return f"[{', '.join(sorted(texts))}]"
