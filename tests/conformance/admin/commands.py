"""The commands of mqadmin that are compared: on which content they run, and what of an answer counts.

Raw frames make the content, and a member that answers what the broker relays to it. A recording, such as
`mqadmin_49_at_55.txt`, holds what mqadmin of a version printed to the official broker of a line:

    PYTHONPATH=tests python -m conformance.recorders.record_conversations mqadmin_49_at_55

Lines of an answer are compared in any order: Java prints sets and maps as its hash tables hold them.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.admin import admin_masks as masks
from conformance.admin.admin_masks import in_any_order, words_in_any_order
from conformance.servers.raw_client import RawClient, heartbeat, send_fields
from conformance.servers.server import NAMESRV_ADDR, Server
from conformance.waiting.producer_peer import ProducerPeer

BROKER = "127.0.0.1:10911"
TOPIC, OFFLINE = "looked_at", "offline"
MEMBERS, MAKERS, MEMBER_ID = "members", "makers", "127.0.0.1@member"
ID = "7F00000100002A9F{:016d}"
OF_55 = "exponentialRetryPolicy"
"""Of commands with it: official brokers of 4.9 drop it, ours keeps it."""
UNKNOWN_ID = ID.format(99)
FIRST_AT, COMPRESSED_AT = "<at 0>", "<at compressed>"
"""Ids that name a place in the log; they begin with the broker's port."""
GIVEN_UP = ("usage:", "not exist.", "Unrecognized option")
"""How 4.9's tool answers what only that of 5.5 knows."""
SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 16 << 20,
    "mappedFileSizeConsumeQueue": 6_000_000,
    "mappedFileSizeTimerLog": 8 << 20,
    "maxHashSlotNum": 100_000,
    "maxIndexNum": 400_000,
    "diskMaxUsedSpaceRatio": 95,
    "traceTopicEnable": True,
    "enablePropertyFilter": True,
}
PROVIDER = "org.apache.rocketmq.auth.{}.provider.Local{}MetadataProvider"
USERS_OF_55 = {
    "authenticationMetadataProvider": PROVIDER.format("authentication", "Authentication"),
    "authorizationMetadataProvider": PROVIDER.format("authorization", "Authorization"),
}

LOOKS = f"""
topicRoute -t {TOPIC}
topicRoute -t {TOPIC} -l
topicList
topicList -c
topicClusterList -t {TOPIC}
topicStatus -t {TOPIC}
topicStatus -t {TOPIC} -c DefaultCluster
topicStatus -t %RETRY%{OFFLINE}
allocateMQ -t {TOPIC} -i 10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4
getConsumerConfig -g {MEMBERS}
getConsumerConfig -g {OFFLINE}
getConsumerConfig -g absent
consumerConnection -g {MEMBERS}
consumerConnection -g {MEMBERS} -b {BROKER}
producer -b {BROKER}
producerConnection -g {MAKERS} -t {TOPIC}
consumerStatus -g {MEMBERS} -i {MEMBER_ID}
consumerStatus -g {MEMBERS}
consumerProgress -g {MEMBERS}
consumerProgress -g {MEMBERS} -s true
consumerProgress -g {MEMBERS} -t {TOPIC}
consumerProgress -g {OFFLINE}
consumerProgress -g {OFFLINE} -t {TOPIC}
consumerProgress
consumerprogress -g {OFFLINE}
brokerConsumeStats -b {BROKER}
brokerConsumeStats -b {BROKER} -o true
brokerConsumeStats -b {BROKER} -l 1
queryMsgById -t {TOPIC} -i {FIRST_AT},{ID.format(1)}
queryMsgById -t {TOPIC} -i {COMPRESSED_AT}
queryMsgById -t {TOPIC} -i {ID.format(1)}
queryMsgById -t {TOPIC} -i {ID.format(1)} -f UTF-8
queryMsgById -t {TOPIC} -i {ID.format(1)} -g {MEMBERS} -d {MEMBER_ID}
queryMsgById -i {FIRST_AT}
queryMsgByKey -t {TOPIC} -k keyA
queryMsgByKey -t {TOPIC} -k keyA -m 1
queryMsgByKey -t {TOPIC} -k keyA -b 1 -e 2
queryMsgByKey -t {TOPIC} -k key-batch
queryMsgByKey -t {TOPIC} -k TagA -p T
queryMsgByUniqueKey -t {TOPIC} -i {ID.format(1)}
queryMsgByUniqueKey -t {TOPIC} -i {ID.format(1)} -a
queryMsgByUniqueKey -t {TOPIC} -i {ID.format(20)}
queryMsgByOffset -t {TOPIC} -b broker-a -i 1 -o 0
queryMsgByOffset -t {TOPIC} -b broker-a -i 1 -o 1 -f UTF-8
queryMsgByOffset -t {TOPIC} -b broker-a -i 1 -o 99
queryCq -t {TOPIC} -q 1 -i 0
queryCq -t {TOPIC} -q 1 -i 0 -c 10 -b {BROKER}
queryCq -t {TOPIC} -q 1 -i 1 -c 2 -b {BROKER} -g {MEMBERS}
queryCq -t {TOPIC} -q 1 -i 99 -c 1 -b {BROKER}
printMsg -t {TOPIC}
printMsg -t {TOPIC} -d true
printMsg -t {TOPIC} -d false -s TagA
printMsg -t {TOPIC} -b 0 -e 1600000000000
printMsgByQueue -t {TOPIC} -a broker-a -i 0 -p true -d true -f true
printMsgByQueue -t {TOPIC} -a broker-a -i 0 -f true
clusterList
clusterList -m
clusterList -c absent
brokerStatus -b {BROKER}
brokerStatus -c DefaultCluster
getBrokerConfig -b {BROKER}
getBrokerConfig -c DefaultCluster
getNamesrvConfig
statsAll
statsAll -t {TOPIC}
"""
CHANGES = f"""
updateTopic -c DefaultCluster -t one_made -r 2 -w 2 -o true -a +message.type=FIFO
updateTopic -c DefaultCluster -t one_made -r 2 -w 2 -o true
updateTopic -b {BROKER} -t two_made -r 3 -w 4 -u true -s true
updateTopic -b {BROKER} -t two_made -r 3 -w 4
updateTopicPerm -t two_made -p 4 -b {BROKER}
updateTopicPerm -t two_made -p 4 -b {BROKER}
topicRoute -t two_made
sendMessage -t two_made -p refused -b broker-a -i 1
updateTopicPerm -t two_made -p 6 -c DefaultCluster
updateTopicPerm -t absent -p 6 -b {BROKER}
updateOrderConf -t one_made -m get
updateOrderConf -t one_made -m put -v broker-a:3
updateOrderConf -t one_made -m get
topicRoute -t one_made
updateOrderConf -t one_made -m delete
updateTopic -b {BROKER} -t %RETRY%group_made -r 1 -w 1
updateSubGroup -c DefaultCluster -g group_made
updateSubGroup -b {BROKER} -g other_made -s false -d true -q 2 -r 3 -m true -i 1 -w 2 -a false
updateSubGroup -b {BROKER} -g other_made -s false -d true -q 2 -r 3 -m true -i 1 -w 2 -a false -o true \
-p {{"type":"EXPONENTIAL","exponentialRetryPolicy":{{"initial":5000,"max":7200000,"multiplier":2}}}}
getConsumerConfig -g other_made
cloneGroupOffset -s {OFFLINE} -d group_made -t {TOPIC}
cloneGroupOffset -s {OFFLINE} -d other_made -t {TOPIC} -o false
consumerProgress -g group_made
resetOffsetByTime -g group_made -t {TOPIC} -s 0
resetOffsetByTime -g group_made -t {TOPIC} -s now
resetOffsetByTime -g group_made -t {TOPIC} -s -1
resetOffsetByTime -g group_made -t {TOPIC} -s 2020-01-01#00:00:00:000
resetOffsetByTime -g group_made -t {TOPIC} -s 2020-01-01#00:00:00:000 -f false
resetOffsetByTime -g group_made -t {TOPIC} -s 0 -b {BROKER} -q 1 -o 2
consumerProgress -g group_made
skipAccumulatedMessage -g group_made -t {TOPIC}
skipAccumulatedMessage -g group_made -t {TOPIC} -f true
consumerProgress -g group_made
sendMessage -t two_made -p hello -k key -c TagA -b broker-a -i 1
sendMessage -t two_made -p hello -b broker-a -i 7
queryMsgByKey -t two_made -k key
checkMsgSendRT -t two_made -a 3 -s 16
sendMsgStatus -b broker-a -c 2 -s 10
updateBrokerConfig -b {BROKER} -k flushDelayOffsetInterval -v 9999
updateBrokerConfig -c DefaultCluster -k flushDelayOffsetInterval -v 10000
updateBrokerConfig -b {BROKER} -k noSuchKey -v 71
updateBrokerConfig -b {BROKER} -k brokerConfigPath -v /tmp/other
updateNamesrvConfig -k orderMessageEnable -v true
updateNamesrvConfig -k configStorePath -v /tmp/other
updateKvConfig -s space_made -k a -v b
deleteKvConfig -s space_made -k a
deleteKvConfig -s space_made -k absent
wipeWritePerm -b broker-a
topicRoute -t two_made
addWritePerm -b broker-a
wipeWritePerm -b absent
updateBrokerConfig -b {BROKER} -k brokerPermission -v 4
topicRoute -t two_made
updateBrokerConfig -c DefaultCluster -k brokerPermission -v 6
updateTopicList -b {BROKER} -f FOLDER/in/topics.json
updateSubGroupList -b {BROKER} -f FOLDER/in/groups.json
topicStatus -t listed_topics_1
getConsumerConfig -g listed_groups_2
exportMetadata -b {BROKER} -t -f FOLDER/topics
exportMetadata -b {BROKER} -g -f FOLDER/groups
exportConfigs -c DefaultCluster -f FOLDER
exportMetrics -c DefaultCluster -f FOLDER
FILES
deleteExpiredCommitLog
deleteExpiredCommitLog -c DefaultCluster
cleanExpiredCQ -b {BROKER}
cleanUnusedTopic -c DefaultCluster
deleteSubGroup -b {BROKER} -g other_made -r true
deleteSubGroup -c DefaultCluster -g group_made
consumerProgress
deleteTopic -t two_made -c DefaultCluster
deleteTopic -t absent_made -c DefaultCluster
deleteTopic -t TBW102 -c DefaultCluster
topicRoute -t two_made
consumeMessage -t {TOPIC} -b broker-a -i 0 -o 1 -c 2 -g {OFFLINE}
"""
USERS = f"""
createUser -b {BROKER} -u user_made -p pass1 -t Super
createUser -c DefaultCluster -u other_made -p pass1
updateUser -b {BROKER} -u user_made -p pass2
updateUser -b {BROKER} -u user_made -s disable
getUser -b {BROKER} -u user_made
getUser -c DefaultCluster -u other_made
getUser -b {BROKER} -u absent
listUser -b {BROKER} -f made
createAcl -b {BROKER} -s User:user_made -r Topic:Orders,Group:* -a Pub,Sub -d Allow -i 192.168.1.1
createAcl -c DefaultCluster -s User:other_made -r Topic:Orders -a All -d Deny
updateAcl -c DefaultCluster -s User:other_made -r Topic:Orders -a Pub -d Allow
getAcl -b {BROKER} -s User:user_made
getAcl -c DefaultCluster -s User:other_made
listAcl -b {BROKER} -s user_made
copyUser -f {BROKER} -t {BROKER} -u user_made,absent
copyAcl -f {BROKER} -t {BROKER} -s User:user_made
deleteAcl -b {BROKER} -s User:user_made -r Topic:Orders
getAcl -b {BROKER} -s User:user_made
deleteAcl -c DefaultCluster -s User:other_made
deleteUser -c DefaultCluster -u other_made
deleteUser -b {BROKER} -u user_made
"""
REFUSED = f"""
updateTopic -c absent -t other
updateTopic -b {BROKER} -t not*a*topic
updateTopicPerm -t {TOPIC} -p 6 -b 127.0.0.1:1
topicRoute -t absent
topicStatus -t absent
topicClusterList -t absent
printMsg -t absent
updateOrderConf -t absent -m get
updateOrderConf -t {TOPIC} -m wrong
updateSubGroup -b {BROKER} -g not*a*group
consumerProgress -g absent
consumerConnection -g absent
consumerConnection -g {OFFLINE}
producerConnection -g absent -t {TOPIC}
queryMsgById -t {TOPIC} -i no-id
queryMsgByKey -t {TOPIC} -k absent
queryMsgByKey -t {TOPIC} -k keyA -p X
queryMsgByUniqueKey -t {TOPIC} -i {UNKNOWN_ID}
queryCq -t absent -q 1 -i 0 -b {BROKER}
resetOffsetByTime -g {OFFLINE} -t absent -s 0
resetOffsetByTime -g {OFFLINE} -t {TOPIC} -s soon
cloneGroupOffset -s absent -d other -t absent
cleanExpiredCQ -c NoSuchCluster
sendMessage -t {TOPIC} -p hello -i 1
queryMsgTraceById -i {UNKNOWN_ID}
updateUser -b {BROKER} -u absent -s disable
createAcl -c DefaultCluster -s User:absent -r Topic:Orders -a All -d Deny
getAcl -c DefaultCluster -s User:absent
""".strip().splitlines()
"""mqadmin prints a stack trace, its usage, or a line that reports success."""
TABLE = [*LOOKS.strip().splitlines(), *REFUSED, *CHANGES.strip().splitlines(), *USERS.strip().splitlines()]
"""In this order."""

MASKS: dict[str, Callable[[str], str]] = {
    "allocateMQ": masks.without_numbers,
    "brokerConsumeStats": masks.without_client_measures,
    "brokerStatus": masks.without_measured,
    "checkMsgSendRT": masks.without_numbers,
    "clusterList": masks.without_numbers,
    "consumerProgress": masks.without_tps,
    "consumerprogress": masks.without_tps,
    "consumerStatus": masks.without_numbers,
    "exportMetrics": masks.without_numbers,
    "getBrokerConfig": masks.without_our_settings,
    "getNamesrvConfig": masks.without_our_settings,
    "producer": masks.of_members,
    "queryCq": words_in_any_order,
    "queryMsgByUniqueKey": words_in_any_order,
    "sendMessage": masks.without_numbers,
    "sendMsgStatus": masks.without_numbers,
    "statsAll": masks.without_numbers,
    "topicStatus": masks.without_tps,
    # Those that it counts: an official broker has a topic more.
    "wipeWritePerm": masks.without_numbers,
    "addWritePerm": masks.without_numbers,
}
TOOL = "TOOLS_CONSUMER"
"""A client of the tool may send its first heartbeat, after a second, while it is being shut down, and stay online."""
FILES = "FILES"
"""No command: every name in the files that commands have written."""

STATUS = {
    "properties": {
        "PROP_CLIENT_VERSION": "V5_5_0",
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
        "PROP_CONSUMEORDERLY": "false",
        "PROP_CONSUMER_START_TIMESTAMP": "1600000000000",
        "PROP_NAMESERVER_ADDR": "127.0.0.1:9876;",
        "PROP_THREADPOOL_CORE_SIZE": "20",
    },
    "subscriptionSet": [{"topic": TOPIC, "subString": "*", "subVersion": 1, "expressionType": "TAG"}],
    "statusTable": {TOPIC: {"pullRT": 1.0, "pullTPS": 2.0, "consumeRT": 3.0, "consumeFailedMsgs": 4}},
    "mqTable": {},
}
ANSWERS = {
    307: json.dumps(STATUS).encode(),
    309: b'{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"spentTimeMills":3}',
}
"""What the member answers to requests that the broker relays."""


@contextmanager
def member(server: Server) -> Iterator[None]:
    said = json.loads(heartbeat(MEMBER_ID, MEMBERS, {"topic": TOPIC, "subString": "*", "subVersion": 1}))
    with ProducerPeer(server, MAKERS, MEMBER_ID, *said["consumerDataSet"]) as peer:
        peer.keep_answering(ANSWERS)
        yield


@contextmanager
def with_content(
    server: Server, broker: str = BROKER, name_server: str = NAMESRV_ADDR
) -> Iterator["Content"]:
    with RawClient(server) as client:
        content = Content(client, server.home / "admin", broker, name_server)
        with member(server):
            yield content


def conf(line: str) -> dict[str, object]:
    return SETTINGS if line == "4.9" else {**SETTINGS, **USERS_OF_55}


def recording(tool: str, line: str) -> Path:
    """What mqadmin of a version printed to the official broker of a line."""
    return Path(__file__).with_name(f"mqadmin_{tool}_at_{line}.txt".replace(".", "", 2))


class Content:
    """The broker's content, and the words of commands as they are said to it."""

    def __init__(self, client: RawClient, folder: Path, broker: str, name_server: str) -> None:
        self._hosts = [(BROKER, broker), (NAMESRV_ADDR, name_server), (_packed(BROKER), _packed(broker))]
        self._folder = folder
        (folder / "in").mkdir(parents=True)
        for name, member, more in (
            ("topics", "topicName", {"readQueueNums": 1, "writeQueueNums": 1}),
            ("groups", "groupName", {}),
        ):
            listed = [{member: f"listed_{name}_{number}", **more} for number in (1, 2)]
            (folder / "in" / f"{name}.json").write_text(json.dumps(listed))
        self._compressed = _made(client)

    def words(self, line: str) -> list[str]:
        (known_broker, broker), (known_name_server, name_server), (_, packed) = self._hosts
        for name, place in ((FIRST_AT, 0), (COMPRESSED_AT, self._compressed)):
            line = line.replace(name, f"{packed}{place:016X}")
        line = line.replace(known_broker, broker).replace(known_name_server, name_server)
        return line.replace("FOLDER", str(self._folder)).split()

    def shown(self, line: str, text: str) -> str:
        """What counts of an answer."""
        for known, real in self._hosts:
            text = text.replace(real, known)
        failed = "Exception:" in text or "EXIT " in text
        mask = masks.without_numbers if failed else MASKS.get(line.split()[0], str)
        text = in_any_order(mask(masks.settled(text.replace(str(self._folder), "FOLDER"))))
        return f"$ {line}\n" + "".join(
            f"    {row.rstrip()}\n" for row in text.splitlines() if row and TOOL not in row
        )

    def answers(self, shell: Callable[..., str], lines: Iterable[str]) -> list[str]:
        return [
            self.shown(line, self._exported() if line == FILES else shell(*self.words(line)))
            for line in lines
        ]

    def _exported(self) -> str:
        paths = (path for path in sorted(self._folder.rglob("*.json")) if path.parent.name != "in")
        return "\n".join(
            f"{path.name} {name}" for path in paths for name in sorted(_names(json.loads(path.read_text())))
        )


def _made(client: RawClient) -> int:
    """Topics, groups, messages and offsets; returns the place of the compressed message."""
    client.update_topic(TOPIC, 4)
    client.update_topic(f"%RETRY%{OFFLINE}", 1)
    for group in (OFFLINE, MEMBERS):
        client.update_group(group)
    born_ms = 1_600_000_000_000
    for number in range(8):
        properties = {"UNIQ_KEY": ID.format(number), "WAIT": "true"}
        if number % 2:
            properties |= {"TAGS": "TagA", "KEYS": f"keyA key{number}", "colour": "red"}
        client.send(TOPIC, number % 4, b"body %d" % number, properties, born_ms=born_ms + number)
    client.send_batch(
        TOPIC, 2, [(b"batched", {"UNIQ_KEY": ID.format(20), "KEYS": "key-batch"})], born_ms=born_ms
    )
    fields = send_fields("p", TOPIC, 3, {"UNIQ_KEY": ID.format(21)}, sysFlag=1, bornTimestamp=born_ms)
    sent = client.call_unless_busy(10, zlib.compress(b"compressed" * 500), **fields)
    for queue_id, count in enumerate((2, 2, 3, 3)):
        client.settle(TOPIC, queue_id, count)
        for group, offset in ((OFFLINE, 1), (MEMBERS, count)):
            assert client.commit(group, TOPIC, queue_id, offset).code == 0
    return int(sent.fields["msgId"][16:], 16)


def _packed(address: str) -> str:
    """127.0.0.1 and the port, as message ids begin."""
    return f"7F000001{int(address.rpartition(':')[2]):08X}"


def _names(value: object, path: str = "") -> set[str]:
    if not isinstance(value, dict):
        return {path}
    return {path}.union(*(_names(member, f"{path}.{name}") for name, member in value.items()))
