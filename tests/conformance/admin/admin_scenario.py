"""What an administrator does to a small broker, command by command, and what each prints.

The same steps are played on ours and on the official broker; `test_mqadmin.py` compares. A step is a function of an
`Admin`; the steps run in the order of the file. `settled` removes what no two runs share (times, client ports, ids made
of time and process, and speeds); the rest of what a step returns is compared.
"""

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from conformance import JAVA
from conformance.admin.admin_masks import in_any_order, without_measured, without_our_settings, without_rates
from conformance.official.programs import AdminShell, compile_java
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.remoting import Reply
from conformance.servers.server import Server

BROKER = "127.0.0.1:10911"
TOPIC = "admin_topic"
GROUP = "admin_group"
BORN_MS = 1_700_000_000_000
TRAFFIC = (JAVA / "AdminTraffic.java").read_text(encoding="utf-8")

RECORD = struct.Struct(">iiiiiqqi")
MESSAGE_MAGIC = -626843481
PLACES = (
    # A client of the tool may send its first heartbeat, after a second, while it is being shut down, and stay online.
    (re.compile(r"^TOOLS_CONSUMER .*$", re.MULTILINE), "TOOLS_CONSUMER"),
    (re.compile(r"\b7F000001(?!00002A9F)[0-9A-F]{24}\b"), "<id>"),
    (re.compile(r"\b\d{13}@"), "HOUR@"),
    (re.compile(r"timestamp\(long\)\[\d{13}\]"), "timestamp(long)[TIME]"),
    (re.compile(r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d([,:.]\d{3})?"), "TIME"),
    (re.compile(r"127\.0\.0\.1:(3[2-9]|[4-6]\d)\d{3}\b"), "127.0.0.1:PORT"),
)


class Admin:
    """One side being administered: a server, mqadmin of one version, a raw connection, and ids that later steps use."""

    def __init__(self, server: Server, tool: str) -> None:
        self.server = server
        self.tool = tool
        self.client = RawClient(server)
        self.mqadmin: AdminShell = server.programs.admin_shell(tool)
        self.ids: dict[str, str] = {}
        """Kind of message -> unique id that the Java client made."""
        self.offset_ids: dict[str, str] = {}

    def __enter__(self) -> "Admin":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.__exit__(kind, error, trace)

    def of_topic(self) -> tuple[str, ...]:
        """-t for those commands that accept it only since 5.x."""
        return ("-t", TOPIC) if self.tool == "5.5" else ()

    def run(self, *words: str) -> str:
        """A command and what it printed."""
        return f"$ {' '.join(words)}\n{self.mqadmin(*words)}"

    def settled(self, text: str) -> str:
        for kind, unique_id in self.ids.items():
            text = text.replace(unique_id, f"<id of {kind}>")
        for pattern, word in PLACES:
            text = pattern.sub(word, text)
        return "\n".join(line.rstrip() for line in text.splitlines())


Play = Callable[[Admin], str]
STEPS: dict[str, Play] = {}


def step(play: Play) -> Play:
    STEPS[play.__name__] = play
    return play


def commands(*lines: str, in_55: tuple[str, ...] = (), mask: Callable[[str], str] = str) -> Play:
    """A step that runs mqadmin commands, words split at blanks; `mask` removes more than `settled` does."""

    def play(admin: Admin) -> str:
        chosen = (*lines, *in_55) if admin.tool == "5.5" else lines
        return "\n".join(mask(admin.run(*line.split())) for line in chosen)

    return play


STEPS["updateTopic"] = commands(
    f"updateTopic -b {BROKER} -t {TOPIC} -r 4 -w 4",
    f"updateTopic -c DefaultCluster -t {TOPIC}_two -r 2 -w 2 -o true",
    f"updateTopic -b {BROKER} -t {TOPIC}_read -r 1 -w 1 -p 4",
    f"updateTopic -b {BROKER} -t not*a*topic",
    "updateTopic -c NoSuchCluster -t other",
)
STEPS["updateSubGroup"] = commands(
    f"updateSubGroup -b {BROKER} -g {GROUP} -r 2 -q 1",
    f"updateSubGroup -c DefaultCluster -g {GROUP}_two -s false -d true -q 2",
    f"updateSubGroup -b {BROKER} -g {GROUP}_three",
)


def _told(reply: Reply) -> str:
    return f"{reply.code} {reply.remark} {sorted(reply.fields.items())}"


@step
def raw_sends(admin: Admin) -> str:
    """Single, tagged, keyed, batched: frames with fixed birth and ids, so that all of the answer must agree."""
    client = admin.client
    properties = [
        {},
        {"KEYS": "raw1 raw2", "TAGS": "TagR", "WAIT": "true"},
        {"UNIQ_KEY": "7F00000100002A9F0000000000000001", "KEYS": "raw3", "colour": "grün"},
        {
            "UNIQ_KEY": "7F00000100002A9F0000000000000002",
            "WAIT": "false",
            "MSG_REGION": "Elsewhere",
            "TRACE_ON": "false",
        },
    ]
    shown = [
        _told(client.send(TOPIC, at % 4, f"raw {at}".encode(), names, born_ms=BORN_MS + at))
        for at, names in enumerate(properties)
    ]
    shown.append(
        _told(
            client.send_batch(
                TOPIC, 2, [(b"raw batch", {"KEYS": "rawbatch"}), (b"", {"TAGS": "T"})], born_ms=BORN_MS
            )
        )
    )
    client.settle(TOPIC, 2, 3)
    return "\n".join(shown)


@step
def java_sends(admin: Admin) -> str:
    ran = admin.server.programs.run_java(compile_java(admin.tool, TRAFFIC), TOPIC)
    assert ran.lines[-1] == "DONE", ran.output
    for kind, unique_id, offset_id in re.findall(r"^SENT (\S+) (\S+) (\S+)", ran.output, re.MULTILINE):
        admin.offset_ids[kind] = offset_id
        for at, one in enumerate(unique_id.split(",")):
            admin.ids[f"{kind}-{at}"] = one
    client = admin.client
    wait_until(lambda: client.max_offset(TOPIC, 1) >= 6, "the delayed message never arrived")
    return ran.output


@step
def send_back(admin: Admin) -> str:
    """A message sent back waits in the group's retry topic; one out of retries is in the dead letter queue."""
    client = admin.client
    for level in (18, -1):
        reply = client.call(
            36,
            offset=int(admin.offset_ids["plain"][16:], 16),
            group=GROUP,
            originMsgId=admin.ids["plain-0"],
            originTopic=TOPIC,
            maxReconsumeTimes=16,
            unitMode=False,
            delayLevel=level,
        )
        assert reply.code == 0, reply
    return _told(reply)


@step
def stored_bytes(admin: Admin) -> str:
    """Every record of the log, field by field; what differs by nature is left out."""
    return "\n".join(str(record) for record in read_log(admin.server.store / "commitlog"))


def read_log(folder: Path) -> Iterator[dict[str, object]]:
    """Records of the first log file: position, sizes, offsets, flags, body and the text of the properties."""
    with min(folder.iterdir()).open("rb") as file:
        log = file.read(1 << 20)
    start = 0
    while start + 8 <= len(log):
        size, magic, crc, queue_id, flag, queue_offset, position, sys_flag = RECORD.unpack_from(log, start)
        if magic != MESSAGE_MAGIC:
            return
        reconsumed, prepared, body_size = struct.unpack_from(">iqi", log, start + 72)
        body_end = start + 88 + body_size
        topic_end = body_end + 1 + log[body_end]
        yield {
            "position": position,
            "size": size,
            "queue": (log[body_end + 1 : topic_end].decode(), queue_id, queue_offset),
            "flags": (flag, sys_flag),
            "crc": crc,
            "reconsumed": reconsumed,
            "prepared": prepared,
            "body": log[start + 88 : body_end],
            "properties": log[topic_end + 2 : start + size]
            .decode()
            .replace("\x01", "=")
            .replace("\x02", ";"),
        }
        start += size


STEPS["clusterList"] = commands("clusterList", "clusterList -m", mask=without_rates)
STEPS["topicList"] = commands("topicList", "topicList -c", mask=in_any_order)
STEPS["topicRoute"] = commands(
    f"topicRoute -t {TOPIC}",
    f"topicRoute -t {TOPIC}_two",
    f"topicRoute -t {TOPIC}_read",
    "topicRoute -t absent",
)
STEPS["topicStatus"] = commands(
    f"topicStatus -t {TOPIC}",
    f"topicStatus -t {TOPIC}_two",
    f"topicStatus -t %RETRY%{GROUP}",
    f"topicStatus -t %DLQ%{GROUP}",
    "topicStatus -t absent",
    f"topicClusterList -t {TOPIC}",
)


@step
def committed(admin: Admin) -> str:
    """Half of everything is consumed."""
    client = admin.client
    offsets = {queue_id: client.max_offset(TOPIC, queue_id) // 2 for queue_id in range(4)}
    for queue_id, offset in offsets.items():
        assert client.commit(GROUP, TOPIC, queue_id, offset).code == 0
    return str(offsets)


STEPS["consumerProgress"] = commands(
    f"consumerProgress -g {GROUP}",
    f"consumerProgress -g {GROUP} -s true",
    f"consumerProgress -g {GROUP}_two",
    "consumerProgress -g absent",
    "consumerProgress",
    in_55=(f"consumerProgress -g {GROUP} -t {TOPIC}",),
)
STEPS["consumerConnection"] = commands(f"consumerConnection -g {GROUP}", "consumerConnection -g absent")


@step
def query_msg_by_id(admin: Admin) -> str:
    """Of messages of every kind. Bodies go to files in a folder all tools share: `stored_bytes` compares them."""
    kinds = ("plain", "tagged", "compressed", "batch")
    ids = [one for kind in kinds for one in admin.offset_ids[kind].split(",")]
    ids += [f"7F00000100002A9F{offset:016X}" for offset in (0, 1 << 30)]
    return "\n".join(admin.run("queryMsgById", "-i", one, *admin.of_topic()) for one in (*ids, "no-id"))


STEPS["queryMsgByKey"] = commands(
    f"queryMsgByKey -t {TOPIC} -k raw1",
    f"queryMsgByKey -t {TOPIC} -k raw3",
    f"queryMsgByKey -t {TOPIC} -k keyA",
    f"queryMsgByKey -t {TOPIC} -k key-batch1",
    f"queryMsgByKey -t {TOPIC} -k rawbatch",
    f"queryMsgByKey -t {TOPIC} -k absent",
    "queryMsgByKey -t absent -k raw1",
    in_55=(
        f"queryMsgByKey -t {TOPIC} -k keyB -m 1",
        f"queryMsgByKey -t {TOPIC} -k raw1 -b 1 -e 2",
        f"queryMsgByKey -t {TOPIC} -k TagA -p T",
    ),
)


@step
def query_msg_by_unique_key(admin: Admin) -> str:
    ids = ["7F00000100002A9F0000000000000001", "7F00000100002A9F00000000000000FF"]
    ids += [admin.ids[kind] for kind in ("plain-0", "tagged-0", "compressed-0", "batch-1", "delayed-0")]
    return "\n".join(admin.run("queryMsgByUniqueKey", "-t", TOPIC, "-i", one) for one in ids)


STEPS["queryMsgByOffset"] = commands(
    *(
        f"queryMsgByOffset -t {TOPIC} -b broker-a -i {queue} -o {offset}"
        for queue in (0, 1)
        for offset in (0, 2, 99)
    ),
    # Not an unknown topic: the tool's new client may or may not have learned of a broker by then.
)
STEPS["queryCq"] = commands(
    f"queryCq -t {TOPIC} -q 1 -i 0 -c 10 -b {BROKER}",
    f"queryCq -t {TOPIC} -q 1 -i 99 -c 1 -b {BROKER}",
    f"queryCq -t absent -q 1 -i 0 -c 1 -b {BROKER}",
)
STEPS["brokerStatus"] = commands(
    f"brokerStatus -b {BROKER}", "brokerStatus -c DefaultCluster", mask=without_measured
)
STEPS["getBrokerConfig"] = commands(
    f"getBrokerConfig -b {BROKER}", "getBrokerConfig -c DefaultCluster", mask=without_our_settings
)
STEPS["cloneGroupOffset"] = commands(
    f"cloneGroupOffset -s {GROUP} -d {GROUP}_three -t {TOPIC} -o true",
    f"cloneGroupOffset -s {GROUP} -d {GROUP}_two -t {TOPIC} -o false",
    f"cloneGroupOffset -s {GROUP} -d absent -t {TOPIC} -o true",
    f"cloneGroupOffset -s absent -d {GROUP}_three -t {TOPIC} -o true",
    f"cloneGroupOffset -s {GROUP} -d {GROUP}_three -t absent -o true",
)


def offsets_of(*groups: str) -> Play:
    """What 14 answers in each queue."""

    def play(admin: Admin) -> str:
        return "\n".join(
            f"{group} {queue_id} {_told(admin.client.query_offset(group, TOPIC, queue_id))}"
            for group in groups
            for queue_id in range(5)
        )

    return play


STEPS["offsets_after_cloning"] = offsets_of(GROUP, f"{GROUP}_two", f"{GROUP}_three", "absent")
STEPS["resetOffsetByTime"] = commands(
    f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0",
    f"resetOffsetByTime -g {GROUP}_three -t {TOPIC} -s -1",
    f"resetOffsetByTime -g {GROUP}_two -t {TOPIC} -s now",
    f"resetOffsetByTime -g {GROUP}_two -t {TOPIC} -s 2020-01-01#00:00:00:000 -f false",
    f"resetOffsetByTime -g absent -t {TOPIC} -s 0",
    f"resetOffsetByTime -g {GROUP} -t absent -s 0",
    f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s soon",
)
STEPS["offsets_after_reset"] = offsets_of(GROUP, f"{GROUP}_two", f"{GROUP}_three", "absent")
STEPS["consumerProgress_after_reset"] = commands(
    f"consumerProgress -g {GROUP}", f"consumerProgress -g {GROUP}_three", "consumerProgress"
)
STEPS["deleteTopic"] = commands(
    f"deleteTopic -c DefaultCluster -t {TOPIC}_two",
    f"deleteTopic -c DefaultCluster -t {TOPIC}",
    "deleteTopic -c DefaultCluster -t absent",
    "deleteTopic -c DefaultCluster -t TBW102",
    f"deleteSubGroup -b {BROKER} -g {GROUP}_two",
    f"deleteSubGroup -c DefaultCluster -g {GROUP}_three -r true",
)
STEPS["topicList_after_deletion"] = commands("topicList", mask=in_any_order)
STEPS["after_deletion"] = commands(
    f"topicRoute -t {TOPIC}",
    f"topicStatus -t {TOPIC}",
    f"consumerProgress -g {GROUP}",
    f"queryMsgByKey -t {TOPIC} -k raw1",
    "consumerProgress",
)
STEPS["offsets_after_deletion"] = offsets_of(GROUP, f"{GROUP}_two", f"{GROUP}_three")
