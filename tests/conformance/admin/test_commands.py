"""mqadmin and `pocketmq admin` print what the recordings hold, each on the official broker and on ours.

The table is in `commands.py`. Ours with `pocketmq admin` runs every day, without Java. There a mistake is
one line on standard error and an exit code (mqadmin: a stack trace, its usage, or a line that reports success).
"""

import difflib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pocketmq.cli.admin.command import command_rows
from pocketmq.cli.main import main

from conformance import JAVA
from conformance.admin import commands
from conformance.admin.commands import Content
from conformance.conftest import open_server
from conformance.daily import DAILY
from conformance.official.jars import prepare_home
from conformance.official.programs import compile_java
from conformance.on_demand import ON_DEMAND
from conformance.servers.local_server import LocalServer
from conformance.servers.processes import CommandShell, Running
from conformance.servers.server import BROKER_PORT, NAME_SERVER_PORT

OPTIONS = JAVA / "AdminOptions.java"
REFUSAL = re.compile(r"\$ .*\n    EXIT N: pocketmq: [^\n]+\n")
SHOWS_WHAT_OTHERS_DID = {
    ("wipeWritePerm", "topicRoute -t two_made"),
    ("updateSubGroupList", "topicStatus -t listed_topics_1"),
    ("topicStatus", "getConsumerConfig -g listed_groups_2"),
}
"""The command before, which is one that ours does not have or shows the same, and the one that shows it."""


@DAILY
def test_pocketmq_prints_what_mqadmin_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = LocalServer(tmp_path, broker_conf=commands.conf("5.5"))
    monkeypatch.chdir(tmp_path)  # consumerStatus writes files
    with ours:
        broker, name_server = (f"127.0.0.1:{ours.ports[port]}" for port in (BROKER_PORT, NAME_SERVER_PORT))
        monkeypatch.setenv("NAMESRV_ADDR", name_server)
        with commands.with_content(ours, broker, name_server) as content:
            assert not (differing := differences_of_pocketmq(admin, content)), differing


def admin(*words: str) -> str:
    result = CliRunner().invoke(main, ["admin", *words])
    failed = f"\nEXIT {result.exit_code}: {result.stderr.strip()}" if result.exit_code else ""
    return result.stdout + failed


@ON_DEMAND
def test_pocketmq_prints_it_on_the_official_broker(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    official = open_server(request, "official-5.5", tmp_path, broker_conf=commands.conf("5.5"))
    with official, commands.with_content(official) as content:
        log = official.home / "run" / "pocketmq-admin.out"
        program = [sys.executable, str(Path(__file__).with_name("python_admin_shell.py"))]
        shell = CommandShell(lambda mark: Running(official.namespace, [*program, mark], log))
        assert not (differing := differences_of_pocketmq(shell, content)), differing
        shell.close()


@pytest.mark.parametrize(
    ("tool", "side"),
    [
        ("5.5", "ours-5.5"),
        ("4.9", "ours-4.9"),
        pytest.param("4.9", "ours-5.5", marks=ON_DEMAND),
        pytest.param("5.5", "ours-4.9", marks=ON_DEMAND),
        pytest.param("5.5", "official-5.5", marks=ON_DEMAND),
        pytest.param("4.9", "official-4.9", marks=ON_DEMAND),
    ],
)
def test_mqadmin_prints_it(request: pytest.FixtureRequest, tmp_path: Path, tool: str, side: str) -> None:
    line = side.partition("-")[2]
    server = open_server(request, side, tmp_path, broker_conf=commands.conf(line))
    with server, commands.with_content(server) as content:
        recorded = list(recorded_answers(tool, line))
        answers = content.answers(server.programs.admin_shell(tool), [command for command, _ in recorded])
        assert not (differing := differences(recorded, answers)), differing


def differences_of_pocketmq(shell: Callable[..., str], content: Content) -> str:
    """Of the commands that it has, apart from what shows only what others did."""
    known = {name.lower() for name in command_rows()}
    recorded, before = [], ""
    for line, text in recorded_answers("5.5", "5.5"):
        name = line.split()[0]
        if name.lower() in known and (before, line) not in SHOWS_WHAT_OTHERS_DID:
            recorded.append((line, text))
        before = name
    answers = content.answers(shell, [command for command, _ in recorded])
    for at, (command, official) in enumerate(recorded):
        if command in commands.REFUSED or "Exception:" in official:
            answers[at] = official if REFUSAL.fullmatch(answers[at]) else answers[at]
    return differences(recorded, answers)


def recorded_answers(tool: str, line: str) -> Iterator[tuple[str, str]]:
    text = commands.recording(tool, line).read_text(encoding="utf-8")
    for answer in re.split(r"^(?=\$ )", text, flags=re.MULTILINE)[1:]:
        yield answer.partition("\n")[0][2:], answer


def differences(recorded: list[tuple[str, str]], answers: list[str]) -> str:
    texts = "".join(official for _, official in recorded).splitlines(), "".join(answers).splitlines()
    return "\n".join(difflib.unified_diff(*texts, "recorded", "now", lineterm="", n=2))


def test_the_table_of_options_is_that_of_mqadmin(peers: None, tmp_path: Path) -> None:
    prepare_home(tmp_path)
    program = compile_java("5.5", OPTIONS)
    finished = subprocess.run(program.command(tmp_path, (), ()), capture_output=True, text=True, check=True)
    official: dict[str, list[tuple[str, ...]]] = {}
    for line in finished.stdout.splitlines():
        if line.startswith("OPTION\t"):
            command, *rest = line.split("\t")[1:]
            official.setdefault(command, []).append(tuple(rest))
    for command, rows in command_rows().items():
        about, *options = rows
        first, *others = official[command]
        assert about.text == first[-1], command
        ours = [(one.short, one.long, one.kind, one.need, one.text) for one in options]
        assert ours == others, command
