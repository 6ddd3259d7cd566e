"""One group with a remoting and a gRPC push consumer, both official Java: they share, and take over from each other.

The topic is popped (401), and the remoting consumer leaves the choice of queues to the broker. What either kind of
client sends, the other reads with the same properties.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import decode_records

from conformance import JAVA
from conformance.grpc.java_clients import lines, start
from conformance.grpc_clients.consumer_side import ENDPOINT, make_endpoint
from conformance.official.programs import compile_java
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from conformance.waiting.pop_client import SET_MODE

TOPIC, GROUP = "Mixed", "mixed"
QUEUES = 4

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def server(peers: None, tmp_path: Path) -> Iterator[Server]:
    with make_endpoint("ours", tmp_path / "s") as server:
        with RawClient(server) as client:
            client.update_topic(TOPIC, QUEUES)
            client.update_group(GROUP)
            mode = {"topic": TOPIC, "consumerGroup": GROUP, "mode": "POP", "popShareQueueNum": 0}
            assert client.call(SET_MODE, json.dumps(mode).encode()).code == 0
        yield server


def fill(server: Server, numbers: range) -> None:
    with RawClient(server) as client:
        for number in numbers:
            names = {"TAGS": "B", "KEYS": f"k{number} both", "a": str(number)}
            client.send(TOPIC, number % QUEUES, f"m{number}".encode(), names)


def by_remoting(member: Running) -> list[str]:
    return [line.split(" ")[2] for line in member.output.splitlines() if line.startswith("SEEN")]


def by_grpc(member: Running) -> list[str]:
    return [line.split(" ")[1] for line in member.output.splitlines() if line.startswith("GOT")]


def test_a_remoting_and_a_grpc_consumer_share_and_hand_over(server: Server) -> None:
    remoting = server.programs.start_java(
        compile_java("5.5", (JAVA / "PopMember.java").read_text()), TOPIC, GROUP, "*"
    )
    remoting.wait_for("JOINED", timeout=60)
    with start(server, "5.2.0", "GrpcConsumers", ENDPOINT, "member", TOPIC, GROUP) as grpc:
        grpc.wait_for("READY", timeout=60)
        fill(server, range(10))
        remoting.wait_for("SEEN|READY", timeout=60)
        for first in range(10, 1000, 10):
            fill(server, range(first, first + 10))
            if by_remoting(remoting) and by_grpc(grpc):
                break
            time.sleep(0.3)  # the gRPC client asks for messages a second after its start
        end = first + 10
        _wait_for_all(remoting, grpc, end)
        assert by_remoting(remoting)
        assert by_grpc(grpc)
        remoting.say("")
        remoting.wait_for("LEFT", timeout=60)
        fill(server, range(end, end + 20))
        grpc.wait_for(r"GOT m\d+ ", timeout=60, count=len(by_grpc(grpc)) + 1)
        _wait_for_all(remoting, grpc, end + 20)
        keys = {line.split(" ")[1]: line.split(" ")[2:] for line in grpc.output.splitlines() if "GOT" in line}
        assert keys[f"m{end}"] == ["1", "B", f"both,k{end}", str(end)]
    again = server.programs.start_java(
        compile_java("5.5", (JAVA / "PopMember.java").read_text()), TOPIC, GROUP, "*"
    )
    again.wait_for("JOINED", timeout=60)
    fill(server, range(end + 20, end + 40))
    again.wait_for(r"SEEN \S+ m\d+ 0", timeout=60, count=20)
    assert sorted(by_remoting(again)) == sorted(f"m{number}" for number in range(end + 20, end + 40))


def test_a_remoting_client_reads_what_a_grpc_client_sends(server: Server) -> None:
    lines(server, "5.2.0", "GrpcConsumers", ENDPOINT, "send", TOPIC, "3")
    found = {}
    with RawClient(server) as client:
        for queue_id in range(QUEUES):
            for record in decode_records(client.pull(GROUP, TOPIC, queue_id, 0).body):
                found[bytes(record.body).decode()] = decode_properties(record.properties)
    assert sorted(found) == ["g0", "g1", "g2"]
    names = found["g1"]
    assert (names["TAGS"], names["KEYS"], names["a"]) == ("A", "kg1", "01")
    assert len(names["UNIQ_KEY"]) == 34


def _wait_for_all(remoting: Running, grpc: Running, count: int) -> None:
    """Each message once, by one or the other."""
    for _ in range(40):
        seen = by_remoting(remoting) + by_grpc(grpc)
        if len(seen) >= count:
            break
        time.sleep(0.5)
    assert sorted(seen) == sorted(f"m{number}" for number in range(count))
