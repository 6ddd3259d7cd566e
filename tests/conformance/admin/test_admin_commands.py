"""`pocketmq admin` prints what mqadmin 5.5.0 prints, side by side on one server: on ours, and on official 5.5.0.

Three kinds of commands. A command that only reads runs in both tools with the same words. A command that changes
something runs in each tool on names of its own (`@` in a line), and the results are compared at the end. A refused
command must be refused by both. Intended differences: sets and maps are sorted here (Java prints them as its hash
tables hold them), and a mistake is one line on standard error and exit code 2 (mqadmin: a stack trace, its usage, or a
line that reports success). The table of options is compared as well.
"""

import difflib
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pocketmq.cli.admin.command import command_rows

from conformance import JAVA
from conformance.admin.admin_masks import MEASURED, in_any_order
from conformance.admin.admin_scenario import TRAFFIC
from conformance.admin.admin_shells import PythonShell, differences_of, settled
from conformance.conftest import make_server
from conformance.official.jars import prepare_home
from conformance.official.programs import AdminShell, compile_java
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import Server

HERE = Path(__file__).parent
BROKER = "127.0.0.1:10911"
TOPIC = "looked_at"
MEMBERS = "members"
OFFLINE = "offline"
MEMBER = (JAVA / "GroupMember.java").read_text(encoding="utf-8")
OPTIONS = (JAVA / "AdminOptions.java").read_text(encoding="utf-8")
UNKNOWN_ID = "7F00000100002A9F00000000000000FF"

Mask = Callable[[str], str]


class Side:
    """A server that has some history, and both tools."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.java: AdminShell = server.programs.admin_shell("5.5")
        self.python = PythonShell(server)
        self.ids: dict[str, str] = {}
        self.client_id = ""
        self._make_history()

    def _make_history(self) -> None:
        with RawClient(self.server) as client:
            client.update_topic(TOPIC, 4)
            client.update_topic(f"%RETRY%{OFFLINE}", 1)
            client.update_group(OFFLINE)
            ran = self.server.programs.run_java(compile_java("5.5", TRAFFIC), TOPIC)
            for kind, unique_id, offset_id in re.findall(
                r"^SENT (\S+) (\S+) (\S+)", ran.output, re.MULTILINE
            ):
                self.ids |= {kind: unique_id.split(",")[0], f"{kind}_at": offset_id.split(",")[0]}
            wait_until(lambda: client.max_offset(TOPIC, 1) >= 5, "the delayed message never arrived")
            member = self.server.programs.start_java(
                compile_java("5.5", MEMBER), TOPIC, MEMBERS, "concurrent"
            )
            member.wait_for(r"^SEEN ", 60, count=7)
            for queue_id in range(4):
                assert (
                    client.commit(OFFLINE, TOPIC, queue_id, client.max_offset(TOPIC, queue_id) // 2).code == 0
                )
            wait_until(
                lambda: client.query_offset(MEMBERS, TOPIC, 1).fields.get("offset") == "5",
                "the member never committed",
                30,
            )
        lines = self.java("consumerConnection", "-g", MEMBERS).splitlines()
        self.client_id = next(line.split()[0] for line in lines if "JAVA" in line)

    def words(self, line: str) -> list[str]:
        values = {"client": self.client_id, **self.ids}
        return [re.sub(r"<(\w+)>", lambda match: values[match[1]], word) for word in line.split()]

    def close(self) -> None:
        self.python.close()


@pytest.fixture(scope="module", params=["ours", "official-5.5"])
def asked(
    request: pytest.FixtureRequest, peers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Side]:
    conf = {"mappedFileSizeCommitLog": 16 << 20, "traceTopicEnable": True}
    with make_server(request.param, tmp_path_factory.mktemp("admin"), broker_conf=conf) as server:
        side = Side(server)
        yield side
        side.close()


def words_in_any_order(text: str) -> str:
    """For maps and sets printed in one line."""
    return "\n".join(sorted(re.sub(r"[{}\[\],]", " ", text).split()))


def without_numbers(text: str) -> str:
    return in_any_order(re.sub(r" +", " ", re.sub(r"-?\d+(\.\d+)?", "N", text)))


def without_measured(text: str) -> str:
    return MEASURED.sub(r"\2", text)


LOOKS: dict[str, Mask] = {
    f"topicRoute -t {TOPIC}": str,
    f"topicRoute -t {TOPIC} -l": str,
    "topicList": in_any_order,
    "topicList -c": in_any_order,
    f"topicClusterList -t {TOPIC}": str,
    f"topicStatus -t {TOPIC}": str,
    f"topicStatus -t {TOPIC} -c DefaultCluster": without_numbers,
    f"getConsumerConfig -g {MEMBERS}": str,
    "getConsumerConfig -g absent": str,
    f"consumerConnection -g {MEMBERS}": in_any_order,
    f"consumerConnection -g {MEMBERS} -b {BROKER}": in_any_order,
    f"producer -b {BROKER}": str,
    f"consumerProgress -g {MEMBERS}": lambda text: re.sub(r"TPS: \S+", "TPS", text),
    f"consumerProgress -g {MEMBERS} -s true": lambda text: re.sub(r"TPS: \S+", "TPS", text),
    f"consumerProgress -g {MEMBERS} -t {TOPIC}": lambda text: re.sub(r"TPS: \S+", "TPS", text),
    f"consumerProgress -g {OFFLINE}": str,
    "consumerProgress": in_any_order,
    f"queryMsgById -t {TOPIC} -i <plain_at>,<tagged_at>": in_any_order,
    f"queryMsgById -t {TOPIC} -i <compressed_at>": in_any_order,
    f"queryMsgById -t {TOPIC} -i <plain>": in_any_order,
    f"queryMsgById -t {TOPIC} -i <tagged> -f UTF-8": in_any_order,
    f"queryMsgById -t {TOPIC} -i <tagged> -g {MEMBERS} -d <client>": without_numbers,
    f"queryMsgByKey -t {TOPIC} -k keyA": str,
    f"queryMsgByKey -t {TOPIC} -k key-batch1": str,
    f"queryMsgByKey -t {TOPIC} -k TagA -p T": str,
    f"queryMsgByUniqueKey -t {TOPIC} -i <tagged>": words_in_any_order,
    f"queryMsgByUniqueKey -t {TOPIC} -i <delayed> -a": words_in_any_order,
    f"queryMsgByOffset -t {TOPIC} -b broker-a -i 1 -o 0": in_any_order,
    f"queryMsgByOffset -t {TOPIC} -b broker-a -i 1 -o 2 -f UTF-8": in_any_order,
    f"queryMsgByOffset -t {TOPIC} -b broker-a -i 1 -o 99": str,
    f"printMsg -t {TOPIC}": in_any_order,
    f"printMsg -t {TOPIC} -d false -s TagA": in_any_order,
    f"printMsg -t {TOPIC} -b 0 -e 1600000000000": in_any_order,
    f"printMsgByQueue -t {TOPIC} -a broker-a -i 0 -p true -d true -f true": str,
    f"printMsgByQueue -t {TOPIC} -a broker-a -i 0 -f true": str,
    "clusterList": without_numbers,
    "clusterList -m": without_numbers,
    "clusterList -c absent": str,
    f"brokerStatus -b {BROKER}": without_measured,
    "brokerStatus -c DefaultCluster": without_measured,
    f"getBrokerConfig -b {BROKER}": in_any_order,
    "getBrokerConfig -c DefaultCluster": in_any_order,
    "statsAll": without_numbers,
    f"statsAll -t {TOPIC}": without_numbers,
    f"consumerprogress -g {OFFLINE}": str,
}
"""Lines of words, and what is taken out of both answers before they are compared."""

REFUSED = (
    "updateTopic -c absent -t other",
    f"updateTopic -b {BROKER} -t not*a*topic",
    f"updateTopicPerm -t {TOPIC} -p 6 -b 127.0.0.1:1",
    "topicRoute -t absent",
    "topicStatus -t absent",
    "topicClusterList -t absent",
    "printMsg -t absent",
    f"updateSubGroup -b {BROKER} -g not*a*group",
    "consumerProgress -g absent",
    "consumerConnection -g absent",
    f"consumerConnection -g {OFFLINE}",
    f"producerConnection -g absent -t {TOPIC}",
    f"queryMsgById -t {TOPIC} -i no-id",
    f"queryMsgByKey -t {TOPIC} -k absent",
    f"queryMsgByKey -t {TOPIC} -k keyA -p X",
    f"queryMsgByUniqueKey -t {TOPIC} -i {UNKNOWN_ID}",
    f"resetOffsetByTime -g {OFFLINE} -t absent -s 0",
    f"resetOffsetByTime -g {OFFLINE} -t {TOPIC} -s soon",
    "cloneGroupOffset -s absent -d other -t absent",
    f"sendMessage -t {TOPIC} -p hello -i 1",
    f"queryMsgTraceById -i {UNKNOWN_ID}",
)

CHANGES = (
    "updateTopic -c DefaultCluster -t one_@ -r 2 -w 2 -o true -a +message.type=FIFO",
    f"updateTopic -b {BROKER} -t two_@ -r 3 -w 4 -u true -s true",
    "updateTopicPerm -t two_@ -p 4 -b 127.0.0.1:10911",
    "updateTopicPerm -t two_@ -p 4 -b 127.0.0.1:10911",
    "updateTopicPerm -t two_@ -p 6 -c DefaultCluster",
    f"updateTopic -b {BROKER} -t %RETRY%group_@ -r 1 -w 1",
    "updateSubGroup -c DefaultCluster -g group_@",
    f"updateSubGroup -b {BROKER} -g other_@ -s false -d true -q 2 -r 3 -m true -i 1 -w 2 -a false -o true "
    '-p {"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":5000,"max":7200000,"multiplier":2}}',
    "getConsumerConfig -g other_@",
    f"cloneGroupOffset -s {OFFLINE} -d group_@ -t {TOPIC}",
    "consumerProgress -g group_@",
    f"resetOffsetByTime -g group_@ -t {TOPIC} -s 0",
    f"resetOffsetByTime -g group_@ -t {TOPIC} -s now",
    f"resetOffsetByTime -g group_@ -t {TOPIC} -s 2020-01-01#00:00:00:000",
    f"resetOffsetByTime -g group_@ -t {TOPIC} -s 0 -b {BROKER} -q 1 -o 2",
    f"skipAccumulatedMessage -g group_@ -t {TOPIC}",
    "sendMessage -t two_@ -p hello -k key -c TagA -b broker-a -i 1",
    "queryMsgByKey -t two_@ -k key",
    f"updateBrokerConfig -b {BROKER} -k flushDelayOffsetInterval -v 9999",
    "updateBrokerConfig -c DefaultCluster -k flushDelayOffsetInterval -v 10000",
    f"deleteSubGroup -b {BROKER} -g other_@ -r true",
    "deleteSubGroup -c DefaultCluster -g group_@",
    "deleteTopic -t two_@ -c DefaultCluster",
    "deleteTopic -t absent_@ -c DefaultCluster",
)
"""In this order. Each tool has its own word for @, of one length."""


@pytest.mark.parametrize("line", LOOKS)
def test_commands_that_only_read_print_the_same(asked: Side, line: str) -> None:
    words, mask = asked.words(line), LOOKS[line]
    official = mask(settled(asked.java(*words)))
    assert "Exception:" not in official, official
    ours = mask(settled(asked.python(*words)))
    assert ours == official, "\n".join(difflib.unified_diff(official.splitlines(), ours.splitlines(), n=0))


@pytest.mark.parametrize("line", REFUSED)
def test_what_mqadmin_refuses_is_one_line_and_exit_code_2(asked: Side, line: str) -> None:
    words = asked.words(line)
    official = asked.java(*words)
    assert "Exception" in official or len(official.splitlines()) < 2 or "usage:" in official, official
    ours = asked.python(*words)
    assert re.fullmatch(r"EXIT 2: pocketmq: [^\n]+", ours.strip()), ours


def test_commands_that_change_something_print_the_same(asked: Side) -> None:
    """Also the reading commands in between, which show that the changes are the same."""
    differences = differences_of(asked.java, asked.python, CHANGES)
    assert not differences, "\n".join(differences)


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
