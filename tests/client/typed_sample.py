"""Right and wrong uses of the client, for type checkers: in `test_types.py` exactly the marked lines are wrong."""

from datetime import UTC, datetime, timedelta

from pocketmq.client import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    LitePullConsumer,
    LocalTransactionState,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TransactionProducer,
)


async def nothing(message: MessageExt) -> None: ...
async def status(message: MessageExt) -> ConsumeConcurrentlyStatus: ...
def plain(message: MessageExt, context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus | None: ...
def ordered(message: MessageExt, context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus: ...
async def several(messages: list[MessageExt]) -> None: ...
async def a_bool(message: MessageExt) -> bool: ...
async def of_bytes(message: bytes) -> None: ...


PushConsumer("g", nothing, start="first", subscription={"T": "*"})
PushConsumer("g", status, start=datetime.now(UTC))
PushConsumer("g", plain)
PushConsumer("g", ordered, orderly=True)
PushConsumer("g", batch_listener=several)
PushConsumer("g", a_bool)  # wrong
PushConsumer("g", of_bytes)  # wrong
PushConsumer("g", several)  # wrong
PushConsumer("g", batch_listener=nothing)  # wrong
PushConsumer("g", start="earliest")  # wrong
LitePullConsumer("g", start="last", pull_batch_sise=5)  # wrong


def committed(message: MessageExt) -> LocalTransactionState: ...
async def later(message: MessageExt) -> LocalTransactionState: ...
def says_true(message: MessageExt) -> bool: ...
async def says_none(message: MessageExt) -> None: ...


TransactionProducer("g", committed)
TransactionProducer("g", later)
TransactionProducer("g", lambda message: LocalTransactionState.UNKNOW)
TransactionProducer("g", says_true)  # wrong
TransactionProducer("g", says_none)  # wrong


async def sends(producer: Producer, transactions: TransactionProducer) -> None:
    await producer.send("T", "text", keys=["a", "b"], delay=timedelta(seconds=5))
    await producer.send(Message("T", b"bytes", keys="a", deliver_at=datetime.now(UTC)))
    await producer.send("T", b"x", delay=5)  # wrong
    await producer.send("T", b"x", tag="a")  # wrong
    await producer.send("T", 5)  # wrong
    await transactions.send_in_transaction("T", b"x", lambda message, arg: LocalTransactionState.UNKNOW)
    await transactions.send_in_transaction("T", b"x", lambda message, arg: True)  # wrong
    message: bytes = Message("T", "text").body
    print(message, b"x" in Message("T", "text").body)
