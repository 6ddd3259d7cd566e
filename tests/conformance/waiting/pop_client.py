"""POP requests as a client sends them, and the messages of the answers: functions on top of `RawClient`.

`popped` splits an answer into messages with the receipt each is acknowledged by, as the official client builds it.
"""

import time
from dataclasses import dataclass

from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import decode_records

from conformance.servers.raw_client import RawClient
from conformance.servers.remoting import Reply

POP, ACK, CHANGE_INVISIBLE, NOTIFICATION, POLLING_INFO, PEEK = 200050, 200051, 200053, 200054, 200055, 200052
BATCH_ACK, QUERY_ASSIGNMENT, SET_MODE, GET_MODES = 200151, 400, 401, 402


@dataclass(frozen=True)
class Popped:
    """One message of an answer; `topic` is where it is stored, `receipt` what acknowledges it."""

    topic: str
    body: str
    queue_id: int
    offset: int
    reconsume_times: int
    receipt: str
    properties: dict[str, str]


def now_ms() -> int:
    return int(time.time() * 1000)


def pop(client: RawClient, group: str, topic: str, /, **changes: object) -> Reply:
    """POP_MESSAGE of any queue, from the oldest message, without waiting."""
    fields: dict[str, object] = {"consumerGroup": group, "topic": topic, "queueId": -1, "maxMsgNums": 32}
    fields |= {"invisibleTime": 60_000, "pollTime": 0, "bornTime": now_ms(), "initMode": 0}
    return client.call(POP, b"", **{**fields, "expType": "TAG", "exp": "*", "order": False, **changes})


def popped(reply: Reply, group: str, topic: str) -> list[Popped]:
    """The messages of an answer, with their receipts."""
    if reply.code != 0:
        return []
    places = []
    starts = [part.split(" ") for part in reply.fields["startOffsetInfo"].split(";")]
    offsets = [part.split(" ") for part in reply.fields["msgOffsetInfo"].split(";")]
    for (flag, queue, start), (_, _, list_text) in zip(starts, offsets, strict=True):
        places += [(flag, int(queue), int(start), int(offset)) for offset in list_text.split(",")]
    stored = {"0": topic, "1": f"%RETRY%{group}_{topic}", "2": f"%RETRY%{group}+{topic}"}
    fields, messages = reply.fields, []
    for record, place in zip(decode_records(reply.body), places, strict=True):
        flag, queue_id, first, offset = place
        receipt = (
            f"{first} {fields['popTime']} {fields['invisibleTime']} {fields['reviveQid']} {flag} broker-a "
            f"{queue_id} {offset}"
        )
        messages.append(
            Popped(
                stored[flag],
                bytes(record.body).decode(),
                queue_id,
                offset,
                record.reconsume_times,
                receipt,
                decode_properties(record.properties),
            )
        )
    return messages


def _receipt(group: str, message: Popped) -> dict[str, object]:
    fields: dict[str, object] = {"consumerGroup": group, "topic": message.topic, "queueId": message.queue_id}
    return {**fields, "extraInfo": message.receipt, "offset": message.offset}


def ack(client: RawClient, group: str, message: Popped) -> Reply:
    return client.call(ACK, b"", **_receipt(group, message))


def change_invisible(
    client: RawClient, group: str, message: Popped, invisible_ms: int, **more: object
) -> Reply:
    fields = {**_receipt(group, message), "invisibleTime": invisible_ms}
    return client.call(CHANGE_INVISIBLE, b"", **fields, **more)


def pop_until(client: RawClient, group: str, topic: str, count: int, seconds: float = 45.0) -> list[Popped]:
    """Pop until that many messages have arrived, or time is up."""
    messages: list[Popped] = []
    deadline = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < deadline:
        messages += popped(pop(client, group, topic, pollTime=2000), group, topic)
    return messages
