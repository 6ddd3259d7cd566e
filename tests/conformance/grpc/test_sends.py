"""What a send stores, and where: the same at our endpoint and at the official proxy."""

import time

import pytest
from pocketmq.grpc_endpoint.messages import (
    Code,
    Encoding,
    Message,
    timestamp_of,
)

from conformance.grpc.announcing import new_id
from conformance.grpc.rows import message, send, topic
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from grpc_client import GrpcClient, changed


def stored(server: Server, name: str, queue_id: int, offset: int) -> str:
    """The properties of a stored message, readable."""
    with RawClient(server) as raw:
        reply = raw.call(
            11,
            consumerGroup="reader",
            topic=name,
            queueId=queue_id,
            queueOffset=offset,
            maxMsgNums=1,
            sysFlag=4,
            commitOffset=0,
            suspendTimeoutMillis=0,
            subscription="*",
            subVersion=0,
            expressionType="TAG",
        )
    assert reply.code == 0, reply
    return _text(reply.body)


def _text(record: bytes) -> str:
    body_size = int.from_bytes(record[84:88], "big")
    at = 88 + body_size
    at += 1 + record[at]
    size = int.from_bytes(record[at : at + 2], "big")
    return record[at + 2 : at + 2 + size].decode().replace("\x01", "=").replace("\x02", ";")


ENDING = "__BORNHOST=myhost;BORN_TIMESTAMP=1790000000005;TRACE_ON=true;"


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (
            message(born_timestamp=timestamp_of(1_790_000_000_005)),
            "MSG_REGION=DefaultRegion;UNIQ_KEY={id};CLUSTER=DefaultCluster;PGROUP=OneT;RECONSUME_TIME=0;"
            + ENDING,
        ),
        (
            message(
                user={"u": "1", "Ü": "ö", "a": "b"},
                tag="A",
                keys=["k1", "k2"],
                trace_context="tc",
                body_encoding=Encoding.GZIP,
                delivery_attempt=3,
                born_timestamp=timestamp_of(1_790_000_000_005),
            ),
            None,
        ),
    ],
    ids=["plain", "full"],
)
async def test_stored_properties(client: GrpcClient, side: Server, of: Message, text: str | None) -> None:
    message_id = new_id()
    sent = changed(
        of,
        topic=topic("OneT"),
        system_properties=changed(of.system_properties, message_id=message_id),
    )
    reply = await client.ask(send(sent), seconds=20)
    (entry,) = reply.entries
    assert (reply.status.code, entry.status.code) == (Code.OK, Code.OK)
    assert (entry.message_id, entry.transaction_id, entry.recall_handle) == (message_id, message_id, "")
    got = stored(side, "OneT", 0, entry.offset)
    if text is not None:
        assert got == text.format(id=message_id)
    else:
        assert dict(pair.split("=", 1) for pair in got.split(";") if pair) == {
            "MSG_REGION": "DefaultRegion",
            "UNIQ_KEY": message_id,
            "CLUSTER": "DefaultCluster",
            "PGROUP": "OneT",
            "RECONSUME_TIME": "3",
            "__BORNHOST": "myhost",
            "BORN_TIMESTAMP": "1790000000005",
            "TRACE_ON": "true",
            "TAGS": "A",
            "KEYS": "k1 k2",
            "TRACE_CONTEXT": "tc",
            "u": "1",
            "Ü": "ö",
            "a": "b",
        }
        FULL.setdefault("text", got.replace(message_id, "ID"))
        assert got.replace(message_id, "ID") == FULL["text"]


FULL: dict[str, str] = {}
"""The order of the stored properties, which must be that of the other side."""


@pytest.mark.parametrize(
    ("group", "queue_id"), [("mg", 2), ("b", 5), ("order-1", 3), ("组", 2), ("x0123456789", 2)]
)
async def test_queue_of_a_message_group(client: GrpcClient, side: Server, group: str, queue_id: int) -> None:
    message_id = new_id()
    reply = await client.ask(send(message("FifoT", message_id=message_id, message_group=group)), seconds=20)
    assert f"UNIQ_KEY={message_id};" in stored(side, "FifoT", queue_id, reply.entries[0].offset)


async def test_batch_has_one_receipt(client: GrpcClient, side: Server) -> None:
    ids = [new_id() for _ in range(3)]
    reply = await client.ask(send(*(message("OneT", message_id=one) for one in ids)), seconds=20)
    (entry,) = reply.entries
    assert (entry.transaction_id, len(entry.message_id)) == (ids[0], 32)
    texts = [stored(side, "OneT", 0, entry.offset + number) for number in range(3)]
    assert [f"UNIQ_KEY={one};" in text for one, text in zip(ids, texts, strict=True)] == [True] * 3
    assert "TAGS=;" in texts[1]
    assert "MSG_REGION" not in texts[1]
    order = [pair.partition("=")[0] for pair in texts[1].split(";")]
    assert order == BATCH.setdefault("order", order)


BATCH: dict[str, list[str]] = {}


@pytest.mark.parametrize("priority", [0, 2, 9])
async def test_priority_is_the_queue(client: GrpcClient, side: Server, priority: int) -> None:
    message_id = new_id()
    reply = await client.ask(send(message("PriorityT", message_id=message_id, priority=priority)), seconds=20)
    text = stored(side, "PriorityT", min(priority, 3), reply.entries[0].offset)
    assert f"UNIQ_KEY={message_id};" in text


async def test_recall_handle_of_a_timed_message(client: GrpcClient) -> None:
    now_ms = int(time.time() * 1000)
    due = timestamp_of(now_ms + 3_600_000)
    reply = await client.ask(send(message("DelayT", message_id=new_id(), delivery_timestamp=due)), seconds=20)
    assert reply.entries[0].recall_handle
    past = timestamp_of(now_ms - 1000)
    reply = await client.ask(
        send(message("DelayT", message_id=new_id(), delivery_timestamp=past)), seconds=20
    )
    assert reply.entries[0].recall_handle == ""
