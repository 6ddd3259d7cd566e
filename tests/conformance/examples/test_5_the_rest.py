"""The table of all examples: it is complete, and this test runs each example that no other test runs.

One server for each client version, one JVM for the examples. Each example must print its line as often as the table
says. POCKETMQ_INTEROP_ALL=1 adds the official servers.
"""

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.conftest import make_server
from conformance.examples.stage import Act, Stage
from conformance.examples.table import COMMITS, ELSEWHERE, NOT_PLAYED, REST, Row
from conformance.official.jars import jars
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import Server

ROOT = Path(__file__).parents[3]
PACKAGE = "org/apache/rocketmq/example/"
MAIN = b"\x01\x00\x04main\x01\x00\x16([Ljava/lang/String;)V"
"""Name and type of a main as they stand in a class file, one after the other."""
CONF = {
    "messageDelayLevel": "1s 1s 1s 1s 1s",
    "enableLmq": True,
    "enableMultiDispatch": True,
}
TOPICS = ("TopicTest", "TestTopic", "NAMESPACE%topicTest", "InstanceTest%topicTest", "TopicTest1")
WORLDS = [("ours", "4.9", "4.9"), ("ours", "5", "5.5")]
if os.environ.get("POCKETMQ_INTEROP_ALL"):
    WORLDS += [("official-4.9", "", "4.9"), ("official-5.5", "", "5.5")]
READER = "please_rename_unique_group_name_5"

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("client", ["4.9", "5.5"])
def test_the_table_has_every_example(peers: None, client: str) -> None:
    (jar,) = (path for path in jars(client) if path.name.startswith("rocketmq-example-"))
    with zipfile.ZipFile(jar) as archive:
        found = {
            name.removeprefix(PACKAGE).removesuffix(".class").replace("/", ".")
            for name in archive.namelist()
            if name.endswith(".class") and "$" not in name and MAIN in archive.read(name)
        }
    played = {row.name for row in REST} | {COMMITS}
    assert len(found) > 35
    assert found <= ELSEWHERE.keys() | NOT_PLAYED.keys() | played


@pytest.mark.parametrize(("name", "file"), ELSEWHERE.items(), ids=lambda value: str(value).rpartition("/")[2])
def test_the_file_that_plays_an_example_names_it(name: str, file: str) -> None:
    assert re.search(rf'"{re.escape(name)}\b|\b{re.escape(name)}"', (ROOT / file).read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=WORLDS, ids=lambda world: f"{world[0]}-{world[2]}")
def world(
    request: pytest.FixtureRequest, peers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Stage, str]]:
    side, emulate, client = request.param
    options = {"emulate": emulate} if emulate else {}
    home = tmp_path_factory.mktemp(f"rest-{side}-{client}")
    with make_server(side, home, broker_conf=CONF, **options) as server:
        with RawClient(server) as raw:
            for topic in TOPICS:
                raw.update_topic(topic, 4)
        yield server, Stage(server.programs, client, home / "stage"), client


def test_each_remaining_example_prints_its_lines(world: tuple[Server, Stage, str]) -> None:
    server, stage, client = world
    acts: dict[str, Act] = {}
    for row in REST:
        if client not in row.clients:
            continue
        act = acts.get(row.name) or stage.play(row.name)
        acts[row.name] = act
        judge(row, act)
    # Of three: the last is sent one-way, and its producer shuts down right after it.
    acts["openmessaging.SimplePushConsumer"].wait_for(r"^Received one message: \w+", 2)
    if client == "5.5":
        stage.play(COMMITS)
        with RawClient(server) as raw:
            sizes = [raw.max_offset("TopicTest", queue_id) for queue_id in range(4)]
            assert sum(sizes) >= 128
            wait_until(lambda: committed(raw) == sizes, "its reader never reached the end of TopicTest", 60)


def judge(row: Row, act: Act) -> None:
    """As often as the table says, and no exception on the way."""
    output = act.wait_for(row.pattern, row.count, timeout=60)
    assert "Exception" not in output, f"{row}: {output[-2000:]}"


def committed(raw: RawClient) -> list[int]:
    replies = [raw.query_offset(READER, "TopicTest", queue_id) for queue_id in range(4)]
    return [int(reply.fields.get("offset", -1)) for reply in replies]
