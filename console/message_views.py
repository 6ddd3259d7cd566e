"""Messages looked up by place, key or id, as `Message`s; and messages sent. Looking moves no offset."""

import base64
import heapq
import time
from bisect import bisect_left
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.client.errors import ClientError
from pocketmq.client.values.message import Message
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.message.record import decode_record
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.requests.send import SendMessageV2
from pocketmq.protocol.wire.response_codes import ResponseCode
from starlette.responses import Response

from .answers import JSON_BYTES, Call, Problem, as_json, decoded, number_of, read_json, serves
from .broker_values import message_value
from .cluster_views import known_topic
from .pages import Page, Pause
from .server_access import ServerAccess
from .values import Message as StoredMessage
from .values import NewMessage, Sent

_SEARCH: Final = ("queue", "offset", "limit", "key", "from_ms", "to_ms", "after")
MAX_MESSAGES: Final = 1000
"""Messages in one answer."""
MESSAGE_BYTES: Final = 6 << 20
"""The longest body with a message."""
_NULL: Final = msgspec.Raw(b"null")


class PostedMessage(NewMessage, frozen=True, forbid_unknown_fields=True):
    """A message as it is posted: what may be many values is not read yet."""

    keys: msgspec.Raw = _NULL  # type: ignore[assignment]
    properties: msgspec.Raw = _NULL  # type: ignore[assignment]


@serves("GET", "/api/topics/{topic}/messages", _SEARCH, list[StoredMessage])
async def messages(call: Call) -> Response:
    """Messages, oldest first; looking moves no offset. Without `limit` 100, at most 1,000. A body that cannot be shown
    is null, and `error` says why."""
    limit = number_of(call.given, "limit", 100, MAX_MESSAGES)
    config, page = known_topic(call.broker, call.in_path("topic")), Page(limit)
    async with call.reading as pause:
        if "key" in call.given:
            following = await _by_key(call.broker, config.name, call.given, page, limit, pause)
        else:
            following = await _in_order(call.broker, config, call.given, page, pause)
    return page.response(call.request, **following)


async def _in_order(
    broker: Broker, config: TopicConfig, given: dict[str, str], page: Page, pause: Pause
) -> dict[str, Any]:
    """Returns the parameters of the next page; empty if there is none."""
    topic = config.name
    queues = range(max(config.read_queue_nums, config.write_queue_nums))
    if "queue" in given:
        queue_id = number_of(given, "queue", 0)
        if queue_id not in queues:
            raise Problem(404, f"topic {topic} has no queue {queue_id}", list(queues[:MAX_MESSAGES]))
        queues = range(queue_id, queue_id + 1)
    last_ms, after = number_of(given, "to_ms", 1 << 62), _place_of(given)
    first_ms = max(number_of(given, "from_ms", 0), after[0])
    begins: dict[int, int] = {}
    for queue_id in queues:
        begins[queue_id] = max(
            number_of(given, "offset", 0), _first_offset(broker, topic, queue_id, first_ms)
        )
        await pause()
    place = after
    async for at in _by_time(broker, topic, begins, pause):
        if at[0] > last_ms:
            return {}
        if at <= after:
            continue
        if page.is_full:
            return {"after": "-".join(map(str, place))}
        record = _record_at(broker, topic, at[1], at[2])
        if record is not None:
            page.add(message_value(decode_record(record), broker.config.broker_name))
        place = at
    return {}


_Place = tuple[int, int, int]
"""Store time, queue id and offset of a message: the order of a list."""


def _place_of(given: dict[str, str]) -> _Place:
    """The place of `after`, behind which a page begins."""
    text = given.get("after")
    if text is None:
        return (-1, -1, -1)
    parts = text.split("-")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in parts):
        raise Problem(400, f"after must be that of a Link header, got {text!r:.60}", ["TIME-QUEUE-OFFSET"])
    return (int(parts[0]), int(parts[1]), int(parts[2]))


async def _by_time(broker: Broker, topic: str, begins: dict[int, int], pause: Pause) -> AsyncIterator[_Place]:
    """The messages of several queues from these offsets on, by store time, and by place if that is the same."""
    heads = [
        (max(0, broker.store.store_time(topic, queue_id, offset)), queue_id, offset)
        for queue_id, offset in begins.items()
        if offset < broker.store.max_offset(topic, queue_id)
    ]
    heapq.heapify(heads)
    while heads:
        time_ms, queue_id, offset = heads[0]
        yield heads[0]
        await pause()
        if offset + 1 < broker.store.max_offset(topic, queue_id):
            # A clock that was set back must not make a queue's own order another one.
            later_ms = max(time_ms, broker.store.store_time(topic, queue_id, offset + 1))
            heapq.heapreplace(heads, (later_ms, queue_id, offset + 1))
        else:
            heapq.heappop(heads)


def _first_offset(broker: Broker, topic: str, queue_id: int, first_ms: int) -> int:
    """The first offset of a queue that was stored at this time or later."""
    low, high = broker.store.min_offset(topic, queue_id), broker.store.max_offset(topic, queue_id)
    if first_ms <= 0:
        return low
    return low + bisect_left(
        range(low, high), first_ms, key=lambda offset: broker.store.store_time(topic, queue_id, offset)
    )


def _record_at(broker: Broker, topic: str, queue_id: int, offset: int) -> memoryview | None:
    queue = broker.store.consume_queue(topic, queue_id)
    unit = None if queue is None else queue.unit(offset)
    return None if unit is None else broker.store.read_record(unit[0], unit[1])


async def _by_key(
    broker: Broker, topic: str, given: dict[str, str], page: Page, limit: int, pause: Pause
) -> dict[str, Any]:
    """Messages with this key or id; the index may hold others with the same hash, which are left out."""
    key, seen = given["key"], number_of(given, "after", 0, MAX_MESSAGES)
    for number, record in enumerate(broker.store.query(topic, key, max(seen + limit, 1), 0, 1 << 62).views):
        if number < seen:
            continue
        if page.is_full:
            return {"after": number}
        message = message_value(decode_record(record), broker.config.broker_name)
        if message.topic == topic and (key == message.message_id or key in message.keys):
            page.add(message)
        await pause()
    return {}


@serves("POST", "/api/topics/{topic}/messages", answer=Sent, body=NewMessage, code=201)
async def send_message(call: Call) -> Response:
    """Send one message as a producer does; the answer says where it is stored."""
    sent = await read_json(call.request, PostedMessage, MESSAGE_BYTES)
    return as_json(await _send(call.access, call.in_path("topic"), sent), 201)


async def _send(access: ServerAccess, topic: str, sent: PostedMessage) -> Sent:
    broker = access.broker
    config = broker.topics.find(topic)
    if config is None:
        raise Problem(404, f"there is no topic {topic:.200}: make it with POST /api/topics")
    queue_id = sent.queue_id
    if queue_id is None:
        queue_id = broker.store.statistics.messages % max(config.write_queue_nums, 1)  # one after the other
    elif queue_id >= config.write_queue_nums:
        allowed = list(range(min(config.write_queue_nums, MAX_MESSAGES)))
        raise Problem(400, f"topic {topic} has no queue {queue_id}", allowed)
    message = _message_of(topic, sent)
    try:
        properties = message.wire_properties()
    except ClientError as error:
        raise Problem(400, f"{error!s:.500}") from error
    request = SendMessageV2(
        producer_group="pocketmq-console",
        topic=topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=4,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=0,
        properties=encode_properties_text({**properties, names.UNIQ_KEY: broker.state.unique_ids.next()}),
        reconsume_times=0,
    )
    try:
        reply = await access.send(request, message.body)
    except Refusal as refusal:
        raise Problem(400, f"the broker refuses: {_code_name(refusal.code)}, {refusal.remark}") from refusal
    except PeerError as error:
        raise Problem(400, f"the broker did not answer: {error}") from error
    return Sent(
        message_id=reply.transaction_id or reply.msg_id,
        topic=topic,
        broker_name=broker.config.broker_name,
        queue_id=reply.queue_id,
        queue_offset=reply.queue_offset,
        status="SEND_OK",
        recall_handle=reply.recall_handle,
    )


def _message_of(topic: str, sent: PostedMessage) -> Message:
    """`wire_properties` checks names and values of properties."""
    try:
        delay = timedelta(milliseconds=sent.delay_ms or 0)
    except OverflowError as error:
        raise Problem(400, "delay_ms is too large", [0]) from error
    return Message(
        topic,
        _body(sent),
        sent.tags or "",
        _part("keys", sent.keys, str | list[str] | None) or "",
        _part("properties", sent.properties, dict[str, str] | None) or {},
        delay_level=sent.delay_level or 0,
        delay=delay,
    )


def _part(name: str, raw: msgspec.Raw, kind: Any) -> Any:
    if len(memoryview(raw)) > JSON_BYTES:
        raise Problem(400, f"{name} is too long: at most {JSON_BYTES} bytes are read", [JSON_BYTES])
    return decoded(raw, kind, name)


def _body(sent: PostedMessage) -> bytes:
    if sent.body_base64 is None:
        return (sent.text or "").encode()
    if sent.text is not None:
        raise Problem(400, "give text or body_base64, not both", ["text", "body_base64"])
    try:
        return base64.b64decode(sent.body_base64, validate=True)
    except ValueError as error:
        raise Problem(400, f"body_base64 is no base64: {error}", ["base64"]) from error


def _code_name(code: int) -> str:
    return ResponseCode(code).name if code in ResponseCode._value2member_map_ else str(code)
