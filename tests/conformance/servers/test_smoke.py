"""The harness itself: programs end with their network, and a failure shows what they printed.

That networks do not meet is what `access/test_mqadmin_access.py` shows, whose two servers have the same ports at once.
"""

from pathlib import Path

import pytest

from conformance.servers.namespaces import Namespace
from conformance.servers.processes import ProgramFailed, Running


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
