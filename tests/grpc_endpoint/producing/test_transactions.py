"""Transactions of gRPC clients: half messages, their ends, and the check of those without an end."""

from typing import Any

import pytest
from pocketmq.broker.storing.messages import record_at_offset
from pocketmq.grpc_endpoint.messages import (
    Code,
    Duration,
    EndTransactionRequest,
    Message,
    MessageType,
    Resource,
    TransactionResolution,
    TransactionSource,
    timestamp_of,
)
from pocketmq.protocol.message.topics import HALF_TOPIC

from grpc_calls import GrpcBroker, new_message, producer, send

PX = "org.apache.rocketmq.proxy.common.ProxyException: "
ID = "01AABBCCDDEEFF00112233445566000002"
LOST = (Code.INTERNAL_SERVER_ERROR, PX + "cannot found transaction data")


def half(**system: Any) -> Message:
    return new_message("tr", b"t2", ID, {"k": "v"}, message_type=MessageType.TRANSACTION, **system)


def end(
    resolution: TransactionResolution,
    transaction_id: str = ID,
    source: TransactionSource = TransactionSource.SOURCE_CLIENT,
) -> EndTransactionRequest:
    return EndTransactionRequest(
        topic=Resource(name="tr"),
        message_id=ID,
        transaction_id=transaction_id,
        resolution=resolution,
        source=source,
    )


COMMIT, ROLLBACK = TransactionResolution.COMMIT, TransactionResolution.ROLLBACK
NOT_KNOWN = TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED


@pytest.fixture
async def tr(grpc: GrpcBroker) -> GrpcBroker:
    grpc.topic("tr", "TRANSACTION", queues=1)
    return grpc


def count(grpc: GrpcBroker, topic: str) -> int:
    return sum(queue.max_offset - queue.min_offset for queue in grpc.broker.store.queues_of(topic))


@pytest.mark.parametrize(
    ("resolution", "delivered"), [(COMMIT, 1), (ROLLBACK, 0), (NOT_KNOWN, 0)], ids=lambda value: str(value)
)
async def test_a_committed_message_is_delivered(
    tr: GrpcBroker, resolution: TransactionResolution, delivered: int
) -> None:
    tr.call(send(half()))
    assert (count(tr, "tr"), count(tr, HALF_TOPIC)) == (0, 1)
    assert tr.refused(end(resolution)) == (Code.OK, "OK")
    assert count(tr, "tr") == delivered


async def test_end_after_half_a_minute_is_too_late(tr: GrpcBroker, clock: Any) -> None:
    tr.call(send(half()))
    clock.advance(30_001)
    assert tr.refused(end(COMMIT)) == LOST


async def test_producer_that_never_named_the_topic_is_not_asked(tr: GrpcBroker, clock: Any) -> None:
    stream = tr.telemetry(producer("other"))
    tr.call(send(half(born_timestamp=timestamp_of(clock.wall_ms()))))
    clock.advance(60_000)
    await tr.broker.transactions.check.check()
    assert len(stream.replies) == 1


async def test_recovery_time_is_stored(tr: GrpcBroker) -> None:
    tr.call(send(half(orphaned_transaction_recovery_duration=Duration(seconds=77))))
    (queue,) = tr.broker.store.queues_of(HALF_TOPIC)
    record = record_at_offset(tr.broker.store, queue, 0)
    assert record is not None
    assert b"CHECK_IMMUNITY_TIME_IN_SECONDS\x0177\x02" in bytes(record.properties)
