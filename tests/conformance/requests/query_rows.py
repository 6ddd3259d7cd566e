"""Questions to a broker about its messages, groups, clients and figures: rows for a transcript.

`prepared` makes the state, `rows` asks about it. The questions name topics with messages, empty topics and unknown
topics; groups with members, groups with offsets alone and unknown groups. Keys and ids of the messages are fixed, so
two brokers hold the same bytes except for times and ports.
"""

import json
from collections.abc import Iterator

from conformance.requests.group_rows import online
from conformance.requests.transcripts import Row
from conformance.servers.raw_client import RawClient, wait_until

TOPIC, OTHER, EMPTY, ORDERED = "asked_topic", "asked_other", "asked_empty", "asked_ordered"
READERS, AWAY, FRESH, ABSENT = "asked_readers", "asked_away", "asked_fresh", "asked_absent"
ORDERLY, FILTERED = "asked_orderly", "asked_filtered"
MAKERS = "asked_makers"
ALL_TIME = {"beginTimestamp": 0, "endTimestamp": 1 << 60}
ID = "7F0000010001{:020d}"
MESSAGES = 4
"""In each of the two queues of TOPIC."""


def prepared(client: RawClient) -> None:
    """Into an empty broker: the first message is at position 0."""
    for name in (TOPIC, OTHER, EMPTY):
        client.update_topic(name, 2)
    client.update_topic(ORDERED, 2, order=True)
    for group in (READERS, AWAY, FRESH, ORDERLY, FILTERED):
        client.update_group(group)
    for queue_id in range(2):
        for number in range(MESSAGES):
            properties = {
                "UNIQ_KEY": ID.format(queue_id * MESSAGES + number),
                "KEYS": f"both key{number}",
                "TAGS": "TagA" if number % 2 else "TagB",
                "WAIT": "true",
            }
            client.send(TOPIC, queue_id, b"asked", properties, born_ms=1_600_000_000_000)
        client.settle(TOPIC, queue_id, MESSAGES)
    for name in (OTHER, ORDERED):
        client.fill(name, [0], 1)
    for group, queue_id, offset in ((READERS, 0, 2), (READERS, 1, 4), (AWAY, 0, 1), (AWAY, 1, 0)):
        assert client.commit(group, TOPIC, queue_id, offset).code == 0
    assert client.commit(FILTERED, TOPIC, 0, 1).code == 0
    assert client.commit(AWAY, OTHER, 0, 1).code == 0
    assert client.commit(ORDERLY, ORDERED, 0, 1).code == 0
    joined = online(READERS, topic=TOPIC)
    heartbeat = json.loads(joined.body)
    heartbeat["producerDataSet"] = [{"groupName": MAKERS}]
    assert client.call(34, json.dumps(heartbeat).encode()).code == 0
    assert client.pull(READERS, TOPIC, 0, 2).code == 0
    wait_until(lambda: client.call(28).code == 0, "4.9.7 knows no rates before its first second is over")


def ask(code: int, body: bytes = b"", /, **fields: object) -> Row:
    return Row(None, code, fields, body)


def rows() -> Iterator[Row]:
    yield from _messages()
    yield from _topics()
    yield from _groups()
    yield from _offsets()
    yield from _clients()
    yield from _figures()
    yield from _cleaning()
    yield from _half_said()


def _messages() -> Iterator[Row]:
    """12, 33 and 321."""
    for key in ("both", "key1", "key9", "both key1", ""):
        yield ask(12, topic=TOPIC, key=key, maxNum=32, **ALL_TIME)
    yield ask(12, topic=TOPIC, key="both", maxNum=3, **ALL_TIME)
    yield ask(12, topic=TOPIC, key="both", maxNum=0, **ALL_TIME)
    yield ask(12, topic=TOPIC, key="both", maxNum=32, beginTimestamp=0, endTimestamp=1)
    yield ask(12, topic=OTHER, key="both", maxNum=32, **ALL_TIME)
    yield ask(12, topic="not_there", key="both", maxNum=32, **ALL_TIME)
    unique = {"key": ID.format(3), "maxNum": 32, "_UNIQUE_KEY_QUERY": True}
    yield ask(12, topic=TOPIC, **unique, **ALL_TIME)
    yield ask(12, topic=OTHER, **unique, **ALL_TIME)
    for index_type in ("K", "U", "T", "X"):
        yield ask(12, topic=TOPIC, key="key1", maxNum=32, indexType=index_type, **ALL_TIME)
        yield ask(12, topic=TOPIC, key=ID.format(3), maxNum=32, indexType=index_type, **ALL_TIME)
    for offset in (0, 1, 1 << 40, -1):
        yield ask(33, offset=offset)
    yield ask(33, topic=OTHER, offset=0)
    for index, count in ((0, 2), (2, 10), (4, 1), (-1, 1), (99, 1), (0, 0), (1, -1)):
        yield ask(321, topic=TOPIC, queueId=0, index=index, count=count)
    for group in (READERS, AWAY, ABSENT, ""):
        yield ask(321, topic=TOPIC, queueId=1, index=0, count=2, consumerGroup=group)
    yield ask(321, topic=EMPTY, queueId=0, index=0, count=2)
    yield ask(321, topic="not_there", queueId=0, index=0, count=2)
    yield ask(321, topic=TOPIC, queueId=7, index=0, count=2)
    yield ask(321, topic=TOPIC, queueId=-1, index=0, count=2)


def _topics() -> Iterator[Row]:
    """202, 300, 351, 305 and 21."""
    for name in (TOPIC, EMPTY, ORDERED, "not_there", ""):
        yield ask(202, topic=name)
        yield ask(300, topic=name)
        yield ask(351, topic=name)
        yield ask(351, topic=name, lo=True)
    yield ask(202, topic="SCHEDULE_TOPIC_XXXX")
    yield ask(305)


def _groups() -> Iterator[Row]:
    """343, 345, 352, 353, 38 and 303."""
    for group in (READERS, AWAY, FRESH, ABSENT, ""):
        yield ask(343, group=group)
        yield ask(345, group=group, topic=TOPIC)
        yield ask(345, group=group, topic=OTHER)
        yield ask(352, group=group)
        yield ask(353, group=group, topic=TOPIC)
        yield ask(38, consumerGroup=group)
    yield ask(353, group=AWAY, topic=TOPIC, readable=False)
    yield ask(353, group=AWAY, topic=TOPIC)
    yield ask(353, group=AWAY, topic=TOPIC, readable=True)
    yield ask(353, group=AWAY, topic="not_there", readable=False)
    for group in (READERS, AWAY, FRESH, ABSENT):
        for name in (TOPIC, EMPTY, "not_there"):
            yield ask(303, topic=name, group=group)


def _offsets() -> Iterator[Row]:
    """208, 317, 308, 14, 29 to 32."""
    for group in (READERS, AWAY, FRESH, ABSENT, ORDERLY):
        yield ask(208, consumerGroup=group)
        yield ask(208, consumerGroup=group, topic="")
        for name in (TOPIC, OTHER, "not_there"):
            yield ask(208, consumerGroup=group, topic=name)
    yield ask(208, consumerGroup=AWAY, topicList=f"{TOPIC};{OTHER}")
    yield ask(208, consumerGroup=AWAY, topic=OTHER, topicList=TOPIC)
    yield ask(208, consumerGroup=AWAY, topicList=";")
    yield ask(317, isOrder=False)
    yield ask(317, isOrder=True)
    # Official brokers forget the offsets of the groups to filter; what is asked of those afterwards is not compared.
    for groups in (None, FILTERED, f"{FRESH},{FILTERED}", "", ABSENT):
        for compared in (AWAY, READERS, ABSENT):
            fields = {} if groups is None else {"filterGroups": groups}
            yield ask(308, topic=TOPIC, compareGroup=compared, **fields)
    yield ask(308, topic="not_there", compareGroup=AWAY)
    for name, queue_id in ((TOPIC, 0), (EMPTY, 0), (TOPIC, 9), (TOPIC, -1), ("not_there", 0)):
        for code in (30, 31, 32):
            yield ask(code, topic=name, queueId=queue_id)
        for time_ms in (0, -1, 1 << 60):
            yield ask(29, topic=name, queueId=queue_id, timestamp=time_ms)
        yield ask(29, topic=name, queueId=queue_id, timestamp=1 << 60, boundaryType="UPPER")
        yield ask(14, topic=name, queueId=queue_id, consumerGroup=READERS)
        yield ask(14, topic=name, queueId=queue_id, consumerGroup=READERS, setZeroIfNotFound=False)


def _clients() -> Iterator[Row]:
    """203, 204, 328, and the requests that the broker relays to clients: 307, 309, 223, 222."""
    for group in (READERS, AWAY, ABSENT, ""):
        yield ask(203, consumerGroup=group)
    for group in (MAKERS, ABSENT, ""):
        yield ask(204, producerGroup=group)
    yield ask(328)
    for group, client_id in ((AWAY, "rules"), (ABSENT, "rules"), (READERS, "nobody"), (READERS, "")):
        yield ask(307, consumerGroup=group, clientId=client_id, jstackEnable=False)
        yield ask(309, consumerGroup=group, clientId=client_id, msgId="7F00000100002A9F0000000000000000")
    yield ask(309, consumerGroup=READERS, clientId="rules", msgId="broken")
    for group in (AWAY, ABSENT):
        yield ask(223, topic=TOPIC, group=group)
        yield ask(222, topic="not_there", group=group, timestamp=0, isForce=True)


def _figures() -> Iterator[Row]:
    """315, 28, 26, 907, 60, 61."""
    for name, key in (
        ("TOPIC_PUT_NUMS", TOPIC),
        ("TOPIC_PUT_SIZE", TOPIC),
        ("TOPIC_PUT_NUMS", EMPTY),
        ("GROUP_GET_NUMS", f"{TOPIC}@{READERS}"),
        ("GROUP_GET_NUMS", f"{TOPIC}@{AWAY}"),
        ("GROUP_GET_SIZE", f"{TOPIC}@{READERS}"),
        ("BROKER_PUT_NUMS", "DefaultCluster"),
        ("BROKER_PUT_NUMS", "broker-a"),
        ("BROKER_GET_NUMS", "DefaultCluster"),
        ("SNDBCK_PUT_NUMS", f"{TOPIC}@{READERS}"),
        ("GROUP_GET_LATENCY", f"0@{TOPIC}@{READERS}"),
        ("TOPIC_PUT_LATENCY", f"0@{TOPIC}"),
        ("GROUP_GET_FALL_SIZE", f"0@{TOPIC}@{READERS}"),
        ("GROUP_GET_FALL_TIME", f"0@{TOPIC}@{READERS}"),
        ("DLQ_PUT_NUMS", TOPIC),
        ("NOT_THERE", TOPIC),
        ("", ""),
    ):
        yield ask(315, statsName=name, statsKey=key)
    for code in (28, 60, 61, 907, 402):
        yield ask(code)


def _cleaning() -> Iterator[Row]:
    """306, 316 and 329: what is in use is not deleted."""
    for code in (306, 316, 329):
        yield ask(code)
    yield ask(215, topic=OTHER)
    yield ask(316)
    for name in (TOPIC, OTHER, EMPTY):
        yield ask(30, topic=name, queueId=0)
        yield ask(202, topic=name)
    yield ask(208, consumerGroup=AWAY)
    yield ask(317, isOrder=True)


def _half_said() -> Iterator[Row]:
    """Requests without a required field, or with text where a number is required."""
    for code in (12, 33, 202, 300, 351, 343, 352, 303, 208, 308, 14, 29, 30, 31, 32, 203, 204, 307):
        yield ask(code)
    yield ask(33, offset="first")
    yield ask(12, topic=TOPIC, key="both", maxNum="many", **ALL_TIME)
    yield ask(321, topic=TOPIC, queueId="none", index=0, count=1)
    yield ask(30, topic=TOPIC, queueId="none")
