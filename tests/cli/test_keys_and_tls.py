"""Every command that calls a broker can sign with keys and use TLS, and is refused without them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cli_runs import refusal

KEYS = ("--access-key", "root", "--secret-key", "secret12")
COMMANDS = (
    ("send", "Orders", "one"),
    ("tail", "Orders", "--from", "first", "--no-follow"),
    ("explain", "-g", "billing", "-t", "Orders"),
    ("bench", "producer", "-t", "Orders", "--tasks", "1", "--duration", "0.1", "--warm-up", "0"),
)


SERVER = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "initAuthenticationUser": json.dumps({"username": "root", "password": "secret12"}),
    "tls.server.mode": "enforcing",
}
Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _topic(run: Run) -> None:
    assert run(*COMMANDS[0], *KEYS, "--tls").exit_code == 0


@pytest.mark.parametrize("words", COMMANDS, ids=[words[0] for words in COMMANDS])
def test_a_command_is_served_with_keys_and_tls(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words, *KEYS, "--tls")
    assert result.exit_code == 0, result.output


def test_keys_may_come_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETMQ_ACCESS_KEY", "root")
    monkeypatch.setenv("POCKETMQ_SECRET_KEY", "secret12")
    assert run(*COMMANDS[0], "--tls").exit_code == 0
    assert run(*COMMANDS[0], "--secret-key", "wrong", "--tls").exit_code == 2


def test_mqadmins_commands_accept_keys_and_tls_before_their_name(run: Run) -> None:
    result = run("admin", *KEYS, "--tls", "clusterList")
    assert result.exit_code == 0, result.output
    assert "DefaultCluster" in result.output


@pytest.mark.parametrize("words", COMMANDS[:3], ids=[words[0] for words in COMMANDS[:3]])
def test_wrong_keys_are_one_line_and_exit_code_2(run: Run, words: tuple[str, ...]) -> None:
    refusal(run(*words, "--access-key", "root", "--secret-key", "wrong", "--tls"))


def test_keys_of_mqadmins_file_are_used(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "tools.yml").write_text("accessKey: root\nsecretKey: secret12\n")
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    for words in ((*COMMANDS[0], "--tls"), ("admin", "--tls", "brokerStatus", "-c", "DefaultCluster")):
        result = run(*words)
        assert result.exit_code == 0, result.output
