"""The harness itself: every side starts, serves official programs, and leaves no process running."""

from pathlib import Path

import pytest

from conformance.servers.namespaces import Namespace
from conformance.servers.processes import ProgramFailed, Running
from conformance.servers.server import Server, ServerOf


def test_official_producer_is_served(side: Server) -> None:
    ran = side.programs.run_example("5.5", "quickstart.Producer")
    sent = [line for line in ran.lines if "SEND_OK" in line]
    assert ran.code == 0
    assert len(sent) >= 10


@pytest.mark.parametrize("version", ["4.9", "5.5"])
def test_mqadmin_lists_the_broker(side: Server, version: str) -> None:
    assert "broker-a" in side.programs.mqadmin(version, "clusterList").output


def test_admin_shell_answers_like_single_commands(side: Server) -> None:
    shell = side.programs.admin_shell("5.5")
    assert "127.0.0.1:10911" in shell("clusterList")
    topics = shell("topicList")
    assert "SELF_TEST_TOPIC" in topics
    assert "127.0.0.1:10911" not in topics


def test_consumer_that_never_ends_is_ended(side: Server) -> None:
    side.programs.run_example("4.9", "quickstart.Producer", timeout=120)
    consumer = side.programs.start_example("4.9", "quickstart.Consumer")
    consumer.wait_for(r"Receive New Messages", timeout=60, count=5)
    consumer.stop()
    assert not consumer.alive


def test_sides_share_ports_but_no_network(official: ServerOf) -> None:
    old, new = official("4.9"), official("5.5")
    assert b"4_9" in old.call(28).body
    assert b"5_5" in new.call(28).body


def test_programs_die_with_their_namespace(peers: None, tmp_path: Path) -> None:
    namespace = Namespace()
    with Running(namespace, ["sleep", "1000"], tmp_path / "sleep.out") as sleeper:
        namespace.close()
        assert sleeper.process.wait(5) == -9


def test_output_of_a_failed_program_is_shown(peers: None, tmp_path: Path) -> None:
    words = ["sh", "-c", "echo the reason; exit 3"]
    with (
        Namespace() as namespace,
        Running(namespace, words, tmp_path / "sh.out") as failing,
        pytest.raises(ProgramFailed, match="the reason"),
    ):
        failing.wait_for("ready")


def test_namespace_reaches_itself_and_nothing_else(peers: None) -> None:
    with Namespace() as here, Namespace() as there, here.listen(9876) as listening, there.listen(9876):
        near = here.connect(9876)
        accepted, _ = listening.accept()
        with near, accepted:
            near.sendall(b"x")
            assert accepted.recv(1) == b"x"
