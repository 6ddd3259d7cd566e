"""What a broker refuses: rows for a transcript.

Sizes cross each limit in small steps, so that our limits are the official ones. Each line gets the requests twice: with
the default settings, and with everything turned off that has a setting.
"""

import json
import re
from collections.abc import Iterator

from conformance.requests.transcripts import Row, remark_of
from conformance.servers.raw_client import RawClient, send_fields
from conformance.servers.remoting import Reply

TOPIC = "refusing"
KIB = 1 << 10
FILES: dict[str, object] = {
    "enablePropertyFilter": True,
    "mappedFileSizeCommitLog": 16 << 20,
    "brokerFastFailureEnable": False,
}
CLOSED: dict[str, object] = {
    "rejectTransactionMessage": True,
    "timerWheelEnable": False,
    "maxMessageSize": 2000,
    "enablePropertyFilter": False,
    "autoCreateTopicEnable": False,
    "autoCreateSubscriptionGroup": False,
}
STATE = re.compile(r"\b[0-9A-F]{32}\b|\[java\.[^\]]*\]")


def send(properties: dict[str, str], body: bytes = b"x", code: int = 10, **changes: object) -> Row:
    fields = send_fields("refused", TOPIC, 0, {"UNIQ_KEY": "k", **properties}, **changes)
    return Row(None, code, fields, body)


def sizes() -> Iterator[Row]:
    """Properties, bodies and names around their limits."""
    for length in range(32_600, 32_780):
        yield send({"filling": "x" * length})
    yield send({"filling": "\u00fc" * 16_300})
    yield send({"filling": "\u00fc" * 16_400})
    yield send({"filling": "x" * (1024 * KIB)})
    for length in (4096 * KIB - 1, 4096 * KIB, 4096 * KIB + 1, 5000 * KIB):
        yield send({}, bytes(length))
    for length in range(1700, 2010, 3):
        yield send({}, bytes(length))
    yield send({}, b"")
    for length in range(118, 130):
        yield send({}, topic="t" * length)
        yield send({}, topic="%RETRY%" + "t" * length)
        yield Row(None, 200, {}, json.dumps({"groupName": "g" * length}).encode())


def strange_sends() -> Iterator[Row]:
    for topic in ("", " ", "a b", "a/b", "..", "%DLQ%g", "TBW102", "RMQ_SYS_TRANS_HALF_TOPIC", "none"):
        yield send({}, topic=topic)
        yield send({}, topic=topic, defaultTopic="none")
    for queue_id in (-1, 3, 4, 7, 8, 1 << 30):
        yield send({}, queueId=queue_id)
    for sys_flag in (4, 8, 12, 1 << 7, 1 << 20, -1):
        yield send({}, sysFlag=sys_flag)
        yield send({"TRAN_MSG": "true", "PGROUP": "refused"}, sysFlag=sys_flag)
        yield send({"TRAN_MSG": "yes", "PGROUP": "refused"}, sysFlag=sys_flag)
    for level in ("0", "1", "18", "19", "-1", "99999999999", "one", ""):
        yield send({"DELAY": level})
    for name in ("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"):
        for value in ("-1", "0", "one", "", "99999999999999", "99999999999999999999"):
            yield send({name: value})
    for body in (b"\0", b"\0" * 3, b"\0\0\0\1", b"\0\0\0\x20" + bytes(28), b"\xff" * 64):
        short = {"a": "refused", "b": TOPIC, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0}
        short |= {"i": "", "j": 0, "k": False, "m": True}
        yield Row(None, 320, short, body)
    for reconsumed in (-1, 1, 99):
        yield send({}, reconsumeTimes=reconsumed)
        yield send({}, reconsumeTimes=reconsumed, topic="%RETRY%refused_group", maxReconsumeTimes=2)


def strange_ends() -> Iterator[Row]:
    """Transactions, receipts, handles, expressions and replies that match nothing stored."""
    for offset in (-1, 0, 5, 10**6, 1 << 62):
        for how in (0, 4, 8, 12, 16):
            fields = {"producerGroup": "refused", "tranStateTableOffset": 0, "commitLogOffset": offset}
            if how:  # without a verdict there is no answer
                yield Row(None, 37, {**fields, "commitOrRollback": how, "msgId": "m"})
    for message_id in ("", "x", "0" * 32, "F" * 32, "7F00000100002A9F0000000000000000", "7F" * 20):
        yield Row(None, 323, {"topic": TOPIC, "msgId": message_id})
    for handle in (
        "",
        "x",
        "djEgdCBi",
        "djEgcmVmdXNpbmcgYnJva2VyLWEgMSBr",
        "djIgcmVmdXNpbmcgYnJva2VyLWEgMSBr",
    ):
        yield Row(None, 370, {"producerGroup": "refused", "topic": TOPIC, "recallHandle": handle})
    for asker in ({}, {"REPLY_TO_CLIENT": "nobody"}, {"REPLY_TO_CLIENT": "nobody", "CORRELATION_ID": "c"}):
        yield send({"MSG_TYPE": "reply", **asker}, code=324)
    for origin in ("", "nobody"):
        back = {"offset": 0, "group": origin, "delayLevel": 3, "originMsgId": "m", "originTopic": TOPIC}
        yield Row(None, 36, {**back, "unitMode": False, "maxReconsumeTimes": 16})
    deep = "(" * 20_000 + "a = 1" + ")" * 20_000
    for text in ("", "a", "a =", "a = 'x", "a ~ 1", "1", "a IS NULL", "a LIKE 'x'", "a BETWEEN 1", deep):
        data = {"topic": TOPIC, "subString": text, "expressionType": "SQL92", "tagsSet": [], "codeSet": []}
        body = {"clientId": "c", "group": "refused_group", "subscriptionData": {**data, "subVersion": 1}}
        yield Row(None, 46, {}, json.dumps(body).encode())


def prepared(client: RawClient) -> None:
    client.update_topic(TOPIC, 4)


def rows() -> Iterator[Row]:
    yield from strange_sends()
    yield from strange_ends()


def shown(_: Row, reply: Reply) -> str:
    return STATE.sub("_", repr(remark_of(reply)))


FELL_OVER = re.compile(r"\b(java|io\.netty)\.|Exception\b|Cannot invoke|Lexical error|Encountered")
