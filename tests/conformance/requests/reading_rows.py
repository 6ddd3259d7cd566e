"""What a group reads, commits and is moved to: the first rows of the conversation of `administration_rows.py`."""

import json
from collections.abc import Iterator
from typing import Any

from conformance.requests.group_rows import OWN_SUBSCRIPTION, online, pull
from conformance.requests.query_rows import ask
from conformance.requests.transcripts import Row
from conformance.servers.raw_client import RawClient

TOPIC, GROUP = "managed_topic", "managed_group"
MESSAGES = 3
"""In queue 0 of TOPIC, tagged A, B, A; queue 1 is empty."""
COMMIT = OWN_SUBSCRIPTION | 1


def prepared(client: RawClient) -> None:
    client.update_topic(TOPIC, 2)
    client.update_group(GROUP)
    for number, tag in enumerate("ABA"):
        client.send(
            TOPIC,
            0,
            b"managed",
            {"UNIQ_KEY": f"{number:032}", "KEYS": "key", "TAGS": tag},
            born_ms=1_600_000_000_000,
        )
    client.settle(TOPIC, 0, MESSAGES)


def rows() -> Iterator[Row]:
    yield from _index()
    yield from _pulls()
    yield from _commits()
    yield from _resets()
    yield from _clones()


def new_topic(name: str, **changes: object) -> Row:
    fields = {"topic": name, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 2, "perm": 6}
    return Row(None, 17, {**fields, "topicFilterType": "SINGLE_TAG", **changes})


def _index() -> Iterator[Row]:
    """12: the types of index, and how many messages are wanted."""
    asked = {"topic": TOPIC, "beginTimestamp": 0, "endTimestamp": 1 << 60}
    for index_type in ("T", "K", "Z", ""):
        for key in ("A", "key"):
            yield ask(12, key=key, maxNum=32, indexType=index_type, **asked)
    yield ask(12, key="A", maxNum=32, **asked)
    yield ask(12, key="key", maxNum=32, indexType="Z", lastKey="zz", **asked)
    for count in (1, 0, -1):
        yield ask(12, key="key", maxNum=count, **asked)
        yield ask(12, key="key", maxNum=count, _UNIQUE_KEY_QUERY=True, **asked)


def read(offset: int = 0, **changes: Any) -> Row:
    fields: dict[str, Any] = {"topic": TOPIC, "queueOffset": offset, "maxMsgNums": 32, **changes}
    return pull(GROUP, **fields)


def offset_of(group: str = GROUP, topic: str = TOPIC, queue_id: int = 0) -> Row:
    """The stored offset alone: 5.x answers no default."""
    return ask(14, consumerGroup=group, topic=topic, queueId=queue_id, setZeroIfNotFound=False)


def _pulls() -> Iterator[Row]:
    """11 and 361: what an offset without a message is answered, filters, and offsets that a pull carries."""
    for offset in (1, MESSAGES, MESSAGES + 1, -1):
        yield read(offset)
    for offset in (0, 5):
        yield read(offset, queueId=1)
    for subscription in ("B || C", "C", "||"):
        yield read(subscription=subscription)
    yield read(queueId=2)
    yield read(subscription="n > 1", expressionType="SQL92")
    yield read(1, sysFlag=0)
    yield read(commitOffset=1)
    yield read(sysFlag=1, commitOffset=1)
    yield offset_of()
    yield read(sysFlag=COMMIT, commitOffset=1)
    yield offset_of()
    yield read(9, sysFlag=COMMIT, commitOffset=2)
    yield offset_of()
    lite = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": 0, "queueOffset": 1, "maxMsgNums": 32}
    lite |= {"sysFlag": OWN_SUBSCRIPTION, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0}
    lite |= {"subscription": "*", "expressionType": "TAG"}
    yield Row(None, 361, lite)
    yield ask(25, b"litePullMessageEnable=false\n")
    yield Row(None, 361, lite)
    yield ask(25, b"litePullMessageEnable=true\n")


def commit(offset: int, group: str = GROUP, topic: str = TOPIC, queue_id: int = 0) -> Row:
    return ask(15, consumerGroup=group, topic=topic, queueId=queue_id, commitOffset=offset)


def _commits() -> Iterator[Row]:
    """15, 14 and 29."""
    for offset in (0, 5, 2, 1000, -1):
        yield commit(offset)
        yield ask(14, consumerGroup=GROUP, topic=TOPIC, queueId=0)
        yield offset_of()
    yield commit(5, group="managed_stranger")
    yield offset_of("managed_stranger")
    yield commit(5, topic="not_there")
    yield offset_of(topic="not_there")
    yield commit(5, queue_id=77)
    yield offset_of(queue_id=77)
    yield ask(14, consumerGroup=GROUP, topic="%RETRY%" + GROUP, queueId=0)
    for boundary in ("upper", "LOWER", "x"):
        yield ask(29, topic=TOPIC, queueId=0, timestamp=1 << 60, boundaryType=boundary)


def _resets() -> Iterator[Row]:
    """222 without members, its refusals, and pulls and commits while a reset waits; then with a member."""
    everything = {"topic": TOPIC, "group": GROUP, "timestamp": -1, "isForce": True}
    yield ask(222, **{**everything, "topic": "not_there"})
    yield ask(222, **{**everything, "group": "managed_nobody"})
    yield ask(222, **{**everything, "queueId": 0, "offset": MESSAGES + 2})
    yield commit(1)
    yield commit(0, queue_id=1)
    yield ask(222, **everything)
    yield commit(1)
    yield offset_of()
    yield read(1)
    yield read(1)
    yield commit(1)
    yield offset_of()
    yield ask(222, **{**everything, "timestamp": 0, "isForce": False})
    for offset in (2, MESSAGES, -1):
        yield ask(222, **{**everything, "timestamp": 0, "queueId": 0, "offset": offset})
        yield read(1)
        yield read(1, queueId=1)
        yield commit(1)
    empty = {**new_topic("managed_without_queues", readQueueNums=0, writeQueueNums=0).fields}
    yield ask(17, **empty)
    yield ask(222, **{**everything, "topic": "managed_without_queues"})
    yield online(GROUP, topic=TOPIC)
    for time_ms, is_forced in ((-1, True), (-1, False), (0, False), (0, True)):
        yield ask(222, **{**everything, "timestamp": time_ms, "isForce": is_forced})
        yield read(1)
        yield read(1, queueId=1)
    yield ask(25, b"useServerSideResetOffset=false\n")
    yield commit(2)
    yield ask(222, **{**everything, "topic": "not_there"})
    yield ask(222, **everything)
    yield read(1)
    yield ask(25, b"useServerSideResetOffset=true\n")
    yield ask(35, clientID="rules", consumerGroup=GROUP)


def _clones() -> Iterator[Row]:
    """314 and 308. Without a topic official brokers clone nothing, ours all topics: not compared."""
    yield from (ask(17, **new_topic(name).fields) for name in ("managed_one", "managed_two"))
    for group in ("cloned", "clone", "clone_of_some"):
        yield ask(200, json.dumps({"groupName": group}).encode())
    yield commit(5, "cloned", "managed_one")
    yield commit(6, "cloned", "managed_one", 1)
    yield commit(7, "cloned", "managed_two")
    yield commit(1, "clone", "managed_one")
    yield commit(1, "clone", "managed_one", 2)
    yield ask(314, srcGroup="cloned", destGroup="clone", topic="managed_one", offline=True)
    yield from (offset_of("clone", "managed_one", queue_id) for queue_id in range(3))
    yield ask(314, srcGroup="cloned", destGroup="clone_of_none", topic="not_there")
    yield offset_of("clone_of_none", "not_there")
    yield online("cloned", topic="managed_two")
    for topic in ("managed_one", "managed_two"):
        yield ask(314, srcGroup="cloned", destGroup="clone_of_some", topic=topic)
    yield from (offset_of("clone_of_some", topic) for topic in ("managed_one", "managed_two"))
    yield ask(314, srcGroup="cloned", destGroup="clone_of_some", topic="managed_one", offline=True)
    yield offset_of("clone_of_some", "managed_one")
    yield ask(208, consumerGroup="cloned")
    yield ask(208, consumerGroup="cloned", topic="managed_one")
    yield ask(208, consumerGroup="cloned", topicList="managed_one;not_there")
    yield ask(208, consumerGroup="cloned", topicList="managed_one", topic="managed_two")
    yield ask(35, clientID="rules", consumerGroup="cloned")
    for compared in ("clone_of_nobody", "clone"):
        yield ask(308, topic="managed_one", compareGroup=compared)
