"""Messages as JSON values, looked up by place, key or id; and messages sent. Looking moves no offset.

A message has `text` (null if the body is not UTF-8), `body_base64`, `tags`, `keys`, `properties`, `queue_id`,
`queue_offset`, `message_id`, and its times.
"""

import base64
import binascii
import time
from typing import Any, Final

from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.compression import decompress
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text
from pocketmq.protocol.message.record import decode_record
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.requests.send import SendMessageV2
from pocketmq.protocol.wire.response_codes import ResponseCode

from .answers import Problem, number_of
from .cluster_views import known_topic
from .stand import Stand

MOST_MESSAGES: Final = 1000
"""Messages in one answer."""
SEND_WORDS: Final = (
    *("text", "body_base64", "tags", "keys", "properties", "queue_id", "delay_level", "delay_ms"),
)


def message_value(record: memoryview) -> dict[str, Any]:
    """A record of the log; its body is decompressed."""
    message = decode_record(record)
    properties = decode_properties(message.properties)
    body = bytes(decompress(message.body, message.sys_flag))
    try:
        text: str | None = body.decode()
    except UnicodeDecodeError:
        text = None
    return {
        "topic": message.topic,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "message_id": properties.get(names.UNIQ_KEY),
        "tags": properties.get(names.TAGS),
        "keys": properties.get(names.KEYS, "").split(),
        "properties": properties,
        "flag": message.flag,
        "born_timestamp": message.born_timestamp,
        "store_timestamp": message.store_timestamp,
        "reconsume_times": message.reconsume_times,
        "text": text,
        "body_base64": base64.b64encode(body).decode(),
    }


def messages(broker: Broker, topic: str, given: dict[str, str]) -> list[dict[str, Any]]:
    """`queue` and `offset` say where to begin, `limit` how many at most; `key` finds by key or message id, `from_ms`
    and `to_ms` by store time."""
    config = known_topic(broker, topic)
    limit = number_of(given, "limit", 100, MOST_MESSAGES)
    if "key" in given:
        return _by_key(broker, topic, given["key"], limit)
    queues = range(max(config.read_queue_nums, config.write_queue_nums))
    if "queue" in given:
        queue_id = number_of(given, "queue", 0)
        if queue_id not in queues:
            raise Problem(404, f"topic {topic} has no queue {queue_id}", list(queues))
        queues = range(queue_id, queue_id + 1)
    first_ms, last_ms = number_of(given, "from_ms", 0), number_of(given, "to_ms", 1 << 62)
    found: list[dict[str, Any]] = []
    for queue_id in queues:
        begin = number_of(given, "offset", 0)
        if first_ms:
            begin = max(begin, broker.store.search_offset(topic, queue_id, first_ms, "LOWER"))
        found += _of_queue(broker, topic, queue_id, begin, last_ms, limit)
    found.sort(key=lambda message: message["store_timestamp"])
    return found[:limit]


def _of_queue(
    broker: Broker, topic: str, queue_id: int, begin: int, last_ms: int, limit: int
) -> list[dict[str, Any]]:
    queue = broker.store.consume_queue(topic, queue_id)
    found: list[dict[str, Any]] = []
    if queue is None:
        return found
    for offset in range(max(begin, queue.min_offset), queue.max_offset):
        unit = queue.unit(offset)
        record = None if unit is None else broker.store.read_record(unit[0], unit[1])
        if record is None:
            continue
        message = message_value(record)
        if message["store_timestamp"] > last_ms or len(found) >= limit:
            break
        found.append(message)
    return found


def _by_key(broker: Broker, topic: str, key: str, limit: int) -> list[dict[str, Any]]:
    """Messages with this key or id; the index may hold others with the same hash, which are left out."""
    found = []
    for record in broker.store.query(topic, key, max(limit, 1), 0, 1 << 62).views:
        message = message_value(record)
        if message["topic"] == topic and (key == message["message_id"] or key in message["keys"]):
            found.append(message)
    return found


async def send_message(stand: Stand, topic: str, given: dict[str, Any]) -> dict[str, Any]:
    """Send one message as a producer does; the answer says where it is stored."""
    broker = stand.broker
    config = broker.topics.find(topic)
    if config is None:
        raise Problem(404, f"there is no topic {topic}: make it with POST /api/topics")
    queue_id = given.get("queue_id")
    if queue_id is None:
        queue_id = next_queue(broker, config.write_queue_nums)
    elif (
        not isinstance(queue_id, int)
        or isinstance(queue_id, bool)
        or not 0 <= queue_id < config.write_queue_nums
    ):
        allowed = list(range(config.write_queue_nums))
        raise Problem(400, f"topic {topic} has no queue {queue_id!r:.60}", allowed)
    request = SendMessageV2(
        producer_group="pocketmq-console",
        topic=topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=4,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=0,
        properties=encode_properties_text(_properties(broker, given)),
        reconsume_times=0,
    )
    try:
        reply = await stand.send(request, _body(given))
    except Refusal as refusal:
        raise Problem(400, f"the broker refuses: {_code_name(refusal.code)}, {refusal.remark}") from refusal
    except PeerError as error:
        raise Problem(400, f"the broker did not answer: {error}") from error
    return {
        "message_id": reply.transaction_id or reply.msg_id,
        "queue_id": reply.queue_id,
        "queue_offset": reply.queue_offset,
    }


def next_queue(broker: Broker, queues: int) -> int:
    """A queue, one after the other."""
    return broker.store.statistics.messages % max(queues, 1)


def _body(given: dict[str, Any]) -> bytes:
    text, encoded = given.get("text"), given.get("body_base64")
    if text is not None and encoded is not None:
        raise Problem(400, "give text or body_base64, not both", ["text", "body_base64"])
    if encoded is None:
        return _text("text", text if text is not None else "").encode()
    try:
        return base64.b64decode(_text("body_base64", encoded), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Problem(400, f"body_base64 is no base64: {error}", ["base64"]) from error


def _properties(broker: Broker, given: dict[str, Any]) -> dict[str, str]:
    own = given.get("properties") or {}
    if not isinstance(own, dict):
        raise Problem(400, "properties must be an object of texts", ["an object"])
    properties = {name: _text(f"property {name}", value) for name, value in own.items()}
    keys = given.get("keys") or ""
    if isinstance(keys, list):
        keys = " ".join(_text("keys", key) for key in keys)
    if keys:
        properties[names.KEYS] = _text("keys", keys)
    if given.get("tags"):
        properties[names.TAGS] = _text("tags", given["tags"])
    for name, word in (("delay_level", names.DELAY), ("delay_ms", names.TIMER_DELAY_MS)):
        value = given.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise Problem(400, f"{name} must be a whole number from 0 on, got {value!r:.60}", [0])
        if value:
            properties[word] = str(value)
    return {**properties, names.UNIQ_KEY: broker.state.unique_ids.next(), names.WAIT: "true"}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise Problem(400, f"{name} must be a text, got {value!r:.60}", ["a text"])
    return value


def _code_name(code: int) -> str:
    return ResponseCode(code).name if code in ResponseCode._value2member_map_ else str(code)
