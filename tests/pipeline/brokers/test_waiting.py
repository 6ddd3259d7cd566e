"""What is waited for is said within seconds, once, and ends in one clear line."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from pocketmq.client.access import NO_ACCESS_KEYS
from pocketmq.pipeline.errors import SourceUnreachable, TopicMissing
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.brokers.reachable import check_reachable
from pocketmq.pipeline.tables.brokers.wait_log import SAY_AFTER_SECONDS, span
from pocketmq.testing import EmbeddedServer, RocketMQ, RocketMQCluster

NOBODY = "127.0.0.1:1"


@pytest.fixture
def client() -> Iterator[BrokerClient]:
    with BrokerClient(NOBODY).closing() as client:
        client.notes.say_after_seconds = 0.05
        yield client


def test_what_does_not_answer_is_said_once_for_all_requests(
    client: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(
        SourceUnreachable, match=r"the name server 127\.0\.0\.1:1 does not answer: .* 300 ms$"
    ):
        client.queues_of(["T", "U", "V"], 300)
    (line,) = caplog.messages
    assert line.startswith("the name server 127.0.0.1:1 does not answer: cannot connect")
    assert line.endswith("; trying until 300 ms are over")
    with pytest.raises(SourceUnreachable):
        client.topics(300)
    assert len(caplog.messages) == 2, "each wait that follows is said again"


def test_a_name_server_that_returns_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with RocketMQCluster(brokers=1) as cluster:
        cluster.grow("T", queues=1)
        name_server = f"the name server {cluster.namesrv_addr}"
        with BrokerClient(cluster.namesrv_addr).closing() as client:
            client.notes.say_after_seconds = 0.05
            cluster.faults.delay(code="GET_ROUTEINFO_BY_TOPIC", seconds=0.2, times=1)
            assert client.queues("T", 10_000)
    first, second = caplog.messages
    assert first == f"{name_server}: no answer; trying until 10 s are over"
    assert second.startswith(f"{name_server}: answered after")


def test_a_topic_that_does_not_exist_is_named_with_the_one_that_was_meant() -> None:
    with EmbeddedServer() as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("Orders", queues=1)
        check_reachable(server.namesrv_addr, ["Orders"], NO_ACCESS_KEYS)
        check_reachable(server.namesrv_addr, [], NO_ACCESS_KEYS)
        with pytest.raises(TopicMissing, match=r"topic Ordres does not exist .*; did you mean Orders\?"):
            check_reachable(server.namesrv_addr, ["Orders", "Ordres"], NO_ACCESS_KEYS)
        with pytest.raises(TopicMissing, match=r"topic Bills does not exist on any broker$"):
            check_reachable(server.namesrv_addr, ["Bills"], NO_ACCESS_KEYS)


@pytest.mark.parametrize("topics", [[], ["T"]])
def test_no_name_server_ends_in_one_line(topics: list[str]) -> None:
    with pytest.raises(
        SourceUnreachable, match=r"the name server 127\.0\.0\.1:1 does not answer: .* 200 ms$"
    ):
        check_reachable(NOBODY, topics, NO_ACCESS_KEYS, answer_ms=200)


def test_spans() -> None:
    assert [span(ms) for ms in (200, 1000, 30_000, 2_500)] == ["200 ms", "1 s", "30 s", "2.5 s"]


def hear_ctrl_c() -> None:
    """Shells start what runs in the background deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["lag"],
        ["dlq"],
        ["latency"],
        ["latest", "--topics", "T"],
        ["replay", "--topics", "T", "--to", "U"],
        ["compare", "127.0.0.1:2", "--topics", "T"],
        ["mirror", "--to-namesrv", "127.0.0.1:2", "--topics", "T", "--name", f"waiting-{os.getpid()}"],
        ["ingest", "--topics", "T", "--to", "/tmp/none", "--checkpoint", "/tmp/none"],
    ],
)
def test_each_job_says_what_it_waits_for(words: list[str]) -> None:
    name, *others = words
    if name == "ingest":
        pytest.importorskip("pyspark")
    address = [NOBODY] if name == "compare" else ["-n", NOBODY]
    command = [sys.executable, "-m", "pocketmq.cli", "pipeline", name, *address, *others]
    begun = time.monotonic()
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=hear_ctrl_c
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        seconds = time.monotonic() - begun
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert (rest, process.returncode) == ("", 130), "Ctrl-C ends the wait"
    assert line.startswith(
        "pocketmq: the name server 127.0.0.1:1 does not answer: cannot connect to 127.0.0.1:1"
    )
    assert line.endswith("trying until 30 s are over\n")
    assert seconds < SAY_AFTER_SECONDS + 15, "two seconds, and the start of Python on a very busy machine"
