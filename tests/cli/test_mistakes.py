"""Whatever a user types, a mistake is one line of limited length on standard error, and exit code 2."""

import os
import shlex
from pathlib import Path

import pytest
from pocketmq.cli.mistakes import MAX_LINE_CHARS, one_line
from pocketmq.testing import EmbeddedServer, RocketMQ

from cli_runs import pocketmq, refusal

VALUES = {"long": "9" * 5000, "broken": os.fsdecode(b"\xff"), "feed": "a\nb", "escape": "\x1b[31m"}
BAD_VALUES = [
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
]
MISTAKES = {
    "sned": "No such command 'sned'",
    "send T x -p novalue": "must be NAME=VALUE",
    "send T x -p KEYS=1": "used by system",
    "send T ''": "body length is zero",
    "send 'T T' x": "illegal characters",
    "send T x --deliver-at tomorrow": "must be epoch milliseconds",
    "send T x --delay-ms 5 --delay-level 1": "give one of",
    f"send T x --delay-ms {10**18}": "is not in the range",
    f"send T x --deliver-at {10**18}": "beyond the year 9999",
    "send T x --queue 1 --order-key k": "not both",
    "send T x -f -": "not both",
    "send T x --queue 77": "no queue 77",
    "tail NoSuchTopic": "no route for topic NoSuchTopic",
    "tail TBW102 --queue 99": "no queue 99",
    "tail TBW102 --from sometime": "must be first, last",
    "tail TBW102 -g g --from 5": "--from must be first, last or a time",
    "tail TBW102 -g g --no-follow": "--queue and --no-follow are not possible",
    "tail TBW102 --tags '||'": "subscription exception",
    "explain -g g -t Nowhere": "Nowhere",
    "explain -g g -t T --access-key root": "--access-key, --secret-key: set both or none",
    "explain -g g -t T --tls-cert nowhere.pem": "--tls is required with",
    "explain -g g -t T --tls --tls-trust nowhere.pem": "nowhere.pem",
    "bench consumer -t NoSuchTopic": "no route for topic NoSuchTopic",
    "bench consumer -t TBW102": "holds no messages",
    "bench dance": "is not one of",
    "pipeline nothing": "No such command 'nothing'",
    "pipeline duplicate": "No such command 'duplicate'. Did you mean duplicates?",
    "proxy --listen x --target h:1": "--listen must be PORT or HOST:PORT, got 'x'",
    "proxy --listen 0 --target nowhere": "--target: ",
    "proxy --listen 0 --target h:1 --latency -1": "--latency must be a number of at least 0",
    "proxy --listen 0 --target h:1 --slice-bytes 0": "--slice-bytes must be a whole number",
    "proxy --target h:1": "Missing option '--listen'",
    "behave": "give a program after --, or reports with --against",
    "behave calm": "give the program after --: pocketmq behave calm -- COMMAND",
    "behave calmer -- true": "no scenario is called calmer: use a file, or one of ack-lost, ack-refused",
    "behave calm --jobs 0 -- true": "Invalid value for '--jobs'",
    "behave --against none.json": "cannot read none.json: No such file or directory",
    "behave calm -- no-such-program": "cannot run no-such-program: No such file or directory",
    "admin updateTopic -t Orders": "-b (brokerAddr) or -c (clusterName)",
    "admin updateTopic -t Orders -b 127.0.0.1:1 -c DefaultCluster": "give one of",
    "admin updateTopic -c DefaultCluster": "Missing option '-t'",
    "admin updateTopic -c DefaultCluster -t Orders -r many": "-r (readQueueNums) must be a whole number, got 'many'",
    "admin updateTopic -c DefaultCluster -t Orders -p 99": "topicPermission value: 99",
    "admin updateTopic -c DefaultCluster -t Orders -a colour": "must be +key=value or -key, got 'colour'",
    "admin updateTopic -c absent -t Orders": "clusterName exists",
    "admin updateTopic --colour blue": "No such option",
    "admin topicLst": "No such command 'topicLst'. Did you mean topicList",
    "admin updateSubGroup -g billing": "give either the address of a broker or the name of a cluster",
    "admin updateSubGroup -c DefaultCluster -g billing -p {": "groupRetryPolicy",
    "admin updateUser -c DefaultCluster -u one -p a -s disable": "give one of",
    "admin resetOffsetByTime -g g -t Orders -s soon": "specified timestamp invalid",
    "admin printMsg -t TBW102 -c klingon": "unknown character set 'klingon'",
    "admin queryMsgById -t TBW102 -i no-id": "is not a message id",
}


@pytest.fixture(scope="module")
def address(server: EmbeddedServer) -> str:
    RocketMQ(server).topic("T")
    return server.namesrv_addr


@pytest.mark.parametrize("line", BAD_VALUES)
def test_a_bad_value_is_shown_in_one_printable_line(
    line: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refusal(pocketmq(*(word.format(**VALUES) for word in line.split()), namesrv_addr=address))
    assert said.removesuffix("\n").isprintable()
    assert len(said) < 2 * MAX_LINE_CHARS


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line_that_names_it(line: str, address: str) -> None:
    assert MISTAKES[line] in refusal(pocketmq(*shlex.split(line), namesrv_addr=address))


def test_an_access_key_that_is_empty_is_none(address: str) -> None:
    result = pocketmq("topics", "--access-key", "", namesrv_addr=address)
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_long_line_keeps_its_begin_and_its_end() -> None:
    line = one_line("begin " + "x" * 10_000 + "\nend")
    assert line.startswith("begin x")
    assert line.endswith("x end")
    assert len(line) < MAX_LINE_CHARS + 10
