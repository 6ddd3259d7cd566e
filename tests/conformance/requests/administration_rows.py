"""What an administrator changes and a client announces: rows for a transcript.

Topics, groups, heartbeats and settings, each with what the broker says of it afterwards; pulls, commits and resets are
in `reading_rows.py`. The whole tables (21, 201) are compared for the 5.x line alone: ours has more fields than those
of 4.9.
"""

import json
import re
from collections.abc import Iterator

from conformance.requests import query_answers, reading_rows
from conformance.requests.query_rows import ask
from conformance.requests.reading_rows import GROUP, TOPIC, commit, new_topic, offset_of, read
from conformance.requests.transcripts import Row
from conformance.servers.raw_client import send_fields
from conformance.servers.remoting import Reply

SETTINGS_SHOWN = (
    "autoCreateTopicEnable",
    "brokerPermission",
    "flushDiskType",
    "longPollingEnable",
    "maxMessageSize",
    "sendMessageThreadPoolNums",
    "sendThreadPoolQueueCapacity",
    "traceOn",
)
SETTINGS = 26
SEND = 10
OFF: dict[str, object] = {"enablePropertyFilter": False, "traceTopicEnable": False}
FELL_OVER = re.compile(r"\b(java|com\.alibaba)\.\S+(Exception|Error)\b|Cannot invoke ")


def shown(row: Row, reply: Reply) -> str:
    if row.code == SETTINGS:
        lines = reply.body.decode().splitlines()
        kept = sorted(line for line in lines if line.partition("=")[0] in SETTINGS_SHOWN)
        reply = Reply(reply.code, reply.remark, reply.fields, "\n".join(kept).encode())
    if row.code == SEND:  # its message id has the port
        reply = Reply(reply.code, reply.remark)
    return query_answers.shown(row, reply)


def rows() -> Iterator[Row]:
    yield from reading_rows.rows()
    yield from _topics()
    yield from _many_topics()
    yield from _deleted_topics()
    yield from _groups()
    yield from _deleted_groups()
    yield from _heartbeats()
    yield from _short_heartbeats()
    yield from _locks_and_checks()
    yield from _settings()


def rows_of_5() -> Iterator[Row]:
    yield from rows()
    yield from _without_body()
    yield from _kept_settings()
    yield from _tables()


def _topics() -> Iterator[Row]:
    """17 and 351."""
    yield new_topic("managed_made", order=True, topicSysFlag=1)
    yield ask(351, topic="managed_made")
    yield ask(202, topic="managed_made")
    yield new_topic("managed_multi", topicFilterType="MULTI_TAG")
    yield ask(351, topic="managed_multi")
    for name in ("", "  ", "a b", "a" * 127, "a" * 128, "TBW102", "rmq_sys_x", "DefaultCluster", "broker-a"):
        yield new_topic(name)
    yield new_topic("managed_filter", topicFilterType="X")
    for attributes in ("+nope=1", "nope", "+nope", "+message.type=MIXED", "-message.type", ""):
        yield new_topic("managed_attributes", attributes=attributes)
        yield ask(351, topic="managed_attributes")
    for attributes in ("+message.type=FIFO", "-message.type", "-message.type", "+message.type=DELAY"):
        yield new_topic("managed_fifo", attributes=attributes)
        yield ask(351, topic="managed_fifo")


def _topic_list(*configs: str | dict[str, object]) -> Row:
    plain = {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
    whole = [{**plain, **({"topicName": one} if isinstance(one, str) else one)} for one in configs]
    return Row(None, 18, {}, json.dumps({"topicConfigList": whole}).encode())


def _many_topics() -> Iterator[Row]:
    """18: the whole list or nothing."""
    fifo: dict[str, object] = {"topicName": "listed_fifo", "attributes": {"+message.type": "FIFO"}}
    yield _topic_list("listed_one", fifo)
    yield ask(351, topic="listed_fifo")
    yield _topic_list("listed_one", "listed_two")
    yield ask(351, topic="listed_two")
    yield _topic_list("listed_three", "listed_one")
    yield ask(351, topic="listed_three")
    yield _topic_list("listed_four", "a b")
    yield ask(351, topic="listed_four")
    yield _topic_list()


def _deleted_topics() -> Iterator[Row]:
    """215: what goes with a topic."""
    for name in ("deleted", "%RETRY%managed_group_deleted", "%RETRY%managed_kept"):
        yield new_topic(name)
    yield ask(10, b"x", **send_fields("p", "deleted", bornTimestamp=1))
    yield commit(1, topic="deleted")
    yield ask(215, topic="deleted")
    for name in ("deleted", "%RETRY%managed_group_deleted", "%RETRY%managed_kept"):
        yield ask(202, topic=name)
    yield offset_of(topic="deleted")
    yield ask(30, topic="deleted", queueId=0)
    yield ask(215, topic="deleted")
    for name in ("", " ", "TBW102", "a b"):
        yield ask(215, topic=name)


def _group(**settings: object) -> Row:
    return Row(None, 200, {}, json.dumps(settings).encode())


def _group_list(*groups: dict[str, object]) -> Row:
    return Row(None, 225, {}, json.dumps({"groupConfigList": list(groups)}).encode())


def _groups() -> Iterator[Row]:
    """200, 225 and 352."""
    yield _group(groupName="made", consumeEnable=True, retryQueueNums=2)
    yield ask(352, group="made")
    for name in (" ", None, "a b", "a" * 120, "a" * 121):
        yield _group(groupName=name)
        yield _group_list({"groupName": "before_a_bad_name"}, {"groupName": name})
    yield _group()
    attributes = {"+x": "y"}
    yield _group(groupName="with_attribute", attributes=attributes)
    yield _group_list({"groupName": "before_one"}, {"groupName": "after_one", "attributes": attributes})
    yield ask(25, b"autoCreateSubscriptionGroup=false\n")
    for name in ("before_a_bad_name", "with_attribute", "before_one", "after_one", "never_made"):
        yield ask(352, group=name)
    yield ask(25, b"autoCreateSubscriptionGroup=true\n")
    yield ask(352, group="made_by_asking")


def _deleted_groups() -> Iterator[Row]:
    """207: its two flags, and 5.x creates a group anew where its offsets stay."""
    for flags in ({}, {"cleanOffset": True}, {"removeOffset": True}):
        yield _group(groupName="removed", retryMaxTimes=5)
        yield commit(5, "removed")
        yield ask(207, groupName="removed", **flags)
        yield offset_of("removed")
        yield ask(352, group="removed")
    yield ask(25, b"autoCreateSubscriptionGroup=false\n")
    yield _group(groupName="removed", retryMaxTimes=5)
    yield ask(207, groupName="removed")
    yield ask(352, group="removed")
    yield ask(25, b"autoCreateSubscriptionGroup=true\n")
    yield ask(207, groupName="not_there")
    yield ask(207, groupName="")


def _joined(group: str, *topics: str, **members: object) -> dict[str, object]:
    said = {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING", "unitMode": False}
    said["consumeFromWhere"] = "CONSUME_FROM_LAST_OFFSET"
    wanted = {"subString": "A", "subVersion": 2, "tagsSet": ["A"], "codeSet": [65]}
    subscriptions = [{"topic": topic, **wanted} for topic in topics]
    return {"groupName": group, **said, "subscriptionDataSet": subscriptions, **members}


def _beat(*consumers: dict[str, object], **members: object) -> Row:
    body = {"clientID": "rules", "producerDataSet": [{"groupName": "p"}], "consumerDataSet": list(consumers)}
    return Row(None, 34, {}, json.dumps({**body, **members}).encode())


def _heartbeats() -> Iterator[Row]:
    """34, 35, 38, 203, 204: which groups and retry topics it makes."""
    yield _group(groupName="beaten", retryQueueNums=3)
    yield new_topic("managed_ordered", order=True)
    yield _beat(_joined("beaten", TOPIC, "%RETRY%beaten"), _joined("beaten_new", TOPIC))
    for group in ("beaten", "beaten_new"):
        yield ask(203, consumerGroup=group)
        yield ask(38, consumerGroup=group)
        yield ask(202, topic="%RETRY%" + group)
    yield ask(204, producerGroup="p")
    yield _beat(_joined("ordered", "managed_ordered"), _joined("of_a_unit", TOPIC, unitMode=True))
    yield read(sysFlag=0, subVersion=2)
    yield _beat(_joined(GROUP, TOPIC))
    yield read(sysFlag=0, subVersion=2)
    yield _beat(_joined("a b", TOPIC))
    yield ask(203, consumerGroup="a b")
    yield ask(25, b"autoCreateSubscriptionGroup=false\n")
    yield _beat(_joined("beaten_strict", TOPIC))
    yield ask(203, consumerGroup="beaten_strict")
    yield ask(202, topic="%RETRY%beaten_strict")
    yield ask(25, b"autoCreateSubscriptionGroup=true\n")
    yield ask(25, b"rejectPullConsumerEnable=true\n")
    yield _beat(_joined("pulling", TOPIC, consumeType="CONSUME_ACTIVELY"), _joined("pushed", TOPIC))
    yield ask(203, consumerGroup="pulling")
    yield ask(203, consumerGroup="pushed")
    yield ask(25, b"rejectPullConsumerEnable=false\n")
    yield ask(35, clientID="rules", producerGroup="p", consumerGroup="beaten")
    yield ask(203, consumerGroup="beaten")
    yield ask(204, producerGroup="p")
    yield ask(35, clientID="rules", consumerGroup="not_there")
    for body in (
        b"{",
        b'{"consumerDataSet":[{}]}',
        b'{"consumerDataSet":[{"groupName":"unread","subscriptionDataSet":[{}]}]}',
    ):
        yield Row(None, 34, {}, body)


def _short_heartbeats() -> Iterator[Row]:
    """34, second form: without subscriptions where the broker has them."""
    short: dict[str, object] = {"heartbeatFingerprint": 7, "withoutSub": True}
    yield _beat(_joined("short", TOPIC), heartbeatFingerprint=7)
    yield _beat(_joined("short"), **short)
    yield ask(203, consumerGroup="short")
    yield _beat(_joined("short"), heartbeatFingerprint=8, withoutSub=True)
    yield ask(203, consumerGroup="short")


def _locks_and_checks() -> Iterator[Row]:
    """41, 42 and 46."""

    def queues(client_id: str, *queue_ids: int) -> bytes:
        locked = [{"topic": TOPIC, "brokerName": "broker-a", "queueId": queue_id} for queue_id in queue_ids]
        return json.dumps({"clientId": client_id, "consumerGroup": GROUP, "mqSet": locked}).encode()

    for client_id, code in (("a", 41), ("b", 41), ("b", 42), ("b", 41), ("a", 41), ("a", 42), ("b", 41)):
        yield ask(code, queues(client_id, 0))
    yield ask(41, queues("a", 0, 1, 9))
    for kind in ("TAG", None, "", "SQL92"):
        wanted = {"topic": TOPIC, "subString": "a > 1", "expressionType": kind}
        check = {"clientId": "c", "group": GROUP, "subscriptionData": wanted}
        yield ask(46, json.dumps(check).encode())


def _settings() -> Iterator[Row]:
    """25 and 26: keys and values that are skipped, and those that refuse the whole change."""
    yield ask(26)
    for text in (
        "longPollingEnable=false\ntraceOn=false\n",
        "",
        "nosuchkey=1",
        "maxMessageSize=abc",
        "flushDiskType=foo",
        "x",
        "longPollingEnable=true\n# no change\n\nmaxMessageSize = 4000000",
        "sendMessageThreadPoolNums=8\nsendThreadPoolQueueCapacity=many\n",
        "traceOn=\\u00zz",
        "brokerPermission=4\n",
        "brokerPermission=6\n",
    ):
        yield ask(25, text.encode())
        yield ask(26)


def _without_body() -> Iterator[Row]:
    """4.9.7 closes the connection over some of these, but not each time."""
    for code in (18, 200, 225, 34, 41, 42, 46):
        yield ask(code)


def _kept_settings() -> Iterator[Row]:
    """25: keys that no request may change; 4.9 has no such list."""
    for key in ("configBlackList", "brokerConfigPath", "rocketmqHome"):
        yield ask(25, f"autoCreateTopicEnable=false\n{key}=nowhere\n".encode())
        yield ask(26)


def _tables() -> Iterator[Row]:
    """21 and 201: the tables whole, and the first page for callers with another edition."""
    yield ask(21)
    yield ask(201)
    for version in ("", "{}"):
        yield ask(21, topicSeq=3, dataVersion=version, maxTopicNum=3)
        yield ask(201, groupSeq=2, dataVersion=version, maxGroupNum=2)
    yield ask(21, topicSeq=0, maxTopicNum=1)
    yield ask(201, groupSeq=0, maxGroupNum=1)
