"""One group with a remoting and a gRPC push consumer: they share, and take over from each other.

The topic is popped (401), and the remoting consumer leaves the choice of queues to the broker. What either kind of
client sends, the other reads with the same properties.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import decode_records

from conformance import JAVA
from conformance.grpc_clients.clients import lines, start
from conformance.grpc_clients.consumer_side import make_endpoint
from conformance.official.programs import compile_java
from conformance.on_demand import ON_DEMAND
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from conformance.waiting.pop_client import SET_MODE

PREFIX = "mixed"
TOPIC, GROUP = f"{PREFIX}_Normal", f"{PREFIX}_member"
QUEUES = 4
REMOTING_MEMBER = Path(__file__).parents[1] / "clients" / "python_member_program.py"

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


def remoting_member(server: Server, kind: str) -> Running:
    """A consumer of the 4.x protocol that has joined; a line on its standard input ends it."""
    if kind == "java":
        program = compile_java("5.5", JAVA / "PopMember.java")
        member = server.programs.start_java(program, TOPIC, GROUP, "*")
    else:
        log = server.home / "run" / f"remoting-member-{time.monotonic_ns()}.out"
        words = [str(REMOTING_MEMBER), TOPIC, GROUP, "pop", "5000", "0"]
        member = Running(server.namespace, [sys.executable, *words], log)
    member.wait_for("JOINED", timeout=60)
    return member


def fill(server: Server, numbers: range) -> None:
    with RawClient(server) as client:
        for number in numbers:
            names = {"TAGS": "B", "KEYS": f"k{number} both", "a": str(number)}
            client.send(TOPIC, number % QUEUES, f"m{number}".encode(), names)


def by_remoting(member: Running) -> list[str]:
    return [line.split(" ")[2] for line in member.output.splitlines() if line.startswith("SEEN")]


def by_grpc(member: Running) -> list[str]:
    return [line.split(" ")[1] for line in member.output.splitlines() if line.startswith("GOT")]


@pytest.mark.parametrize(
    ("remoting_kind", "grpc_kind"),
    [
        ("java", "java-5.2.0"),
        ("python", "python"),
        ("java", "node"),
        pytest.param("python", "go", marks=ON_DEMAND),
    ],
)
def test_a_remoting_and_a_grpc_consumer_share_and_hand_over(
    server: Server, remoting_kind: str, grpc_kind: str, tmp_path: Path
) -> None:
    with (
        remoting_member(server, remoting_kind) as remoting,
        start(server, grpc_kind, tmp_path, PREFIX, "member") as grpc,
    ):
        end = _fill_until_both_read(server, remoting, grpc)
        _wait_for_all(remoting, grpc, end)
        remoting.say("")
        remoting.wait_for("LEFT", timeout=60)
        before = len(by_grpc(grpc))
        fill(server, range(end, end + 20))
        grpc.wait_for(r"^GOT m\d+ ", timeout=60, count=before + 1)
        _wait_for_all(remoting, grpc, end + 20)
        keys = {line.split(" ")[1]: line.split(" ")[2:] for line in grpc.output.splitlines() if "GOT" in line}
        assert keys[f"m{end}"] == ["1", "B", f"both,k{end}", str(end)]
    with remoting_member(server, remoting_kind) as again:
        fill(server, range(end + 20, end + 40))
        again.wait_for(r"^SEEN \S+ m\d+ 0", timeout=60, count=20)
        assert sorted(by_remoting(again)) == sorted(f"m{number}" for number in range(end + 20, end + 40))


def _fill_until_both_read(server: Server, remoting: Running, grpc: Running) -> int:
    """How many messages were sent. A gRPC client asks for messages a second after its start."""
    for first in range(0, 2000, 10):
        fill(server, range(first, first + 10))
        if by_remoting(remoting) and by_grpc(grpc):
            return first + 10
        assert grpc.alive, grpc.failed("ended")
        time.sleep(0.3)
    raise grpc.failed("or the remoting consumer read nothing")


def test_a_remoting_client_reads_what_a_grpc_client_sends(server: Server, tmp_path: Path) -> None:
    lines(start(server, "java-5.2.0", tmp_path, PREFIX, "send"))
    found = {}
    with RawClient(server) as client:
        for queue_id in range(QUEUES):
            for record in decode_records(client.pull(GROUP, TOPIC, queue_id, 0).body):
                found[bytes(record.body).decode()] = decode_properties(record.properties)
    assert sorted(found) == [f"m{number}" for number in range(10)]
    names = found["m1"]
    assert (names["TAGS"], names["KEYS"], names["a"]) == ("A", "km1", "m1")
    assert len(names["UNIQ_KEY"]) == 34


def _wait_for_all(remoting: Running, grpc: Running, count: int) -> None:
    """Each message once, by one or the other."""
    for _ in range(40):
        seen = by_remoting(remoting) + by_grpc(grpc)
        if len(seen) >= count:
            break
        time.sleep(0.5)
    assert sorted(seen) == sorted(f"m{number}" for number in range(count))
