"""Master and slave, one ours and one official: the log byte for byte, the tables, and readers while the master is down.

    name server :9876 (of ours), master :10911 with HA port 10912, slave :10931 with HA port 10932, all in one namespace

A 5.5.0 slave copies topics and offsets only after its first minute.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import JAVA
from conformance.conftest import make_server
from conformance.official.programs import Programs, compile_java
from conformance.on_demand import ON_DEMAND
from conformance.servers.namespaces import Namespace
from conformance.servers.our_server import OurServer
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import BROKER_PORT, NAMESRV_ADDR, Server

SLAVE_PORT = 10931
TOPIC, QUEUES, GROUP = "replicated", 2, "readers"
SIZES = {"mappedFileSizeCommitLog": 64 << 20, "slaveReadEnable": True}
SYNC_SECONDS = {"ours": 30.0, "ours-4.9": 30.0, "official-4.9": 40.0, "official-5.5": 150.0}
PAIRS = [
    ("ours", "official-5.5"),
    ("ours-4.9", "official-4.9"),
    ("official-5.5", "ours"),
    ("official-4.9", "ours-4.9"),
    *(("ours", "ours"), ("official-4.9", "ours"), ("official-5.5", "ours-4.9")),
]
KILLED = [("ours", "official-5.5"), ("official-5.5", "ours")]
TIMELINES = [
    ("official-4.9", "ours-4.9", "4.9"),
    ("ours-4.9", "official-4.9", "4.9"),
    ("official-5.5", "ours", "5.5"),
    ("ours", "ours", "5.5"),
    ("ours", "official-5.5", "5.5"),
]

pytestmark = ON_DEMAND


class Pair:
    """A name server, and a master and a slave that can be ended and started one by one."""

    def __init__(self, home: Path, master: str, slave: str, namespace: Namespace) -> None:
        self.namespace = namespace
        ports = ("--port", "10971")
        self.name_server = OurServer(
            home / "names", namespace=namespace, broker_conf={"brokerName": "other"}, options=ports
        )
        self.master = _broker(master, home / "master", namespace, BROKER_PORT, {})
        role = {"brokerRole": "SLAVE", "brokerId": 1}
        self.slave = _broker(slave, home / "slave", namespace, SLAVE_PORT, role)

    def close(self) -> None:
        for server in (self.slave, self.master, self.name_server):
            server.kill()

    def client(self, server: Server) -> RawClient:
        return RawClient(server, port=BROKER_PORT if server is self.master else SLAVE_PORT)

    def send(self, count: int) -> None:
        with self.client(self.master) as client:
            for number in range(count):
                client.send(
                    TOPIC, number % QUEUES, b"%d" % number * (1 + number * 37 % 900), {"KEYS": f"k{number}"}
                )

    def committed(self, server: Server) -> int:
        with self.client(server) as client:
            replies = [client.query_offset(GROUP, TOPIC, queue) for queue in range(QUEUES)]
        return sum(int(reply.fields["offset"]) for reply in replies if reply.code == 0)

    def ends(self, server: Server) -> list[int]:
        with self.client(server) as client:
            return [client.max_offset(TOPIC, queue) for queue in range(QUEUES)]

    def is_copied(self) -> bool:
        return _digest(self.master.store) == _digest(self.slave.store)


def _broker(side: str, home: Path, namespace: Namespace, port: int, changes: dict[str, object]) -> Server:
    conf = {**SIZES, **changes}
    if side.startswith("ours"):
        words = ("--no-namesrv", "--namesrv", NAMESRV_ADDR, "--port", str(port))
        return make_server(side, home, namespace=namespace, broker_conf=conf, options=words)
    ports = {"listenPort": port, "haListenPort": port + 1, "brokerFastFailureEnable": False}
    return make_server(side, home, namespace=namespace, with_name_server=False, broker_conf={**conf, **ports})


def _digest(store: Path) -> dict[str, str]:
    """A digest of each log file with content; official brokers create the next file ahead."""
    contents = {file.name: file.read_bytes() for file in sorted((store / "commitlog").glob("0*"))}
    return {
        name: hashlib.blake2b(content).hexdigest() for name, content in contents.items() if any(content[:8])
    }


@pytest.fixture
def pair(request: pytest.FixtureRequest, peers: None, tmp_path: Path) -> Iterator[Pair]:
    master, slave = request.param[:2]
    with Namespace() as namespace:
        pair = Pair(tmp_path, master, slave, namespace)
        try:
            pair.name_server.start()
            pair.master.start()
            wait_until(lambda: pair.name_server.has_broker("broker-a"), "the master never registered")
            with pair.client(pair.master) as client:
                client.update_topic(TOPIC, QUEUES)
                client.update_group(GROUP)
            yield pair
        finally:
            pair.close()


@pytest.mark.parametrize("pair", PAIRS, indirect=True, ids="-to-".join)
def test_slave_of_the_other_side_has_the_same_log(pair: Pair, request: pytest.FixtureRequest) -> None:
    slave_side = request.node.callspec.params["pair"][1]
    pair.send(60)
    pair.slave.start()
    pair.send(60)
    with pair.client(pair.master) as client:
        client.commit(GROUP, TOPIC, 0, 7)
    wait_until(pair.is_copied, "the logs never became the same", 30)
    wait_until(
        lambda: pair.ends(pair.slave) == pair.ends(pair.master) == [60, 60], "queues lack messages", 30
    )
    wait_until(
        lambda: pair.committed(pair.slave) == 7, "the offsets were not copied", SYNC_SECONDS[slave_side]
    )
    with pair.client(pair.master) as at_master, pair.client(pair.slave) as at_slave:
        for queue in range(QUEUES):
            from_master, from_slave = (
                client.pull(GROUP, TOPIC, queue, 0) for client in (at_master, at_slave)
            )
            assert from_slave.code == 0, from_slave
            assert len(from_slave.body) > 0
            assert from_master.body[: len(from_slave.body)] == from_slave.body[: len(from_master.body)]


@pytest.mark.parametrize("pair", [("official-5.5", "ours")], indirect=True, ids="-to-".join)
def test_slave_has_the_pop_mode_and_the_number_of_timed_messages(pair: Pair) -> None:
    pair.send(1)
    mode = {"topic": TOPIC, "consumerGroup": GROUP, "mode": "POP", "popShareQueueNum": 3}
    with pair.client(pair.master) as client:
        client.send(TOPIC, 0, b"in a while", {"TIMER_DELAY_SEC": "3600"})
        assert client.call(401, json.dumps(mode).encode()).code == 0
        wait_until(lambda: b'"count":1' in client.call(61).body, "the master never counted the timed message")
        counted, modes = json.loads(client.call(61).body), client.call(402).json()
    pair.slave.start()
    with pair.client(pair.slave) as client:
        wait_until(lambda: client.call(402).json() == modes, "the request modes were not copied", 40)
    file = pair.slave.store / "config" / "timermetrics"
    wait_until(file.exists, "the counts were not copied", 40)
    assert json.loads(file.read_text())["timingCount"] == counted["timingCount"]


@pytest.mark.parametrize("pair", KILLED, indirect=True, ids="-to-".join)
def test_replication_resumes_after_either_side_was_killed(pair: Pair) -> None:
    pair.slave.start()
    pair.send(20)
    wait_until(pair.is_copied, "the logs never became the same", 30)
    pair.slave.kill()
    pair.send(20)
    pair.slave.start()
    wait_until(pair.is_copied, "the slave did not catch up", 40)
    pair.master.kill()
    pair.master.start()
    pair.send(20)
    wait_until(pair.is_copied, "the slave did not connect to its master again", 60)
    wait_until(lambda: pair.ends(pair.slave) == [30, 30], "queues lack messages", 30)


@pytest.mark.parametrize("pair", TIMELINES, indirect=True, ids=lambda row: f"{row[0]}-to-{row[1]}")
def test_consumers_continue_at_the_slave_and_keep_their_offsets(
    pair: Pair, request: pytest.FixtureRequest
) -> None:
    _, slave_side, version = request.node.callspec.params["pair"]
    programs = Programs(pair.namespace, pair.name_server.home / "programs", NAMESRV_ADDR)
    member = compile_java(version, JAVA / "GroupMember.java")
    pair.slave.start()
    pair.send(20)
    with programs.start_java(member, TOPIC, GROUP, "concurrently", "1000") as first:
        wait_until(lambda: first.output.count("SEEN") >= 20, "the master gave too few messages", 60)
        wait_until(lambda: pair.committed(pair.master) == 20, "progress never reached the master", 60)
    pair.send(20)
    wait_until(pair.is_copied, "the logs never became the same", 30)
    wait_until(
        lambda: pair.committed(pair.slave) == 20, "the offsets were not copied", SYNC_SECONDS[slave_side]
    )
    pair.master.kill()
    wait_until(lambda: not _has_master(pair), "the master is still in the route table", 30)
    with programs.start_java(member, TOPIC, GROUP, "concurrently", "1000") as second:
        wait_until(lambda: second.output.count("SEEN") >= 20, "the slave gave too few messages", 90)
        assert second.output.count("SEEN") == 20, "a consumed message was delivered again"
        pair.master.start()
        wait_until(lambda: pair.committed(pair.master) == 40, "progress never reached the master", 60)
        pair.send(2)
        wait_until(lambda: second.output.count("SEEN") >= 22, "the master's new messages never arrived", 60)
        time.sleep(1)
        assert second.output.count("SEEN") == 22


@pytest.mark.timeout(400)
@pytest.mark.parametrize("pair", [("ours", "official-5.5")], indirect=True, ids="-to-".join)
def test_slave_that_answered_pulls_still_copies_offsets(pair: Pair) -> None:
    """A group's first commit is at a master that was down while the slave answered its pulls."""
    pair.slave.start()
    pair.send(20)
    wait_until(pair.is_copied, "the logs never became the same", 30)
    with pair.client(pair.master) as client:
        client.commit(GROUP, TOPIC, 0, 7)
    wait_until(
        lambda: pair.committed(pair.slave) == 7, "the offsets were not copied", SYNC_SECONDS["official-5.5"]
    )
    for commit in (3, 5):
        with pair.client(pair.slave) as client:
            assert client.pull(GROUP, TOPIC, 0, commit, commit=commit).code == 0
        pair.master.kill()
    pair.master.start()
    with pair.client(pair.master) as client:
        client.update_group("second")
        client.commit("second", TOPIC, 0, 9)
    file = pair.slave.store / "config" / "consumerOffset.json"
    wait_until(
        # The broker moves the old file away before it writes the new one.
        lambda: file.is_file() and f"{TOPIC}@second" in file.read_text(),
        "the new group's offset never reached the slave's file",
        SYNC_SECONDS["official-5.5"],
    )


def _has_master(pair: Pair) -> bool:
    reply = pair.name_server.call(105, 9876, topic=TOPIC)
    return f":{BROKER_PORT}".encode() in reply.body
