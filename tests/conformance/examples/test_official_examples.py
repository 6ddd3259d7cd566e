"""The table of all examples is complete, and each prints its lines, leaves what it sent and commits what it read.

One server and one JVM with the examples for each pair. POCKETMQ_INTEROP_ALL=1 adds the official servers.
"""

import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from conformance.conftest import make_server
from conformance.examples.stage import Act, Stage
from conformance.examples.table import COMMITS, CONSUMERS, MESSAGE, NOT_PLAYED, PRODUCERS, REST, Row
from conformance.official.jars import jars
from conformance.official.programs import BINARY_HEADER
from conformance.on_demand import chosen
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import Server

PACKAGE = "org/apache/rocketmq/example/"
MAIN = b"\x01\x00\x04main\x01\x00\x16([Ljava/lang/String;)V"
"""Name and type of a main as they stand in a class file, one after the other."""
# Retries of a consumer start at the third level: short ones save minutes, on either side.
CONF = {
    "enablePropertyFilter": True,
    "messageDelayLevel": "1s 1s 1s 1s 1s 1s 1s 1s 1s 1s",
    "enableLmq": True,
    "enableMultiDispatch": True,
}
TOPICS = (
    *("TopicTest", "TopicTest1", "TopicTest1234", "RequestTopic", "SqlFilterTest", "TestTopic", "TimerTopic"),
    *("NAMESPACE%topicTest", "InstanceTest%topicTest"),
)
WORLDS = chosen(
    [
        ("ours-4.9", "4.9", ()),
        ("ours-5.5", "5.5", ()),
        ("ours-5.5", "4.9", BINARY_HEADER),
        ("ours-4.9", "5.5", BINARY_HEADER),
    ],
    [
        ("official-4.9", "4.9", ()),
        ("official-5.5", "5.5", ()),
        ("official-5.5", "4.9", BINARY_HEADER),
        ("official-4.9", "5.5", BINARY_HEADER),
    ],
)
"""A server, the examples' client, and its options."""
READER = "please_rename_unique_group_name_5"

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("client", ["4.9", "5.5"])
def test_the_table_has_every_example(peers: None, client: str) -> None:
    (jar,) = (path for path in jars(client) if path.name.startswith("rocketmq-example-"))
    with zipfile.ZipFile(jar) as archive:
        found = {
            name.removeprefix(PACKAGE).removesuffix(".class").replace("/", ".")
            for name in archive.namelist()
            if name.endswith(".class") and "$" not in name and MAIN in archive.read(name)
        }
    played = {row.name for row in (*PRODUCERS, *CONSUMERS, *REST)} | {COMMITS}
    assert len(found) > 35
    assert found <= NOT_PLAYED.keys() | played


@dataclass
class World:
    """A server, the JVM with the examples of a client, and a connection that looks at what they did."""

    server: Server
    client: str
    stage: Stage
    raw: RawClient

    def play(self, rows: Iterable[Row]) -> list[tuple[Row, Act]]:
        """Start those that this client has."""
        return [
            (row, self.stage.play(row.name, *row.words, instance=row.instance))
            for row in rows
            if self.client in row.clients
        ]

    def sizes(self, topic: str) -> list[int]:
        return [self.raw.max_offset(topic, queue_id) for queue_id in range(4)]

    def has_committed(self, group: str, topic: str) -> bool:
        replies = [self.raw.query_offset(group, topic, queue_id) for queue_id in range(4)]
        return sum(int(reply.fields.get("offset", 0)) for reply in replies) == sum(self.sizes(topic))

    def judge(self, row: Row, act: Act) -> None:
        """As often as the table says, and no exception on the way; one that is stopped has committed everything."""
        count = row.count or (sum(self.sizes(row.topic)) if row.topic else 0)
        output = act.finish(120) if row.pattern is None else act.wait_for(row.pattern, count, timeout=60)
        assert "Exception" not in output, f"{row}: {output[-2000:]}"
        if not row.group:
            return
        if row.topic:
            wait_until(lambda: self.has_committed(row.group, row.topic), f"{row} never read everything", 60)
        output = act.stop(row.group)
        assert row.pattern != MESSAGE or not row.topic or output.count(MESSAGE) == count, f"{row}: once each"


@pytest.fixture(params=WORLDS, ids=lambda world: f"{world[0]}-client-{world[1]}")
def world(
    request: pytest.FixtureRequest, peers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    side, client, options = request.param
    home = tmp_path_factory.mktemp(f"examples-{side}-{client}")
    with make_server(side, home, broker_conf=CONF) as server, RawClient(server) as raw:
        # A producer that creates its topic gets another route later, and begins its turns through the queues anew.
        for topic in TOPICS:
            raw.update_topic(topic, 4)
        raw.update_group("please_rename_unique_group_name")
        yield World(server, client, Stage(server.programs, client, home / "stage", options), raw)


def test_each_example_prints_its_lines(world: World) -> None:
    stored: Counter[str] = Counter()
    for row, act in world.play(PRODUCERS):
        world.judge(row, act)
        stored[row.topic] += row.count
    for topic, count in stored.items():
        wait_until(lambda: sum(world.sizes(topic)) == count, f"{topic} has not {count} messages")  # noqa: B023
    for row, act in world.play(CONSUMERS):
        world.judge(row, act)
    if world.client == world.server.emulates:
        acts: dict[str, Act] = {}
        for row in REST:
            if world.client in row.clients:
                acts[row.name] = acts.get(row.name) or world.stage.play(row.name)
                world.judge(row, acts[row.name])
        if world.client == "5.5":
            world.stage.play(COMMITS)
            wait_until(
                lambda: world.has_committed(READER, "TopicTest"), "its reader never reached the end", 60
            )
