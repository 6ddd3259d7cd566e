"""Messages that do not enter their topic at once: half messages and timed ones, as requests of a raw client."""

import time
from collections.abc import Mapping

from conformance.examples.stored import Stored, stored
from conformance.servers.raw_client import RawClient, send_fields, wait_until
from conformance.servers.remoting import Reply

END_TRANSACTION = 37
PREPARED, COMMIT, ROLLBACK = 4, 8, 12
GROUP = "transaction_group"
HALF_TOPIC, OP_TOPIC, TIMER_TOPIC = (
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "rmq_sys_wheel_timer",
)
# Quick checks; the keys of the 4.9 and the 5.5 line.
CONF: dict[str, object] = {
    "transactionCheckInterval": 1000,
    "transactionTimeOut": 1500,
    "transactionOpBatchInterval": 300,
    "recallMessageEnable": True,
    "brokerFastFailureEnable": False,
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20_000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
    "mappedFileSizeTimerLog": 1 << 20,
}


def send(
    client: RawClient, topic: str, body: bytes, properties: Mapping[str, str], sys_flag: int = 0
) -> Reply:
    """SEND_MESSAGE to queue 1; the answer may be a refusal."""
    born_ms = int(time.time() * 1000)
    fields = send_fields(GROUP, topic, 1, properties, sysFlag=sys_flag, bornTimestamp=born_ms, flag=7)
    return client.call(10, body, **fields)


def send_half(client: RawClient, topic: str, body: bytes, **properties: str) -> Reply:
    named = {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": f"key-{body.decode()}", **properties}
    reply = send(client, topic, body, named, PREPARED)
    assert reply.code == 0, reply
    return reply


def end(client: RawClient, half: Reply, how: int, **changes: object) -> Reply:
    """END_TRANSACTION after the send, two-way."""
    fields: dict[str, object] = {
        "producerGroup": GROUP,
        "tranStateTableOffset": half.fields["queueOffset"],
        "commitLogOffset": int(half.fields["msgId"][16:], 16),
        "commitOrRollback": how,
        "fromTransactionCheck": False,
        "msgId": "m",
        "transactionId": "t",
        **changes,
    }
    return client.call(END_TRANSACTION, b"", **fields)


def send_timed(client: RawClient, topic: str, body: bytes, **properties: str) -> Reply:
    return send(client, topic, body, {"UNIQ_KEY": f"key-{body.decode()}", "WAIT": "true", **properties})


def messages(client: RawClient, topic: str, queue_id: int = 1) -> list[Stored]:
    """All of a queue."""
    found: list[Stored] = []
    offset, last = client.min_offset(topic, queue_id), client.max_offset(topic, queue_id)
    while offset < last:
        reply = client.pull("waiting_reader", topic, queue_id, offset)
        assert reply.code == 0, reply
        found += stored(reply.body)
        offset = int(reply.fields["nextBeginOffset"])
    return found


def wait_for(client: RawClient, topic: str, count: int, timeout: float = 60.0) -> list[Stored]:
    """The messages of queue 1 once it has that many."""
    wait_until(lambda: client.max_offset(topic, 1) >= count, f"{topic} never held {count} messages", timeout)
    return messages(client, topic)
