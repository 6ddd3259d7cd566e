"""Dockerfile, action.yml and docs/languages.md: what they say to shells, GitHub and Docker works with this program.

Neither Docker nor GitHub is needed: the steps of the action run in bash, and what the image would run is run here.
"""

import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pocketmq.testing import EmbeddedServer

from documents import blocks

ROOT = Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PROGRAM = (sys.executable, "-m", "pocketmq.cli")
SECONDS = 30


# -- workflows


@pytest.mark.parametrize("name", ["ci", "nightly", "release"])
def test_a_workflow_calls_targets_that_exist(name: str) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))
    commands = [
        step["run"]
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if "make" in step.get("run", "")
    ]
    called = [
        target for command in commands for target in re.findall(r"make (?:--silent )?([a-z-]+)", command)
    ]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert called
    assert [target for target in called if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


# -- the action


class Runner:
    """What GitHub gives the steps of an action: files for variables and outputs, and a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.temporary = folder
        self._files = {name: folder / name for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT")}
        for file in self._files.values():
            file.touch()

    def run(self, step: dict[str, Any], **inputs: str) -> "subprocess.CompletedProcess[str]":
        """One step with `run`, as a runner runs it."""
        given = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | inputs
        own = {name: _filled(text, given) for name, text in step.get("env", {}).items()}
        environment = {name: value for name, value in os.environ.items() if name != "NAMESRV_ADDR"}
        environment |= {name: str(path) for name, path in self._files.items()}
        environment |= {"RUNNER_TEMP": str(self.temporary), "GITHUB_ACTION_PATH": str(ROOT)}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            env=environment | own | self.values("GITHUB_ENV"),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    def values(self, name: str) -> dict[str, str]:
        lines = self._files[name].read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def path(self) -> str:
        return self._files["GITHUB_PATH"].read_text().strip()


def _filled(text: str, inputs: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: inputs[found[1]], text)


INSTALL, START = ACTION["runs"]["steps"]


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    """The environment of the tests stands for the one that the first step would make."""
    (tmp_path / "pocketmq" / "bin").mkdir(parents=True)
    installed = Path(sys.executable).parent / "pocketmq"
    (tmp_path / "pocketmq" / "bin" / "pocketmq").symlink_to(installed)
    yield Runner(tmp_path)
    try:
        os.kill(int((tmp_path / "pocketmq.pid").read_text()), signal.SIGTERM)
    except (FileNotFoundError, ProcessLookupError):
        pass


def test_the_workflow_of_the_document_runs_with_the_server_of_the_action(runner: Runner) -> None:
    [text] = blocks(ROOT / "docs" / "languages.md", "yaml")
    checkout, action, look, own = yaml.safe_load(text)["jobs"]["test"]["steps"]
    assert [checkout["uses"].split("@")[0], own["run"]] == ["actions/checkout", "mvn --batch-mode test"]
    assert action["with"].keys() <= ACTION["inputs"].keys()

    assert runner.run(INSTALL).returncode == 0
    assert runner.path() == str(runner.temporary / "pocketmq" / "bin")
    free = {"port": "0", "namesrv-port": "0"}
    started = runner.run(START, **action["with"], **free)
    assert started.returncode == 0, started.stderr
    variables, outputs = runner.values("GITHUB_ENV"), runner.values("GITHUB_OUTPUT")
    assert outputs == {"namesrv": variables["NAMESRV_ADDR"], "admin": variables["POCKETMQ_ADMIN"]}
    for name, output in ACTION["outputs"].items():
        assert output["value"] == f"${{{{ steps.start.outputs.{name} }}}}"
    if shutil.which("curl") is not None:
        found = runner.run(look)
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout)["queues"] == 8


def test_a_server_that_cannot_start_fails_the_step_and_shows_why(runner: Runner) -> None:
    failed = runner.run(START, topics="orders:many", port="0")
    assert failed.returncode == 1
    assert "--topic must be TOPIC or TOPIC:QUEUES, got 'orders:many'" in failed.stderr
    assert runner.values("GITHUB_ENV") == {}


def test_every_input_of_the_action_is_used_and_described() -> None:
    used = {
        name
        for step in (INSTALL, START)
        for text in step["env"].values()
        for name in re.findall(r"inputs\.([a-z-]+)", text)
    }
    assert used == ACTION["inputs"].keys()
    text = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    assert [name for name in ACTION["inputs"] if f"`{name}`" not in text] == []
    assert all(one["description"] for one in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))


# -- the image


def instructions() -> list[tuple[str, str]]:
    """(instruction, words) of the Dockerfile, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.split(None, 1)[1]) for line in lines]


def words_of(name: str) -> list[str]:
    found: list[str] = json.loads(next(words for one, words in instructions() if one == name))
    return found


def test_what_the_image_runs_is_understood_by_the_program(tmp_path: Path) -> None:
    program, *words = [*words_of("ENTRYPOINT"), *words_of("CMD")]
    assert program == "pocketmq"
    words[words.index("/store")] = str(tmp_path)
    ran = subprocess.run([*PROGRAM, *words, "--print-config"], capture_output=True, text=True, check=True)
    config = {line.split()[0]: line.split()[1] for line in ran.stdout.splitlines() if line[:1].islower()}
    assert (config["bindAddress"], config["advertise"]) == ("0.0.0.0", "127.0.0.1:10911")
    exposed = next(words for name, words in instructions() if name == "EXPOSE").split()
    assert {"9876", config["listenPort"], words[words.index("--admin-port") + 1]} <= set(exposed)


def test_the_health_check_asks_a_server_that_answers() -> None:
    check = next(words for name, words in instructions() if name == "HEALTHCHECK")
    command = json.loads(check[check.index("[") :])
    port = re.search(r"127\.0\.0\.1:(\d+)/", command[-1])
    assert port is not None
    assert port[1] == words_of("ENTRYPOINT")[-1]
    assert command[0] == "python"
    with EmbeddedServer(admin_port=0) as server:
        own = server.admin_url.rpartition(":")[2]
        asked = [sys.executable, *command[1:-1], command[-1].replace(f":{port[1]}/", f":{own}/")]
        assert subprocess.run(asked, check=False).returncode == 0
        with urllib.request.urlopen(f"{server.admin_url}/readyz") as answer:
            assert answer.status == 200
    assert subprocess.run(asked, stderr=subprocess.DEVNULL, check=False).returncode != 0


def test_the_image_does_not_run_as_root_and_keeps_its_store_in_a_volume() -> None:
    last = max(number for number, (name, _) in enumerate(instructions()) if name == "FROM")
    final = dict(instructions()[last:])
    assert final["USER"] not in ("root", "0")
    assert final["VOLUME"] in words_of("ENTRYPOINT")
    assert all(":" in words for name, words in instructions() if name == "FROM"), "a base without a version"


def test_the_image_gets_what_an_installation_needs_and_no_tests() -> None:
    ignored = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    needed = {"pyproject.toml", "setup.py", "README.md", "LICENSE", "constraints.txt"}
    needed |= {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert [name for name in needed if any(fnmatch.fnmatch(name, pattern) for pattern in ignored)] == []
    assert {"tests", ".git"} <= set(ignored)
