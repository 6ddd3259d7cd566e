"""What a broker stores of sends, of batches, of what consumers give back, and of half messages: rows for a transcript.

`_seen` views what a row stored, by its place in the log (33). No answer names the place of a copy that was given back:
it is read from the topic where it waits (11). All that enters the log later, a delayed message or the end of a
transaction, comes after the last row that names a place.
"""

import json
import re
import struct
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from conformance.examples.stored import Stored, stored
from conformance.requests.query_rows import ask
from conformance.requests.transcripts import Conversation, Row, remark_of
from conformance.servers.raw_client import (
    RawClient,
    inner_messages,
    property_text,
    pull_fields,
    send_fields,
    short_form,
    topic_fields,
)
from conformance.servers.remoting import Reply

TOPIC, GROUP = "kept", "givers"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
KEY = {"UNIQ_KEY": "key"}
ID = re.compile(r"\b[0-9A-F]{32}\b")
PULL, VIEW = 11, 33
LATEST_MS = 1_700_000_000_001
"""Later than any message here is said to be born."""


def prepared(client: RawClient) -> None:
    """The first message is at position 0."""
    client.update_topic(TOPIC, 4)
    properties = {"TAGS": "B", "KEYS": "kk", "UNIQ_KEY": "first", "WAIT": "true"}
    client.send(TOPIC, 3, b"given back", properties, born_ms=1_600_000_000_000)


def shown(row: Row, reply: Reply) -> str:
    if row.code in (PULL, VIEW):
        return "; ".join(map(_message, stored(reply.body)))
    fields = sorted(reply.fields.items()) if reply.code == 0 else ""
    return ID.sub("ID", f"{remark_of(reply)!r} {fields} {reply.body.decode()}")


def _message(one: Stored) -> str:
    born = one.born_ms if one.born_ms < LATEST_MS else "now"
    text = ID.sub("ID", one.text).replace("\x01", "=").replace("\x02", ";")
    return (
        f"{one.topic} {one.queue} {one.offset} flags {one.flag} {one.sys_flag} born {born} tries {one.tries}"
        f"{' ended' if one.prepared else ''} {one.body!r} {text}"
    )


def rows() -> Conversation:
    yield from _sends()
    yield from _batches()
    yield from _new_topics()
    yield from _closed_topics()
    yield from _corrected_pulls()
    yield from _direct_sends()
    halves = yield from _half_messages()
    yield from _given_back()
    yield from _ended(halves)
    yield Row(None, PULL, pull_fields("reader", "OFFSET_MOVED_EVENT", 0, queueOffset=0, maxMsgNums=32))


def _send(properties: Mapping[str, str], **changes: Any) -> Row:
    body = changes.pop("body", b"x")
    return Row(None, 10, send_fields("p", TOPIC, 0, {**KEY, **properties}, **changes), body)


def _batch(texts: list[bytes], **changes: Any) -> Row:
    messages = [(b"body %d" % number, text) for number, text in enumerate(texts)]
    fields = send_fields("p", TOPIC, 1, {}, **{"batch": True, **changes})
    return Row(None, 320, short_form(fields), inner_messages(messages))


def _seen(row: Row, count: int = 1) -> Generator[Row, Reply, int]:
    """The row, and views of the messages that it stored; the place of the first."""
    reply = yield row
    if "msgId" not in reply.fields:
        return -1
    first = at = int(reply.fields["msgId"].partition(",")[0][16:], 16)
    for _ in range(count):
        view = yield ask(VIEW, offset=at)
        at += struct.unpack_from(">i", view.body)[0]
    return first


def _waited(topic: str, queue_id: int, offset: int) -> Row:
    """The message there, as soon as there is one."""
    fields = pull_fields("reader", topic, queue_id, queueOffset=offset, maxMsgNums=1)
    return Row(None, PULL, fields, waits=True)


def _set(**settings: object) -> Row:
    return ask(25, "".join(f"{key}={value}\n" for key, value in settings.items()).encode())


def _topic(name: str, queues: int = 4, **changes: Any) -> Row:
    return Row(None, 17, topic_fields(name, queues) | changes)


def _sends() -> Conversation:
    for properties in ({}, {"TAGS": "A", "KEYS": "a b", "WAIT": "true"}, {"mine": "\u00fc", "WAIT": "false"}):
        yield from _seen(_send(properties))
        short = short_form(send_fields("p", TOPIC, 0, {**KEY, **properties}))
        yield from _seen(Row(None, 310, short, b"short form"))
    for changes in ({"flag": 7, "sysFlag": 1}, {"reconsumeTimes": 3, "bornTimestamp": 5}, {"sysFlag": 0x80}):
        yield from _seen(_send({}, **changes))
    yield from _seen(_send({"INNER_NUM": "2"}))
    yield from _seen(_send({"TIMER_DELAY_SEC": "x"}, sysFlag=0x80))
    for priority in ("2", "9", "abc", "-1", "2147483648", " 3", "+1", "", "1.5", "\u0663"):
        yield from _seen(_send({"_SYS_MSG_PRIORITY_": priority}))
    yield from _seen(_send({"_SYS_MSG_PRIORITY_": "2", "__SHARDINGKEY": "k"}))
    timers = {"TIMER_DELAY_SEC": "77", "TIMER_DELIVER_MS": "5", "TIMER_DELAY_MS": "9"}
    for level in ("0", "-1", "6", "99"):  # none that is due while the conversation lasts
        yield from _seen(_send({"KEYS": "kd", "DELAY": level, "WAIT": "false"}))
        yield from _seen(_send({"DELAY": level, **(timers if level == "6" else {})}, queueId=3, flag=7))
    for second in ("0", "-5", "9223372036854775807", "9223372036854775808", "259201", "x", " 2"):
        yield from _seen(_send({"TIMER_DELAY_SEC": second}))
    yield from _seen(_send({"TIMER_DELAY_MS": "-5"}))
    yield from _seen(_send({"TIMER_DELIVER_MS": "1"}))
    yield from _seen(_send({"TIMER_DELIVER_MS": "1", "TIMER_DEL_UNIQKEY": "key"}))
    yield from _seen(_send({"TIMER_DELAY_SEC": "0", "TIMER_OUT_MS": "5"}))
    yield _topic("kept_tags", topicFilterType="MULTI_TAG")
    for sys_flag in (1, 1, 3):
        yield from _seen(_send({}, topic="kept_tags", sysFlag=sys_flag))
        yield from _seen(_batch([b"", b"odd"], topic="kept_tags", sysFlag=sys_flag), 2)


def _batches() -> Conversation:
    mixed = [b"TAGS\x01A", b"", b"KEYS\x01k\x02", b"UNIQ_KEY\x01key", b"TAGS\x01B\x02UNIQ_KEY\x01other\x02"]
    for texts in (mixed, mixed[:1], mixed[3:], mixed[1:3]):
        yield from _seen(_batch(texts), len(texts))
        yield from _seen(_batch(texts, properties=property_text({"WAIT": "true"}), flag=7), len(texts))
    yield from _seen(_batch(mixed, reconsumeTimes=3, bornTimestamp=5, sysFlag=1), len(mixed))
    for changes in (
        {"sysFlag": 4},
        {"properties": property_text({"DELAY": "1"})},
        {"topic": "%RETRY%givers"},
    ):
        yield from _seen(_batch(mixed, **changes))
    short = _batch(mixed)
    yield from _seen(Row(None, 310, short.fields, short.body), len(mixed))


def _new_topics() -> Conversation:
    for name, changes in (
        ("young", {"defaultTopicQueueNums": 3}),
        ("young_many", {"defaultTopicQueueNums": 9}),
        ("young_unit", {"unitMode": True}),
        ("%RETRY%young", {}),
        ("%RETRY%young_unit", {"unitMode": True}),
    ):
        yield from _seen(_send({}, topic=name, **changes))
        yield ask(351, topic=name)
    yield _set(autoCreateTopicEnable=False)
    for name, changes in (("never", {}), ("%RETRY%plain", {}), ("%RETRY%plain_unit", {"unitMode": True})):
        yield from _seen(_send({}, topic=name, **changes))
        yield ask(351, topic=name)
    yield _set(autoCreateTopicEnable=True)


def _closed_topics() -> Conversation:
    """Queues and permissions: the words name the whole topic."""
    for name, changes in (
        ("made", {"readQueueNums": 2, "writeQueueNums": 3}),
        ("made_ordered", {"order": True}),
        ("made_fifo", {"attributes": "+message.type=FIFO"}),
        ("made_tags", {"topicFilterType": "MULTI_TAG", "topicSysFlag": 2}),
        ("made_closed", {"perm": 4}),
    ):
        yield _topic(name, **changes)
        yield ask(351, topic=name)
        for queue_id in (2, 3, 9):
            yield _send({}, topic=name, queueId=queue_id)
    for permission in (2, 4, 0, 6):
        yield _set(brokerPermission=permission)
        for name in ("made_ordered", "made", "bad topic"):
            yield _send({}, topic=name)


def _corrected_pulls() -> Conversation:
    """4.9 writes an event for an offset that no message can have; it is read at the end."""
    yield _topic("moved", 1)
    yield from _seen(_send({}, topic="moved"))
    yield _waited("moved", 0, 0)
    for offset in (1, 99):
        yield Row(None, PULL, pull_fields("reader", "moved", 0, queueOffset=offset))


def _direct_sends() -> Conversation:
    """What a consumer does whose 36 failed: it sends the copy itself."""
    for group, settings in (
        ("direct", {}),
        ("direct_two", {"retryMaxTimes": 2}),
        ("direct_none", {"retryMaxTimes": 0}),
        ("direct_locked", {}),
    ):
        yield Row(None, 200, {}, json.dumps({"groupName": group, **settings}).encode())
        if group == "direct_locked":
            queues = [{"topic": TOPIC, "brokerName": "broker-a", "queueId": 0}]
            locks = {"clientId": "c", "consumerGroup": group, "mqSet": queues}
            yield ask(41, json.dumps(locks).encode())
        topic = f"%RETRY%{group}"
        for tries in (0, 1, 2, 3, 15, 16, 17):
            yield from _seen(_send({}, topic=topic, reconsumeTimes=tries))
            yield from _seen(_send({}, topic=topic, reconsumeTimes=tries, maxReconsumeTimes=16))
        yield ask(351, topic=f"%DLQ%{group}")
    # A dead letter does not wait; on 4.9 it does.
    yield from _seen(_send({"DELAY": "10"}, topic="%RETRY%direct", reconsumeTimes=17, maxReconsumeTimes=16))
    yield _set(rejectTransactionMessage=True)
    for properties in ({"TRAN_MSG": "true"}, {"TRAN_MSG": "true", "DELAY": "11"}):
        yield from _seen(_send(properties))
        yield from _seen(_send(properties, topic="%RETRY%direct", reconsumeTimes=1))
    yield _set(rejectTransactionMessage=False)


def _given_back() -> Conversation:
    """36: the copy, its level, and where it ends."""
    seen = {(SCHEDULE_TOPIC, 17): 1}
    """The newest known offset of a queue: two sends of the highest level are there."""

    def newest(topic: str, queue_id: int) -> Iterator[Row]:
        offset = seen[topic, queue_id] = seen.get((topic, queue_id), -1) + 1
        yield _waited(topic, queue_id, offset)

    def back(at: int, level: int = 0, **changes: object) -> Row:
        fields = {"offset": at, "group": GROUP, "delayLevel": level, "originMsgId": "x", "originTopic": TOPIC}
        return ask(36, **{**fields, "unitMode": False, "maxReconsumeTimes": 16, **changes})

    places = {}
    retried = {"RETRY_TOPIC": "T2", "ORIGIN_MESSAGE_ID": "ABC"}
    for tries in (1, 2, 15, 16):
        sent = _send(retried, topic="%RETRY%retried", reconsumeTimes=tries, maxReconsumeTimes=99)
        places[tries] = yield from _seen(sent)
    yield Row(None, 200, {}, json.dumps({"groupName": GROUP, "retryQueueNums": 1}).encode())
    # From here on, copies enter the log when they are due.
    for at, level in ((0, 3), (places[1], 4), (places[2], 5), (places[15], 18)):
        yield back(at)
        yield from newest(SCHEDULE_TOPIC, level - 1)
    for level in (7, 99):
        yield back(0, level)
        yield from newest(SCHEDULE_TOPIC, min(level, 18) - 1)
    yield back(places[16], 0, maxReconsumeTimes=17)
    yield from newest(SCHEDULE_TOPIC, 17)
    for at, level, most in ((0, -1, 16), (places[16], 0, 16), (places[2], 0, 2), (0, 0, 0)):
        yield back(at, level, maxReconsumeTimes=most)
        yield from newest(f"%DLQ%{GROUP}", 0)
    for topic in (f"%RETRY%{GROUP}", f"%DLQ%{GROUP}"):
        yield ask(351, topic=topic)
    for at in (-1, 3, 10**9):
        yield back(at)
    yield Row(None, 200, {}, json.dumps({"groupName": "three", "retryQueueNums": 3}).encode())
    yield back(0, group="three", unitMode=True)
    yield ask(351, topic="%RETRY%three")
    yield _topic("%RETRY%closed", 1, perm=4)
    yield back(0, group="closed")


def _half_messages() -> Generator[Row, Reply, list[int]]:
    """Three, and where they are."""
    pairs = {"TRAN_MSG": "true", "PGROUP": "p", "WAIT": "true", "KEYS": "k1", "TAGS": "ta"}
    halves = []
    yield _topic("halves")
    for number in range(3):
        sent = _send(pairs, topic="halves", body=b"half %d" % number, queueId=2, sysFlag=4, flag=7)
        halves.append((yield from _seen(sent)))
    yield from _seen(_send({**pairs, "DELAY": "9"}, sysFlag=4))
    yield ask(30, topic="halves", queueId=2)
    return halves


def _ended(halves: list[int]) -> Iterator[Row]:
    fields = {"producerGroup": "p", "fromTransactionCheck": False, "msgId": "m"}
    for number, how in ((1, 8), (2, 12), (0, 5)):
        place = {"tranStateTableOffset": number, "commitLogOffset": halves[number]}
        yield ask(37, **fields, **place, commitOrRollback=how)
    yield _waited("halves", 2, 0)
    yield ask(30, topic="halves", queueId=2)
