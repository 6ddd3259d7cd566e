"""A client made of single requests, for tests that prepare a state frame by frame and then query it.

One connection, one method a request, no state beyond the connection. Fields that a method does not name have the
official Java client's values. Answers are `Reply` values as received: a refusal is an answer. The frames themselves are
in `remoting.py`.
"""

import json
import struct
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Self

from conformance.servers import remoting
from conformance.servers.remoting import Reply
from conformance.servers.server import BROKER_PORT, Server

CLIENT_VERSION = {"4.9": 409, "5.5": 513}
"""V4_9_8 and V5_5_0."""
SETTLE_TIMEOUT_S = 20.0
BUSY = (2, 10)
"""SYSTEM_BUSY and FLUSH_DISK_TIMEOUT: a loaded official broker refuses, and is asked again."""


def property_text(properties: Mapping[str, str]) -> str:
    """The stored form: name, 0x01, value, 0x02."""
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items())


def send_fields(
    group: str,
    topic: str,
    queue_id: int = 0,
    properties: Mapping[str, str] | None = None,
    /,
    **changes: object,
) -> dict[str, object]:
    """Header fields of SEND_MESSAGE (10)."""
    fields: dict[str, object] = {"producerGroup": group, "topic": topic, "defaultTopic": "TBW102"}
    fields |= {
        "defaultTopicQueueNums": 4,
        "queueId": queue_id,
        "sysFlag": 0,
        "bornTimestamp": 1_700_000_000_000,
    }
    fields |= {"flag": 0, "properties": property_text(properties or {}), "reconsumeTimes": 0}
    return {**fields, "unitMode": False, "batch": False, **changes}


def short_form(fields: Mapping[str, object]) -> dict[str, object]:
    """`send_fields` with one-letter names: the header of 310, and of 320 on some brokers."""
    names = (
        "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag properties "
        "reconsumeTimes unitMode maxReconsumeTimes batch"
    )
    letters = dict(zip(names.split(), "abcdefghijklm", strict=True))
    return {letters[name]: value for name, value in fields.items()}


def inner_messages(messages: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The body of a batch: bodies, and their properties as text.

    int32 size | magic | body CRC | flag | int32 + body | int16 + properties
    """
    parts = bytearray()
    for body, text in messages:
        rest = struct.pack(f">iiii{len(body)}sh{len(text)}s", 0, 0, 0, len(body), body, len(text), text)
        parts += struct.pack(">i", 4 + len(rest)) + rest
    return bytes(parts)


def pull_fields(group: str, topic: str, queue_id: int = 0, /, **changes: object) -> dict[str, object]:
    """Header fields of PULL_MESSAGE (11) with its own subscription, which is never suspended."""
    fields: dict[str, object] = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": queue_id,
        "queueOffset": 0,
    }
    fields |= {"maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0}
    return {**fields, "subscription": "*", "subVersion": 0, "expressionType": "TAG", **changes}


def topic_fields(topic: str, queues: int, perm: int = 6, *, order: bool = False) -> dict[str, object]:
    """Header fields of UPDATE_AND_CREATE_TOPIC (17)."""
    fields: dict[str, object] = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": queues}
    fields |= {"writeQueueNums": queues, "perm": perm, "topicFilterType": "SINGLE_TAG"}
    return {**fields, "topicSysFlag": 0, "order": order}


def heartbeat(client_id: str, group: str, *subscriptions: Mapping[str, object], **changes: object) -> bytes:
    """Body of HEART_BEAT (34) of a client with one consumer."""
    consumer = {"groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    consumer |= {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"}
    data = {**consumer, "unitMode": False, "subscriptionDataSet": subscriptions, **changes}
    return json.dumps({"clientID": client_id, "consumerDataSet": [data], "producerDataSet": []}).encode()


class RawClient:
    """Requests on one connection to a server's broker. Use it as a context manager."""

    def __init__(self, server: Server, group: str = "raw_producer", port: int = BROKER_PORT) -> None:
        self.server = server
        self.group = group
        self.connection = server.connect(port, timeout=30)
        self._version = CLIENT_VERSION[server.emulates]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def call(self, code: int, body: bytes = b"", **fields: object) -> Reply:
        return remoting.call(self.connection, code, fields, body, self._version)

    def call_unless_busy(self, code: int, body: bytes = b"", **fields: object) -> Reply:
        """`call`, repeated while the broker answers that it is busy."""
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while (reply := self.call(code, body, **fields)).code in BUSY and time.monotonic() < deadline:
            time.sleep(0.1)
        return reply

    def _must(self, code: int, body: bytes = b"", **fields: object) -> Reply:
        """`call` for steps that must succeed."""
        reply = self.call_unless_busy(code, body, **fields)
        assert reply.code == 0, f"{code} {fields}: {reply}"
        return reply

    # -- topics, groups, settings

    def update_topic(
        self, topic: str, queues: int, perm: int = 6, *, order: bool = False, **fields: object
    ) -> None:
        """`fields` are further ones, or others in place of these."""
        self._must(17, b"", **(topic_fields(topic, queues, perm, order=order) | fields))

    def update_group(self, group: str) -> None:
        self._must(200, json.dumps({"groupName": group, "consumeEnable": True}).encode())

    def update_setting(self, key: str, value: object) -> None:
        self._must(25, f"{key}={value}\n".encode())

    # -- messages

    def send(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        properties: Mapping[str, str] | None = None,
        *,
        born_ms: int | None = None,
    ) -> Reply:
        """SEND_MESSAGE (10), repeated while the broker is busy."""
        born_ms = int(time.time() * 1000) if born_ms is None else born_ms
        fields = send_fields(
            self.group, topic, queue_id, properties or {"WAIT": "true"}, bornTimestamp=born_ms
        )
        return self._must(10, body, **fields)

    def send_batch(
        self,
        topic: str,
        queue_id: int,
        messages: Iterable[tuple[bytes, Mapping[str, str]]],
        *,
        born_ms: int,
    ) -> Reply:
        """SEND_BATCH_MESSAGE (320)."""
        inner = [(body, property_text(properties).encode()) for body, properties in messages]
        fields = send_fields(self.group, topic, queue_id, {}, bornTimestamp=born_ms, batch=True)
        return self._must(320, inner_messages(inner), **short_form(fields))

    def fill(self, topic: str, queues: Iterable[int], count: int, body: bytes = b"history") -> None:
        """count messages to each queue; returns when all can be pulled."""
        for queue_id in queues:
            ends = [int(self.send(topic, queue_id, body).fields["queueOffset"]) + 1 for _ in range(count)]
            self.settle(topic, queue_id, max(ends, default=0))

    def settle(self, topic: str, queue_id: int, end: int) -> None:
        """Official brokers acknowledge a send a little before the queue shows it."""
        wait_until(
            lambda: self.max_offset(topic, queue_id) >= end,
            f"{topic} queue {queue_id} never reached {end}",
        )

    def pull(self, group: str, topic: str, queue_id: int, offset: int, *, commit: int | None = None) -> Reply:
        """PULL_MESSAGE (11) that is never suspended; with `commit` it carries an offset to store."""
        stores = {} if commit is None else {"sysFlag": 5, "commitOffset": commit}
        return self.call(11, b"", **pull_fields(group, topic, queue_id, queueOffset=offset, **stores))

    # -- offsets

    def query_offset(
        self, group: str, topic: str, queue_id: int, set_zero_if_not_found: bool | None = None
    ) -> Reply:
        """QUERY_CONSUMER_OFFSET (14); None leaves the field out, as Java clients do."""
        more = {} if set_zero_if_not_found is None else {"setZeroIfNotFound": set_zero_if_not_found}
        return self.call(14, b"", consumerGroup=group, topic=topic, queueId=queue_id, **more)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> Reply:
        return self.call(15, consumerGroup=group, topic=topic, queueId=queue_id, commitOffset=offset)

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> Reply:
        """INVOKE_BROKER_TO_RESET_OFFSET (222) of one queue to an offset; the 4.9 line reads the time alone."""
        return self.call(
            222, topic=topic, group=group, timestamp=0, isForce=True, queueId=queue_id, offset=offset
        )

    def max_offset(self, topic: str, queue_id: int) -> int:
        return int(self._must(30, topic=topic, queueId=queue_id, committed=True).fields["offset"])

    def min_offset(self, topic: str, queue_id: int) -> int:
        return int(self._must(31, topic=topic, queueId=queue_id).fields["offset"])

    def earliest_store_time(self, topic: str, queue_id: int) -> int:
        """Store time of a queue's oldest message, ms since 1970; -1 for an empty queue."""
        return int(self._must(32, topic=topic, queueId=queue_id).fields["timestamp"])

    def search_offset(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        return int(self._must(29, topic=topic, queueId=queue_id, timestamp=timestamp_ms).fields["offset"])


def wait_until(is_so: Callable[[], bool], otherwise: str, timeout: float = SETTLE_TIMEOUT_S) -> None:
    """Poll until another process has done something."""
    deadline = time.monotonic() + timeout
    while not is_so():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)
