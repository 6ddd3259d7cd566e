"""What an administrator does while clients are online, and the commands `admin_scenario.py` leaves out.

`test_mqadmin.py` plays it like that scenario: step by step on ours and on the official broker. A producer and a
consumer of the tool's own version stay connected through the first half; the second half is settings, permissions and
cleaning. Commands for what PocketMQ does not have (controller, containers, RocksDB, cold data, static topics) are not
here.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from conformance import JAVA
from conformance.admin.admin_masks import in_any_order, without_client_measures, without_rates
from conformance.admin.admin_scenario import BROKER, Admin, Play, commands
from conformance.admin.admin_scenario import GROUP as ADMIN_GROUP
from conformance.official.programs import compile_java
from conformance.servers.raw_client import wait_until

TOPIC = "online_topic"
GROUP = "online_group"
PRODUCERS = "online_producers"
EACH_QUEUE = 5
MEMBERS = (JAVA / "AdminMembers.java").read_text(encoding="utf-8")

STEPS: dict[str, Play] = {}


def step(play: Play) -> Play:
    STEPS[play.__name__] = play
    return play


STEPS["prepared"] = commands(
    f"updateTopic -b {BROKER} -t {TOPIC} -r 2 -w 2",
    f"updateTopic -b {BROKER} -t {TOPIC}_order -r 2 -w 2 -o true",
    f"updateSubGroup -b {BROKER} -g {GROUP}",
    f"updateSubGroup -b {BROKER} -g {GROUP}_idle -s false -m false -d false -q 3 -r 5 -i 0 -w 0 -a false",
)


@contextmanager
def members(admin: Admin) -> Iterator[None]:
    """The two clients, when every message has been consumed and the offsets are stored."""
    program = compile_java(admin.tool, MEMBERS)
    running = admin.server.programs.start_java(program, TOPIC, GROUP, PRODUCERS, str(EACH_QUEUE))
    try:
        running.wait_for("^JOINED$")
        running.wait_for("^SEEN", count=2 * EACH_QUEUE)
        wait_until(
            lambda: _stored_offsets(admin) == [str(EACH_QUEUE)] * 2,
            "no offset was stored",
            timeout=60,
        )
        # The broker lists the producer's and the consumer's connections after their first heartbeat.
        wait_until(lambda: admin.client.call(204, producerGroup=PRODUCERS).code == 0, "no producer is known")
        yield
    finally:
        running.say("")
        running.finish()


def _stored_offsets(admin: Admin) -> list[str | None]:
    return [admin.client.query_offset(GROUP, TOPIC, queue_id).fields.get("offset") for queue_id in (0, 1)]


@step
def online(admin: Admin) -> str:
    """Clients as mqadmin shows them; ids are `address@instance`, and the address is the same on both sides."""
    with members(admin):
        plain = [
            ("consumerConnection", "-g", GROUP),
            ("producerConnection", "-g", PRODUCERS, "-t", TOPIC),
            ("producerConnection", "-g", "absent", "-t", TOPIC),
            ("consumerProgress", "-g", GROUP),
            ("brokerConsumeStats", "-b", BROKER),
            ("brokerConsumeStats", "-b", BROKER, "-o", "true"),
            ("brokerConsumeStats", "-b", BROKER, "-l", "1"),
            ("getConsumerConfig", "-g", f"{GROUP}_idle"),
            ("allocateMQ", "-t", TOPIC, "-i", "10.0.0.1,10.0.0.2"),
            ("consumerStatus", "-g", GROUP),
            ("consumerStatus", "-g", "absent"),
            ("queryMsgTraceById", "-i", "7F00000100002A9F0000000000000009"),
            ("resetOffsetByTime", "-g", GROUP, "-t", TOPIC, "-s", "now"),
            ("skipAccumulatedMessage", "-g", GROUP, "-t", TOPIC, "-f", "true"),
            ("skipAccumulatedMessage", "-g", "absent", "-t", TOPIC),
        ]
        shown = [without_client_measures(admin.run(*words)) for words in plain]
        shown.append(_of_members(in_any_order(without_client_measures(admin.run("producer", "-b", BROKER)))))
        shown.append(_members_status(admin))
        return "\n".join(shown)


def _of_members(text: str) -> str:
    """Without the clients of mqadmin's own commands: now and then one is still disconnecting."""
    lines = text.splitlines()
    return "\n".join(
        line for line in lines if "clientId=" not in line or re.search("@(consum|produc)ing", line)
    )


def _members_status(admin: Admin) -> str:
    """307, relayed: the consumer's running info without measured values."""
    reply = admin.client.call(203, consumerGroup=GROUP)
    client_ids = sorted(set(re.findall(r'"clientId":"([^"]+)"', reply.body.decode())))
    answers = [
        admin.client.call(307, consumerGroup=GROUP, clientId=client_id, jstackEnable=False)
        for client_id in client_ids
    ]
    assert answers
    shown = "\n".join(f"{answer.code} {answer.remark} {b'properties' in answer.body}" for answer in answers)
    # A member too slow to answer is an exception; the official broker adds where it was thrown.
    return re.sub(r", org\.apache\.\S+\(\S+\)", "", shown)


SENT = re.compile(r"\d+ms\b|rt=\d+|RT: \S+|\b\d+(?=\s*$)|(broker-a +)\d+|offset=\d+", re.MULTILINE)
"""Round trips, and the queue a producer happened to choose."""


@step
def spans(admin: Admin) -> str:
    """303, 345, 343 and 300 as they come, times left out; no mqadmin command shows all of them."""
    client = admin.client
    # Whether the consumer did so depends on how long its pull of the retry topic was held.
    client.commit(GROUP, f"%RETRY%{GROUP}", 0, 0)
    shown = []
    for code, fields in (
        (303, {"topic": TOPIC, "group": GROUP}),
        (303, {"topic": "absent", "group": GROUP}),
        (345, {"group": GROUP, "topic": TOPIC}),
        (345, {"group": "absent", "topic": TOPIC}),
        (343, {"group": GROUP}),
        (353, {"group": GROUP, "topic": TOPIC}),
        (353, {"group": GROUP, "topic": TOPIC, "readable": False}),
        (353, {"group": GROUP, "topic": TOPIC, "readable": True}),
    ):
        reply = client.call(code, **fields)
        body = re.sub(
            r'((?:Time(?:Stamp|stamp)(?:Str)?|delayTime)"?:)("[^"]*"|\d+)', r"\1TIME", reply.body.decode()
        )
        shown.append(f"{code} {fields} -> {reply.code} {reply.remark} {body}")
    return "\n".join(shown)


STEPS["printed_messages"] = commands(
    f"printMsg -t {TOPIC} -d true",
    f"printMsg -t {TOPIC} -s even -d true",
    f"printMsgByQueue -t {TOPIC} -a broker-a -i 0 -p true -d true -f true",
    f"consumeMessage -t {TOPIC} -b broker-a -i 0 -o 1 -c 2 -g {GROUP}",
    f"consumeMessage -t {TOPIC} -g {GROUP}_reader",
    mask=lambda text: in_any_order(
        re.sub(r"(bornTimestamp|storeTimestamp|queueOffset max)=\d+", r"\1=T", text)
    ),
)
STEPS["sent_by_the_tool"] = commands(
    f"sendMessage -t {TOPIC} -p hello -k toolkey -c toolTag",
    f"sendMessage -t {TOPIC} -p hello -b broker-a -i 1",
    f"sendMessage -t {TOPIC} -p hello -b broker-a -i 7",
    f"checkMsgSendRT -t {TOPIC} -a 3 -s 16",
    "sendMsgStatus -b broker-a -c 2 -s 10",
    mask=lambda text: re.sub(
        r"\d+ms\b|rt=\d+|RT: \S+|\b\d+(?=\s*$)|(broker-a +)\d+|offset=\d+", r"\1N", text, flags=re.M
    ),
)
STEPS["kv_and_order"] = commands(
    "updateKvConfig -s SPACE -k key -v value",
    "deleteKvConfig -s SPACE -k key",
    "deleteKvConfig -s SPACE -k absent",
    f"updateOrderConf -m put -t {TOPIC} -v broker-a:2",
    f"updateOrderConf -m get -t {TOPIC}",
    f"topicRoute -t {TOPIC}",
    f"updateOrderConf -m delete -t {TOPIC}",
    f"updateOrderConf -m get -t {TOPIC}",
)
STEPS["permissions"] = commands(
    f"updateTopicPerm -b {BROKER} -t {TOPIC} -p 4",
    f"topicRoute -t {TOPIC}",
    f"sendMessage -t {TOPIC} -p refused",
    f"updateTopicPerm -c DefaultCluster -t {TOPIC} -p 6",
    f"updateTopicPerm -b {BROKER} -t {TOPIC} -p 6",
    f"updateTopicPerm -b {BROKER} -t absent -p 6",
    "wipeWritePerm -b broker-a",
    "wipeWritePerm -b absent",
    f"topicRoute -t {TOPIC}",
    "addWritePerm -b broker-a",
    f"topicRoute -t {TOPIC}",
    "updateBrokerConfig -b 127.0.0.1:10911 -k brokerPermission -v 4",
    f"topicRoute -t {TOPIC}",
    f"sendMessage -t {TOPIC} -p refused -b broker-a -i 0",
    "updateBrokerConfig -c DefaultCluster -k brokerPermission -v 6",
    f"topicRoute -t {TOPIC}",
)
STEPS["settings"] = commands(
    f"updateBrokerConfig -b {BROKER} -k fileReservedTime -v 71",
    f"updateBrokerConfig -b {BROKER} -k noSuchKey -v 71",
    f"updateBrokerConfig -b {BROKER} -k brokerConfigPath -v /tmp/other",
    "updateNamesrvConfig -k waitSecondsForService -v 44",
    "updateNamesrvConfig -k configStorePath -v /tmp/other",
)


def _without_day_totals(text: str) -> str:
    """statsAll: a day's messages are those of the samples so far, the last up to ten seconds old."""
    return re.sub(r" R R R \d+ \d+$", " R R R N N", text, flags=re.MULTILINE)


STEPS["cleaning"] = commands(
    f"cleanExpiredCQ -b {BROKER}",
    "cleanExpiredCQ -c DefaultCluster",
    f"cleanUnusedTopic -b {BROKER}",
    "cleanUnusedTopic -c DefaultCluster",
    f"deleteExpiredCommitLog -b {BROKER}",
    "deleteExpiredCommitLog -c DefaultCluster",
    "cleanExpiredCQ -c NoSuchCluster",
)
STEPS["statistics"] = commands(
    f"statsAll -t {TOPIC}",
    "clusterList",
    mask=lambda text: _without_day_totals(without_rates(re.sub(r"\d+\.\d+", "R", text))),
)
"""Not `statsAll -a`: which topics it calls active depends on the last sample, taken every ten seconds."""


@step
def lists(admin: Admin) -> str:
    """updateTopicList and updateSubGroupList of 5.x, from files."""
    if admin.tool != "5.5":
        return ""
    folder = admin.server.home
    topics = folder / "topics.json"
    topics.write_text(
        json.dumps([{"topicName": f"listed_{at}", "readQueueNums": 1, "writeQueueNums": 1} for at in (1, 2)])
    )
    groups = folder / "groups.json"
    groups.write_text(json.dumps([{"groupName": f"listed_group_{at}"} for at in (1, 2)]))
    shown = [
        admin.run("updateTopicList", "-b", BROKER, "-f", str(topics)),
        admin.run("updateSubGroupList", "-b", BROKER, "-f", str(groups)),
        admin.run("topicStatus", "-t", "listed_1"),
        in_any_order(admin.run("getConsumerConfig", "-g", "listed_group_2")),
    ]
    return "\n".join(shown).replace(str(folder), "HOME")


@step
def exports(admin: Admin) -> str:
    """exportMetadata, exportConfigs, exportMetrics: what they print and the names in what they write."""
    folder = admin.server.home / "export"
    # Deleted before, but 5.5.0 makes a group anew while it deletes it without its offsets. Ours does not.
    for name in (f"{ADMIN_GROUP}_two", f"{ADMIN_GROUP}_three"):
        admin.client.call(207, groupName=name, cleanOffset=True)
    exporting = (
        ("exportMetadata", "-c", "DefaultCluster", "-f", str(folder)),
        ("exportMetadata", "-b", BROKER, "-t", "-f", str(folder / "topics")),
        ("exportMetadata", "-b", BROKER, "-g", "-f", str(folder / "groups")),
        ("exportConfigs", "-c", "DefaultCluster", "-f", str(folder)),
        ("exportMetrics", "-c", "DefaultCluster", "-f", str(folder)),
    )
    shown = [re.sub(r"\b\d{13}\b", "TIME", admin.run(*words)) for words in exporting]
    for path in sorted(folder.rglob("*.json")):
        names = sorted(_names(json.loads(path.read_text())))
        shown += [f"{path.relative_to(folder)} {name}" for name in names]
    return "\n".join(shown).replace(str(folder), "EXPORT")


def _names(value: object, path: str = "") -> set[str]:
    """Every member's path in a JSON value."""
    if not isinstance(value, dict):
        return {path}
    found: set[str] = {path}
    for name, member in value.items():
        found |= _names(member, f"{path}.{name}")
    return found
