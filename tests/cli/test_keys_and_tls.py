"""Every command that calls a broker can sign with keys and use TLS, and is refused without them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pocketmq.cli.main import main
from pocketmq.testing import EmbeddedServer

KEYS = ("--access-key", "root", "--secret-key", "secret12")
COMMANDS = (
    ("send", "Orders", "one"),
    ("tail", "Orders", "--from", "first", "--no-follow"),
    ("explain", "-g", "billing", "-t", "Orders"),
    ("bench", "producer", "-t", "Orders", "--tasks", "1", "--duration", "0.1", "--warm-up", "0"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    user = json.dumps({"username": "root", "password": "secret12"})
    settings = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "initAuthenticationUser": user,
        "tls.server.mode": "enforcing",
    }
    with EmbeddedServer(settings) as running:
        yield running


def run(server: EmbeddedServer, words: tuple[str, ...], *options: str) -> Result:
    return CliRunner().invoke(main, [*words, *options, "-n", server.namesrv_addr])


@pytest.mark.parametrize("words", COMMANDS, ids=[words[0] for words in COMMANDS])
def test_a_command_is_served_with_keys_and_tls(server: EmbeddedServer, words: tuple[str, ...]) -> None:
    assert run(server, COMMANDS[0], *KEYS, "--tls").exit_code == 0  # the topic exists from here on
    result = run(server, words, *KEYS, "--tls")
    assert result.exit_code == 0, result.output


def test_keys_may_come_from_the_environment(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETMQ_ACCESS_KEY", "root")
    monkeypatch.setenv("POCKETMQ_SECRET_KEY", "secret12")
    assert run(server, COMMANDS[0], "--tls").exit_code == 0
    assert run(server, COMMANDS[0], "--secret-key", "wrong", "--tls").exit_code == 2


def test_mqadmins_commands_accept_keys_and_tls_before_their_name(server: EmbeddedServer) -> None:
    result = CliRunner().invoke(main, ["admin", *KEYS, "--tls", "clusterList", "-n", server.namesrv_addr])
    assert result.exit_code == 0, result.output
    assert "DefaultCluster" in result.output


@pytest.mark.parametrize("words", COMMANDS[:3], ids=[words[0] for words in COMMANDS[:3]])
def test_wrong_keys_are_one_line_and_exit_code_2(server: EmbeddedServer, words: tuple[str, ...]) -> None:
    assert run(server, COMMANDS[0], *KEYS, "--tls").exit_code == 0
    result = run(server, words, "--access-key", "root", "--secret-key", "wrong", "--tls")
    assert result.exit_code == 2
    assert result.stderr.startswith("pocketmq: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--access-key", "root"), "--access-key, --secret-key: set both or none"),
        (("--tls-cert", "nowhere.pem"), "--tls is required with"),
        (("--tls", "--tls-trust", "nowhere.pem"), "nowhere.pem"),
    ],
)
def test_half_a_pair_of_options_is_refused(
    server: EmbeddedServer, options: tuple[str, ...], message: str
) -> None:
    result = run(server, COMMANDS[2], *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_keys_of_mqadmins_file_are_used(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "tools.yml").write_text("accessKey: root\nsecretKey: secret12\n")
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    for words in ((*COMMANDS[0], "--tls"), ("admin", "--tls", "brokerStatus", "-c", "DefaultCluster")):
        result = run(server, words)
        assert result.exit_code == 0, result.output
