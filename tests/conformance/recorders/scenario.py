"""The requests of a recording: the mqadmin commands around Traffic.java, and the broker settings they need."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from conformance.official.programs import Programs, compile_java
from conformance.servers.processes import ProgramFailed

BROKER = "127.0.0.1:10911"
CLUSTER = "DefaultCluster"
TOPIC = "golden_topic"
TRAFFIC = Path(__file__).with_name("Traffic.java")

BROKER_CONF: dict[str, object] = {
    "transactionCheckInterval": 2000,
    "transactionTimeOut": 1000,
    "transactionTimeout": 1000,  # 4.9's setter is named differently; each reads the key it knows
    "registerNameServerPeriod": 10000,
    "forceRegister": False,  # asks the name server first (322) and registers only what changed
    "recallMessageEnable": True,
    "enableSingleTopicRegister": True,
}
# With compatibleWithOldNameSrv a 5.5 slave asks 105, 322 and 906, without it 901 and 904: one recording shows each.
SLAVE_CONF: dict[str, object] = {
    "brokerId": 1,
    "brokerRole": "SLAVE",
    "listenPort": 30911,
    "haListenPort": 30912,
    "registerNameServerPeriod": 10000,
    "forceRegister": False,
    "enableSlaveActingMaster": True,
}


def before() -> Iterator[tuple[str, ...]]:
    """Commands that create what the traffic needs."""
    for topic in (TOPIC, "golden_rpc", "golden_other"):
        yield ("updateTopic", "-c", CLUSTER, "-t", topic, "-r", "4", "-w", "4")
    yield ("updateTopic", "-b", BROKER, "-t", "golden_ordered_topic", "-r", "4", "-w", "4", "-o", "true")
    yield ("updateSubGroup", "-b", BROKER, "-g", "golden_push")
    yield ("updateSubGroup", "-c", CLUSTER, "-g", "golden_spare", "-r", "2", "-q", "2")
    yield ("updateKvConfig", "-s", "GOLDEN", "-k", "key", "-v", "value")
    yield ("setConsumeMode", "-c", CLUSTER, "-t", TOPIC, "-g", "golden_pop", "-m", "POP", "-q", "8")


def during(
    version: str, client: str, message_id: str, unique_key: str, files: Path
) -> Iterator[tuple[str, ...]]:
    """Commands for the time when the consumers of the traffic are online."""
    at_broker = ("-b", BROKER)
    group = ("-g", "golden_push")
    topic = ("-t", TOPIC)
    of_topic = topic if version == "5.5" else ()  # 4.9 accepts only the message id and refuses -t
    yield ("clusterList",)
    yield ("clusterList", "-m")
    yield ("topicList",)
    yield ("topicList", "-c")
    yield ("topicRoute", *topic)
    yield ("topicRoute", "-t", "golden_absent")
    yield ("topicStatus", *topic)
    yield ("topicClusterList", *topic)
    yield ("brokerStatus", *at_broker)
    yield ("brokerConsumeStats", *at_broker)
    yield ("getBrokerConfig", *at_broker)
    yield ("updateBrokerConfig", *at_broker, "-k", "deleteWhen", "-v", "05")
    yield ("updateBrokerConfig", *at_broker, "-k", "brokerConfigPath", "-v", "elsewhere")
    yield ("consumerProgress", *group)
    yield ("consumerProgress",)
    yield ("consumerProgress", "-g", "golden_absent")
    yield ("consumerConnection", *group)
    yield ("consumerConnection", "-g", "golden_absent")
    yield ("consumerStatus", *group)
    yield ("consumerStatus", *group, "-i", client, "-s")
    yield ("producerConnection", "-g", "golden_producer", *topic)
    yield ("producer", *at_broker)
    yield ("statsAll", *topic)
    yield ("getConsumerConfig", *group)
    yield ("queryMsgById", "-i", message_id, *of_topic)
    yield ("queryMsgById", "-i", message_id, *group, "-d", client, *of_topic)
    yield ("queryMsgByKey", *topic, "-k", "key0")
    yield ("queryMsgByUniqueKey", *topic, "-i", unique_key)
    yield ("queryMsgByOffset", *topic, "-b", "broker-a", "-i", "0", "-o", "0")
    yield ("queryCq", *topic, "-q", "0", "-i", "0", "-c", "2", *at_broker)
    yield ("sendMessage", *topic, "-p", "text", "-k", "admin", "-c", "TagA")
    yield ("resetOffsetByTime", *group, *topic, "-s", "0")
    yield ("resetOffsetByTime", "-g", "golden_absent", *topic, "-s", "now")
    yield ("skipAccumulatedMessage", *group, *topic)
    yield ("cloneGroupOffset", "-s", "golden_push", "-d", "golden_clone", *topic, "-o", "false")
    yield ("cloneGroupOffset", "-s", "golden_push", "-d", "golden_spare", *topic, "-o", "true")
    yield ("updateTopicPerm", *at_broker, "-t", "golden_other", "-p", "4")
    yield ("sendMessage", "-t", "golden_other", "-p", "text")
    yield ("updateTopic", *at_broker, "-t", "not a topic name!")
    yield ("getNamesrvConfig",)
    yield ("updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true")
    yield ("topicRoute", "-t", "golden_ordered_topic")
    yield ("updateNamesrvConfig", "-k", "kvConfigPath", "-v", "elsewhere")
    yield ("updateOrderConf", "-t", "golden_ordered_topic", "-m", "put", "-v", "broker-a:4")
    yield ("updateOrderConf", "-t", "golden_ordered_topic", "-m", "get")
    yield ("updateOrderConf", "-t", "golden_ordered_topic", "-m", "delete")
    yield ("wipeWritePerm", "-b", "broker-a")
    yield ("addWritePerm", "-b", "broker-a")
    yield ("cleanUnusedTopic", *at_broker)
    yield ("cleanExpiredCQ", *at_broker)
    yield ("deleteExpiredCommitLog", *at_broker)
    yield from only_in_five(files)
    # The reset that is pushed to the clients (220): 5.5 does it only with this option, 4.9 has no other.
    yield ("updateBrokerConfig", *at_broker, "-k", "useServerSideResetOffset", "-v", "false")
    yield ("resetOffsetByTime", *group, *topic, "-s", "0")


def only_in_five(files: Path) -> Iterator[tuple[str, ...]]:
    """Commands that mqadmin 4.9 does not have (it prints that and sends nothing)."""
    topics, groups = files / "topics.json", files / "groups.json"
    topics.write_text(json.dumps([{"topicName": "golden_listed", "readQueueNums": 2, "writeQueueNums": 2}]))
    groups.write_text(json.dumps([{"groupName": "golden_listed", "retryQueueNums": 1}]))
    yield ("updateTopicList", "-b", BROKER, "-f", str(topics))
    yield ("updateSubGroupList", "-b", BROKER, "-f", str(groups))
    yield ("haStatus", "-b", BROKER)
    yield ("getColdDataFlowCtrInfo", "-b", BROKER)


def after() -> Iterator[tuple[str, ...]]:
    """Commands for the time after the consumers have ended."""
    yield ("resetOffsetByTime", "-g", "golden_push", "-t", TOPIC, "-s", "0")
    yield ("cloneGroupOffset", "-s", "golden_ordered", "-d", "golden_clone", "-t", TOPIC, "-o", "true")
    yield ("consumeMessage", "-t", TOPIC, "-b", "broker-a", "-i", "0", "-o", "0", "-c", "1")
    yield ("deleteSubGroup", "-b", BROKER, "-g", "golden_spare")
    yield ("deleteSubGroup", "-b", BROKER, "-g", "golden_clone", "-r", "true")
    yield ("deleteTopic", "-c", CLUSTER, "-t", "golden_other")
    yield ("deleteTopic", "-c", CLUSTER, "-t", "TBW102")
    yield ("deleteKvConfig", "-s", "GOLDEN", "-k", "key")


def play(programs: Programs, version: str, java_opts: tuple[str, ...], log: Path) -> None:
    """One client version and one header type, from first command to last; what was printed goes to log."""
    with log.open("w", encoding="utf-8") as output_file:

        def ask(commands: Iterable[tuple[str, ...]]) -> None:
            for command in commands:
                output_file.write(f"\n$ mqadmin {' '.join(command)}\n")
                try:
                    output_file.write(programs.admin_shell(version, java_opts)(*command))
                except ProgramFailed as failure:  # some commands end their JVM; the next one gets a new shell
                    output_file.write(str(failure))

        ask(before())
        traffic = programs.start_java(compile_java(version, TRAFFIC), java_opts=java_opts)
        ready = traffic.wait_for(r"^READY client=(\S+) msgId=(\S+) uniq=(\S+)$", timeout=120)
        client, message_id, unique_key = ready.groups()
        ask(during(version, client, message_id, unique_key, log.parent))
        traffic.say("end")
        traffic.finish(60)
        output_file.write(traffic.output)
        ask(after())
        programs.admin_shell(version, java_opts).close()
    # The same again with the long forms of the send requests (10, 324 instead of 310, 325).
    long_forms = (*java_opts, "-Dorg.apache.rocketmq.client.sendSmartMsg=false")
    again = programs.start_java(compile_java(version, TRAFFIC), java_opts=long_forms)
    again.wait_for("^READY", timeout=120)
    again.say("end")
    again.finish(60)
