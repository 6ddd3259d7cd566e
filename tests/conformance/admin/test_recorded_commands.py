"""`pocketmq admin` prints what mqadmin printed to the official broker, command by command, without Java."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from pocketmq.cli.main import main

from conformance.admin import recorded_commands
from conformance.daily import DAILY
from conformance.on_demand import ON_DEMAND
from conformance.servers.local_server import LocalServer
from conformance.servers.raw_client import RawClient
from conformance.servers.server import BROKER_PORT, NAME_SERVER_PORT, StartServer


@DAILY
def test_admin_prints_what_mqadmin_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = LocalServer(tmp_path, broker_conf={"mappedFileSizeCommitLog": 16 << 20, "traceTopicEnable": True})
    with ours, RawClient(ours) as client:
        recorded_commands.prepared(client)
        broker, name_server = (f"127.0.0.1:{ours.ports[port]}" for port in (BROKER_PORT, NAME_SERVER_PORT))
        monkeypatch.setenv("NAMESRV_ADDR", name_server)
        answers = recorded_commands.play(admin, broker, name_server)
    assert not (differing := differences(answers)), differing


@ON_DEMAND
def test_mqadmin_still_prints_that(fresh_server: StartServer) -> None:
    official = fresh_server("official-5.5", broker_conf={"mappedFileSizeCommitLog": 16 << 20})
    with RawClient(official) as client:
        recorded_commands.prepared(client)
        answers = recorded_commands.play(official.programs.admin_shell("5.5"))
    assert not (differing := differences(answers)), differing


def differences(answers: list[str]) -> str:
    text = recorded_commands.RECORDED.read_text(encoding="utf-8")
    recorded = re.split(r"^(?=\$ )", text, flags=re.MULTILINE)[1:]
    pairs = zip(recorded, answers, strict=True)
    return "\n".join(f"{official}--- now:\n{now}" for official, now in pairs if official != now)


def admin(*words: str) -> str:
    result = CliRunner().invoke(main, ["admin", *words])
    failed = f"\nEXIT {result.exit_code}: {result.stderr.strip()}" if result.exit_code else ""
    return result.stdout + failed
