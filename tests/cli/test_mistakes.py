"""Whatever a user types, a mistake is one line of limited length on standard error, and exit code 2."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pocketmq.cli.main import main
from pocketmq.cli.mistakes import MAX_LINE_CHARS, one_line
from pocketmq.testing import EmbeddedServer, RocketMQ


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with EmbeddedServer() as server:
        RocketMQ(server).topic("T")
        yield server.namesrv_addr


@pytest.mark.parametrize(
    "line",
    [
        "topics -n {long}",
        "topics --watch nan",
        "topics --watch {long}",
        "lag -g {broken}",
        "explain -g g -t {broken}",
        "tail {broken}",
        "tail T --from {long}",
        "send T x --queue {long}",
        "send T x --flag {long}",
        "send T x --property {feed}",
        "send T x -f {long}",
        "send {long} x",
        "store check {long}",
        "store show {feed}",
        "bench producer --rate nan",
        "serve --print-config -c {feed}",
        "serve --print-config --set {feed}",
        "proxy --listen {feed} --target a:1",
        "admin topicStatus -t {long}",
        "admin {long}",
        "{long}",
        "{escape}",
    ],
)
def test_a_mistake_is_one_line(
    line: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"long": "9" * 5000, "broken": os.fsdecode(b"\xff"), "feed": "a\nb", "escape": "\x1b[31m"}
    words = [word.format(**values) for word in line.split()]
    result = CliRunner().invoke(main, words, prog_name="pocketmq", env={"NAMESRV_ADDR": address})
    assert (result.exit_code, result.stdout) == (2, ""), result
    assert result.stderr.startswith("pocketmq")
    assert result.stderr.count("\n") == 1
    assert result.stderr.removesuffix("\n").isprintable()
    assert len(result.stderr) < 2 * MAX_LINE_CHARS


def test_an_access_key_that_is_empty_is_none(address: str) -> None:
    result = CliRunner().invoke(main, ["topics", "--access-key", "", "-n", address])
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_long_line_keeps_its_begin_and_its_end() -> None:
    line = one_line("begin " + "x" * 10_000 + "\nend")
    assert line.startswith("begin x")
    assert line.endswith("x end")
    assert len(line) < MAX_LINE_CHARS + 10
