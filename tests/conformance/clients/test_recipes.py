"""The recipes of the documents for other languages: their code, as it is printed there, passes its own tests."""

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
GO = ROOT / "tests" / "conformance" / "behaviour" / "go"


def write_files(document: str, language: str, folder: Path) -> list[str]:
    """The blocks of a document whose first line names a file; returns the names."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    found = []
    for block in re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        named = re.match(r"// (\S+)\n", block)
        assert named is not None, f"a block of {document} names no file: {block[:60]}"
        (folder / named[1]).write_text(block, encoding="utf-8")
        found.append(named[1])
    return found


def run(folder: Path, *command: str, **more: str) -> str:
    """Run it with the program `pocketmq` on PATH; returns what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "NAMESRV_ADDR"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**environment, **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_go(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("not on PATH: go")
    assert write_files("go.md", "go", tmp_path) == ["pocketmq_test.go", "shop_test.go"]
    module = (GO / "go.mod").read_text(encoding="utf-8").replace("module behave", "module shop")
    (tmp_path / "go.mod").write_text(module, encoding="utf-8")
    shutil.copy(GO / "go.sum", tmp_path)
    printed = run(tmp_path, "go", "test", "-v", "./...", GOFLAGS="-mod=mod")
    assert printed.count("--- PASS") == 2


def test_javascript(tmp_path: Path) -> None:
    try:
        packages = node_packages()
    except PeersUnavailable as why:
        pytest.skip(str(why))
    assert write_files("javascript.md", "js", tmp_path) == ["pocketmq.js", "shop.test.js"]
    printed = run(tmp_path, "node", "--test", "--test-force-exit", NODE_PATH=str(packages))
    assert re.search(r"^# pass 3$", printed, re.MULTILINE), printed


def test_exec_gives_the_tests_a_server(tmp_path: Path) -> None:
    """The one line with which both documents begin."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("not on PATH: node")
    address = "process.env.POCKETMQ_ADMIN + '/api/topics/orders'"
    program = f"fetch({address}).then(answer => answer.json()).then(topic => console.log(topic.queues))"
    words = ("exec", "--admin-port", "0", "--topic", "orders:4", "--", node, "-e", program)
    assert run(tmp_path, "pocketmq", *words) == "4\n"
