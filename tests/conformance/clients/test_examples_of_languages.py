"""The examples in Go and JavaScript pass their own tests, and their documents show parts of them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.clients.foreign import node_packages
from conformance.official.jars import PeersUnavailable

ROOT = Path(__file__).resolve().parents[3]


def run(folder: Path, *command: str, **more: str) -> str:
    """What it printed, with the program `pocketmq` on PATH, and without a server of somebody else."""
    ran = ended(folder, *command, seconds=100, **more)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-3000:]
    return ran.stdout


def ended(
    folder: Path, *command: str, seconds: float = 100, **more: str
) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **more}
    for name in ("NAMESRV_ADDR", "POCKETMQ_ADMIN"):
        environment.pop(name, None)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=seconds
    )


def copied(folder: str, tmp_path: Path) -> Path:
    """A copy in which builds may write."""
    made = tmp_path / Path(folder).name
    return Path(shutil.copytree(ROOT / folder, made, ignore=shutil.ignore_patterns("target")))


def test_go(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("not on PATH: go")
    printed = run(copied("examples/go", tmp_path), "go", "test", "-v", "./...")
    assert printed.count("--- PASS") == 2


def test_javascript(tmp_path: Path) -> None:
    try:
        packages = node_packages()
    except PeersUnavailable as why:
        pytest.skip(str(why))
    printed = run(copied("examples/node", tmp_path), "npm", "test", NODE_PATH=str(packages))
    assert re.search(r"^# pass 3$", printed, re.MULTILINE), printed


@pytest.mark.parametrize(("fence", "example"), [("go", "go"), ("js", "node")])
def test_the_document_shows_a_part_of_the_example(fence: str, example: str) -> None:
    text = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    [shown] = re.findall(rf"^```{fence}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    files = (ROOT / "examples" / example).glob("shop*")
    assert any(shown in file.read_text(encoding="utf-8") for file in files)


def test_exec_gives_the_tests_a_server(tmp_path: Path) -> None:
    """The one line with which both languages begin."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("not on PATH: node")
    address = "process.env.POCKETMQ_ADMIN + '/api/topics/orders'"
    program = f"fetch({address}).then(answer => answer.json()).then(topic => console.log(topic.queues))"
    words = ("exec", "--admin-port", "0", "--topic", "orders:4", "--", node, "-e", program)
    assert run(tmp_path, "pocketmq", *words) == "4\n"
