"""Requests that once stopped, filled or fooled the server, each with what it cost then.

Costs "before" were measured on two shared cores: they show an order of magnitude.
"""

import base64
import json
import struct
from itertools import pairwise
from typing import Any, Final

from hostile.generated_rows import Row
from hostile.judge import Attack
from raw_peer import frame, pull_fields, request, send_fields


def broker(code: int, fields: dict[str, Any] | None = None, body: Any = b"") -> Attack:
    return _attack("broker", code, fields, body)


def namesrv(code: int, fields: dict[str, Any] | None = None, body: Any = b"") -> Attack:
    return _attack("namesrv", code, fields, body)


def _attack(port: str, code: int, fields: dict[str, Any] | None, body: Any) -> Attack:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    texts = {name: str(value) for name, value in (fields or {}).items()}
    return Attack(port, request(code, texts, data, opaque=1))


def _ack(bit_set: bytes) -> dict[str, Any]:
    bits = base64.b64encode(bit_set).decode()
    return {"c": "g", "t": "Good", "r": "0", "so": 0, "q": 0, "rq": 0, "pt": 1, "it": 60000, "b": bits}


def _heartbeat(
    *, producers: int = 0, expression: str = "*", kind: str = "TAG", topics: int = 1
) -> dict[str, Any]:
    subscription = {"topic": "Good", "subString": expression, "expressionType": kind, "subVersion": 1}
    subscriptions = [{**subscription, "topic": f"Good{number}"} for number in range(topics)]
    consumer = {"groupName": "g", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    consumer |= {"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET"}
    return {
        "clientID": "hostile",
        "producerDataSet": [{"groupName": f"p{number}"} for number in range(producers)],
        "consumerDataSet": [{**consumer, "subscriptionDataSet": subscriptions}],
    }


def _references_in_body(count: int) -> dict[str, Any]:
    first = _heartbeat()
    consumer = first["consumerDataSet"][0]
    subscription = {"$ref": "$.consumerDataSet[0].subscriptionDataSet[0]"}
    consumer["subscriptionDataSet"] += [subscription] * count
    first["consumerDataSet"] += [{"$ref": "$.consumerDataSet[0]"}] * count
    return first


def _references_in_header() -> bytes:
    """Each name holds ten references to the one before it, so the eighth holds 10^8 texts."""
    fields: dict[str, Any] = {"a": ["x" * 10]}
    for before, name in pairwise("abcdefghi"):
        fields[name] = [{"$ref": f"$.extFields.{before}"}] * 10
    return json.dumps({"code": 34, "extFields": fields}, separators=(",", ":")).encode()


def _forged_check_point() -> Attack:
    """A message of the revival's own topic: 2,147,483,647 messages of one pop."""
    check_point = {"so": 0, "pt": 1, "it": 1000, "rt": 0, "rq": 0, "q": 0, "t": "Good", "c": "g"}
    check_point |= {"n": 2**31 - 1, "d": [], "bn": "broker-a", "rp": None}
    fields = send_fields("rmq_sys_REVIVE_LOG_DefaultCluster", properties="TAGS\x01ck\x02")
    return broker(10, fields, json.dumps(check_point).encode())


_UNKNOWN_KEYS: Final = "".join(f"unknownKey{number}=1\n" for number in range(20_000)).encode()
_POP: Final = {"consumerGroup": "g", "topic": "Good", "queueId": 0, "maxMsgNums": 1} | {
    "invisibleTime": 60000,
    "pollTime": 0,
    "bornTime": 0,
    "initMode": 0,
}
_WIDE: Final = {"topic": "Wide", "defaultTopic": "TBW102", "readQueueNums": 2**31 - 1, "perm": 6} | {
    "writeQueueNums": 2**31 - 1,
    "topicFilterType": "SINGLE_TAG",
    "order": "false",
}
_BATCH: Final = dict(
    zip("abcdefghim", ["raw", "Good", "TBW102", "4", "0", "0", "1", "0", "", "true"], strict=True)
)
_HYPHENS: Final = "-" * 32_760


def _acks(count: int, bit_bytes: int) -> Attack:
    return broker(200151, {}, {"brokerName": "b", "acks": [_ack(b"\xff" * bit_bytes)] * count})


KNOWN_ROWS: Final = (
    Row("batch ack of 50 KB of bits (1.6 s)", _acks(1, 50_000)),
    Row("batch ack of 1 MB of bits (11 min)", _acks(1, 1_000_000)),
    Row("batch of 20,000 acks of 64 bits (4 s)", _acks(20_000, 8)),
    Row("references of a header to references (10 GB)", Attack("broker", frame(_references_in_header()))),
    Row("references of a body to references (413 MB)", broker(34, {}, _references_in_body(2000))),
    Row("a forged check point (MemoryError for ever)", _forged_check_point()),
    Row(
        "SQL92 of 32,760 hyphens in a heartbeat (7 s)",
        broker(34, {}, _heartbeat(expression=_HYPHENS, kind="SQL92")),
    ),
    Row("SQL92 of hyphens in a pop (7 s)", broker(200050, {**_POP, "expType": "SQL92", "exp": _HYPHENS})),
    Row(
        "SQL92 of hyphens in a pull (7 s)",
        broker(11, pull_fields("Good", subscription=_HYPHENS, expressionType="SQL92")),
    ),
    Row(
        "a tag expression of 400,000 tags (1 s)",
        broker(34, {}, _heartbeat(expression="||".join(f"t{n}" for n in range(400_000)))),
    ),
    Row(
        "a heartbeat of 300,000 producers (17 s at its close)", broker(34, {}, _heartbeat(producers=300_000))
    ),
    Row("a heartbeat of 100,000 subscriptions", broker(34, {}, _heartbeat(topics=100_000))),
    Row("20,000 unknown keys for a broker (9 s)", broker(25, {}, _UNKNOWN_KEYS)),
    Row("20,000 unknown keys for a name server (9 s)", namesrv(318, {}, _UNKNOWN_KEYS)),
    Row("200,000 lines that end in a backslash (quadratic)", broker(25, {}, b"\\\n" * 200_000)),
    Row(
        "14 MB of empty lists where an object belongs (4 s)",
        broker(34, {}, b"[" + b",".join([b"[]"] * 4_500_000) + b"]"),
    ),
    Row("an id of 1 MB (2 MB of log)", broker(323, {"msgId": "x" * 1_000_000, "topic": "Good"})),
    Row("a topic of 2 billion queues", broker(17, _WIDE)),
    Row("time spans of a wide topic (4 s, 18 MB)", broker(303, {"topic": "Wide", "group": "g"})),
    Row("first positions in a wide topic (24 MB)", broker(30001, {"topic": "Wide", "consumerGroup": "g"})),
    Row(
        "a send with a million equal properties (195 ms)",
        broker(10, send_fields("Good", properties="k\x01v\x02" * 1_000_000), b"x"),
    ),
    Row(
        "a batch of one million empty messages",
        broker(320, _BATCH, struct.pack(">5ih", 22, 0, 0, 0, 0, 0) * 100_000),
    ),
)
