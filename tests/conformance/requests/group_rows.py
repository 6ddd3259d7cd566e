"""What groups may read, frame by frame, and how clients of other languages request it: rows for a transcript.

A row is one request on one connection. Most headers are those of a Java client; the last rows leave out optional
fields, give the language as a number, and are two-way where Java clients send one-way.
"""

import json
from collections.abc import Iterator
from typing import Any

from conformance.requests.transcripts import Row, remark_of
from conformance.servers.raw_client import topic_fields
from conformance.servers.remoting import Reply

TOPIC = "rules_topic"
PULL = {"topic": TOPIC, "queueId": 0, "queueOffset": 0, "maxMsgNums": 1}
PULL |= {"commitOffset": 0, "suspendTimeoutMillis": 0, "expressionType": "TAG"}
OWN_SUBSCRIPTION, GROUPS_SUBSCRIPTION = 4, 0


BODIES_SHOWN = (38, 352, 353)
FIELDS_SHOWN = ("forbiddenType", "nextBeginOffset")


def shown(row: Row, reply: Reply) -> str:
    if row.code == 11 and reply.code in (0, 19):
        return f"may read {reply.fields.get('topicSysFlag')}"
    fields = {name: text for name, text in reply.fields.items() if name in FIELDS_SHOWN}
    body = reply.body.decode() if row.code in BODIES_SHOWN else ""
    return f"{remark_of(reply)!r} {fields} {body}"


def group(name: str, **settings: object) -> Row:
    return Row(None, 200, {}, json.dumps({"groupName": name, **settings}).encode())


def pull(name: str, *, own: bool = True, version: int = 0, **changes: object) -> Row:
    fields = {"consumerGroup": name, **PULL, "subVersion": version}
    fields |= {"subscription": "*", "sysFlag": OWN_SUBSCRIPTION} if own else {"sysFlag": GROUPS_SUBSCRIPTION}
    return Row(None, 11, {**fields, **changes})


def online(name: str, *, model: str = "CLUSTERING", version: int = 5, topic: str = TOPIC, **more: Any) -> Row:
    subscription = {"topic": topic, "subString": "*", "subVersion": version, "tagsSet": [], "codeSet": []}
    consumer: dict[str, Any] = {"groupName": name, "consumeType": "CONSUME_PASSIVELY", "messageModel": model}
    consumer |= {"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET"}
    consumer |= {"unitMode": False, "subscriptionDataSet": [subscription], **more}
    body = {"clientID": "rules", "producerDataSet": [], "consumerDataSet": [consumer]}
    return Row(None, 34, {}, json.dumps(body).encode())


def topic(name: str, perm: int = 6, queues: int = 2) -> Row:
    return Row(None, 17, topic_fields(name, queues, perm))


SEND: dict[str, object] = {"producerGroup": "p", "topic": TOPIC, "defaultTopic": "TBW102"}
SEND |= {"defaultTopicQueueNums": 4, "queueId": 0, "sysFlag": 0, "bornTimestamp": 1, "flag": 0}
BACK = {"offset": 0, "delayLevel": 3, "originMsgId": "x", "originTopic": TOPIC, "unitMode": False}


def rows() -> Iterator[Row]:
    yield from _group_rules()
    yield from _permissions()
    yield from _send_backs()
    yield from _broadcasting()
    yield from _dialects()


def _group_rules() -> Iterator[Row]:
    yield topic(TOPIC)
    yield Row(None, 10, SEND, b"one")
    yield group("off_group", consumeEnable=False)
    yield pull("off_group")
    yield online("off_group")
    yield pull("off_group", own=False)
    yield group("clustered", consumeBroadcastEnable=False)
    yield online("clustered", model="BROADCASTING")
    yield pull("clustered", own=False, version=5)
    yield pull("clustered")
    yield online("clustered")
    yield pull("clustered", own=False, version=5)
    yield pull("nobody_online", own=False)
    yield online("versions", version=5)
    yield pull("versions", own=False, version=5)
    yield pull("versions", own=False, version=4)
    yield pull("versions", own=False, version=6)
    yield online("versions", version=7)
    yield pull("versions", own=False, version=6)
    yield online("versions", version=6)
    yield pull("versions", own=False, version=7)
    yield topic("rules_other")
    yield pull("versions", own=False, topic="rules_other", version=5)
    yield pull("versions", topic="absent")
    yield pull("versions", queueId=9)
    yield pull("versions", queueId=-1)
    yield pull("versions", subscription="a || | b")
    yield pull("versions", subscription="")
    yield Row(None, 353, {"group": "versions", "topic": TOPIC, "readable": False})
    yield pull("versions", own=False, version=7)
    yield pull("versions")
    yield Row(None, 353, {"group": "versions", "topic": TOPIC, "readable": True})
    yield pull("versions", own=False, version=7)
    yield group("quiet", notifyConsumerIdsChangedEnable=False, retryQueueNums=3, retryMaxTimes=2)
    yield online("quiet")
    yield Row(None, 38, {"consumerGroup": "quiet"})
    yield Row(None, 38, {"consumerGroup": "absent"})
    yield group("bad*name")
    yield group("")
    yield Row(None, 352, {"group": "quiet"})
    policy = {
        "type": "EXPONENTIAL",
        "exponentialRetryPolicy": {"initial": 1000, "max": 9000, "multiplier": 3},
    }
    yield group("with_policy", groupRetryPolicy=policy, consumeMessageOrderly=True)
    yield Row(None, 352, {"group": "with_policy"})


def _permissions() -> Iterator[Row]:
    for perm in (2, 4):
        name = f"rules_perm_{perm}"
        yield topic(name)
        yield Row(None, 10, {**SEND, "topic": name}, b"one")
        yield topic(name, perm)
        yield Row(None, 10, {**SEND, "topic": name}, b"two")
        yield pull("versions", topic=name)
    for permission in (2, 4, 6):
        yield Row(None, 25, {}, f"brokerPermission={permission}\n".encode())
        yield Row(None, 10, SEND, b"again")
        yield pull("versions", own=True)
        yield Row(None, 36, {**BACK, "group": "quiet"})
    yield Row(None, 25, {}, b"autoCreateSubscriptionGroup=false\n")
    yield pull("never_made")
    yield Row(None, 36, {**BACK, "group": "never_made"})
    yield Row(None, 14, {"consumerGroup": "never_made", "topic": TOPIC, "queueId": 0})
    yield Row(None, 15, {"consumerGroup": "never_made", "topic": TOPIC, "queueId": 0, "commitOffset": 1})
    yield Row(None, 25, {}, b"autoCreateSubscriptionGroup=true\n")


def _send_backs() -> Iterator[Row]:
    yield Row(None, 36, {**BACK, "group": "quiet"})
    yield Row(None, 36, {**BACK, "group": "quiet", "delayLevel": -1})
    yield Row(None, 36, {**BACK, "group": "quiet", "offset": 1 << 40})
    yield group("no_retry", retryQueueNums=0)
    yield Row(None, 36, {**BACK, "group": "no_retry"})
    yield Row(None, 36, {**BACK, "group": "off_group"})
    yield Row(None, 36, {**BACK, "group": "quiet", "maxReconsumeTimes": 0})
    yield Row(None, 202, {"topic": "%DLQ%quiet"})
    yield Row(None, 202, {"topic": "%RETRY%quiet"})


def _broadcasting() -> Iterator[Row]:
    """Consumers behind a proxy and without one; 4.9 does not know these fields."""
    name = "rules_broadcast"
    yield topic(name)
    for at in range(3):
        yield Row(None, 10, {**SEND, "topic": name}, f"broadcast {at}".encode())
    yield Row(None, 32, {"topic": name, "queueId": 0})

    def through_proxy(client: str, offset: int, queue_id: int = 0) -> Row:
        proxy: dict[str, Any] = {"requestSource": 1, "proxyFrowardClientId": client}
        return pull("broadcasters", topic=name, queueId=queue_id, queueOffset=offset, **proxy)

    yield through_proxy("one", -1)
    yield through_proxy("one", 0)
    yield through_proxy("one", 2)
    yield through_proxy("one", 1)
    yield through_proxy("one", -1)
    yield through_proxy("two", -1)
    yield through_proxy("two", 3)
    yield through_proxy("one", -1, queue_id=1)
    yield online("broadcasters", model="BROADCASTING", topic=name)
    yield pull("broadcasters", topic=name, queueOffset=1)
    yield pull("broadcasters", topic=name, queueOffset=-1)
    yield through_proxy("rules", 2)
    yield through_proxy("rules", 2)
    yield pull("broadcasters", topic=name, queueOffset=1)


def _dialects() -> Iterator[Row]:
    """Optional fields left out; two-way requests that Java sends one-way."""
    yield Row(None, 10, SEND, b"no reconsumeTimes, unitMode, batch or properties")
    yield Row(None, 310, {"a": "p", "b": TOPIC, "c": "TBW102", "d": 4, "e": 1, "f": 0, "g": 1, "h": 0}, b"v2")
    yield Row(None, 15, {"consumerGroup": "quiet", "topic": TOPIC, "queueId": 0, "commitOffset": 1})
    yield Row(None, 14, {"consumerGroup": "quiet", "topic": TOPIC, "queueId": 0})
    yield Row(None, 35, {"clientID": "rules", "consumerGroup": "quiet"})
    yield Row(None, 35, {"clientID": "rules", "producerGroup": "p"})
    yield Row(None, 35, {"clientID": "rules"})
    yield Row(None, 35, {})
    yield Row(None, 34, {}, b'{"clientID":"rules"}')
    yield online("ordinals", consumeType=1, messageModel=1, consumeFromWhere=0)
    yield pull("ordinals", own=False, version=5)
    yield Row(None, 29, {"topic": TOPIC, "queueId": 0, "timestamp": 0})
    yield Row(None, 30, {"topic": TOPIC, "queueId": 0})
    minimal = {name: value for name, value in PULL.items() if name not in ("commitOffset", "expressionType")}
    yield Row(
        None, 11, {**minimal, "consumerGroup": "quiet", "sysFlag": 4, "subscription": "*", "subVersion": 0}
    )
