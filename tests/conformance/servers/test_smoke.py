"""The harness itself: networks that do not meet, and programs that end with theirs.

That each side starts and serves official programs is what `examples/` and `admin/` show.
"""

from pathlib import Path

import pytest

from conformance.servers.namespaces import Namespace
from conformance.servers.processes import ProgramFailed, Running
from conformance.servers.server import ServerOf


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
