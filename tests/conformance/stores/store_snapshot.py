"""What a broker shows of its store, to compare it with what another broker shows of the same store.

All of it is read over the wire: queues with their records byte by byte, offsets, topics, groups, messages by key and
by position. `store_chain.py` makes a `Snapshot` before a server ends and one when the next has opened the store.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from conformance.examples.stored import Stored, stored
from conformance.servers.raw_client import RawClient

GET_ALL_TOPICS, GET_ALL_GROUPS = 21, 201
GET_ALL_CONSUMER_OFFSETS, GET_ALL_DELAY_OFFSETS = 43, 45
QUERY_BY_KEY, VIEW_BY_POSITION = 12, 33
SUCCESS, NO_MESSAGE = 0, 22
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
FOREVER_MS = 1 << 62

Place = tuple[str, int]
"""Topic and queue id."""


@dataclass(frozen=True)
class Queue:
    """Offsets of a queue, and a digest of all its records."""

    min_offset: int
    max_offset: int
    digest: str


@dataclass
class Snapshot:
    queues: dict[Place, Queue] = field(default_factory=dict)
    messages: dict[Place, list[Stored]] = field(default_factory=dict)
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    offsets: dict[str, dict[str, int]] = field(default_factory=dict)
    delays: dict[str, int] = field(default_factory=dict)
    by_key: dict[str, list[int]] = field(default_factory=dict)
    by_unique_key: dict[str, list[int]] = field(default_factory=dict)
    by_position: dict[int, bytes] = field(default_factory=dict)


def java_json(text: str) -> Any:
    """JSON whose number keys are not quoted."""
    return json.loads(re.sub(r"([{,]\s*)(\d+):", r'\1"\2":', text))


def take(client: RawClient, topics: Iterable[str], delay_levels: Iterable[int], group: str) -> Snapshot:
    """The whole content of these topics, of the queues of these delay levels, and of one consumer group."""
    snapshot = Snapshot()
    known = client.call(GET_ALL_TOPICS).json()
    assert isinstance(known, dict)
    for topic in topics:
        config = known["topicConfigTable"][topic]
        kept = ("readQueueNums", "writeQueueNums", "perm", "order", "topicFilterType", "topicSysFlag")
        snapshot.topics[topic] = {name: config[name] for name in kept}
        for queue_id in range(config["readQueueNums"]):
            _read_queue(client, snapshot, topic, queue_id)
    for level in delay_levels:
        _read_queue(client, snapshot, SCHEDULE_TOPIC, level - 1)
    _read_group(client, snapshot, group)
    delays = java_json(client.call(GET_ALL_DELAY_OFFSETS).body.decode())["offsetTable"]
    snapshot.delays = {str(level): delays.get(str(level), 0) for level in delay_levels}
    _look_up(client, snapshot)
    return snapshot


def _read_queue(client: RawClient, snapshot: Snapshot, topic: str, queue_id: int) -> None:
    first, end = client.min_offset(topic, queue_id), client.max_offset(topic, queue_id)
    digest = hashlib.sha256()
    messages: list[Stored] = []
    offset = first
    while offset < end:
        reply = client.pull("raw", topic, queue_id, offset)
        assert reply.code == SUCCESS, f"{topic} queue {queue_id} offset {offset} of {first}..{end}: {reply}"
        digest.update(reply.body)
        messages += stored(reply.body)
        offset = int(reply.fields["nextBeginOffset"])
    snapshot.queues[topic, queue_id] = Queue(first, end, digest.hexdigest())
    snapshot.messages[topic, queue_id] = messages


def _read_group(client: RawClient, snapshot: Snapshot, group: str) -> None:
    table = client.call(GET_ALL_GROUPS).json()
    assert isinstance(table, dict)
    config = table["subscriptionGroupTable"][group]
    kept = (
        "groupName",
        "consumeEnable",
        "consumeBroadcastEnable",
        "retryQueueNums",
        "retryMaxTimes",
        "brokerId",
    )
    snapshot.groups[group] = {name: config[name] for name in kept}
    offsets = java_json(client.call(GET_ALL_CONSUMER_OFFSETS).body.decode())["offsetTable"]
    snapshot.offsets = {place: queues for place, queues in offsets.items() if place.endswith(f"@{group}")}


def _look_up(client: RawClient, snapshot: Snapshot) -> None:
    """Every key of every message, and each tenth message by its position in the log."""
    keys: set[tuple[str, str, bool]] = set()
    for (topic, _), messages in snapshot.messages.items():
        if topic == SCHEDULE_TOPIC:
            continue
        for number, message in enumerate(messages):
            keys |= {(topic, key, False) for key in message.properties.get("KEYS", "").split()}
            if number % 10 == 0:
                keys.add((topic, message.properties["UNIQ_KEY"], True))
                reply = client.call(VIEW_BY_POSITION, offset=message.position)
                assert reply.code == SUCCESS, reply
                snapshot.by_position[message.position] = reply.body
    for topic, key, is_unique in sorted(keys):
        reply = client.call(
            QUERY_BY_KEY,
            topic=topic,
            key=key,
            maxNum=64,
            beginTimestamp=0,
            endTimestamp=FOREVER_MS,
            _UNIQUE_KEY_QUERY=is_unique,
        )
        assert reply.code in (SUCCESS, NO_MESSAGE), reply
        table = snapshot.by_unique_key if is_unique else snapshot.by_key
        table[f"{topic}#{key}"] = sorted(message.position for message in stored(reply.body))
