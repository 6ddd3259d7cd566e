"""What a mirror copies of a message: its own properties, and none with a meaning for the broker it came from."""

import asyncio
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.cli.pipeline.command import pipeline
from pocketmq.client import LocalTransactionState, Message, Producer, TransactionProducer
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.moving.mirrors import mirror_of, run


@pytest.fixture(scope="module")
def target() -> Iterator[RocketMQ]:
    with EmbeddedServer() as server:
        yield RocketMQ(server)


def test_only_what_consumers_could_read_is_copied_of_transactions(rocketmq: RocketMQ, target: RocketMQ) -> None:
    topic = rocketmq.topic("transactions", queues=1)

    outcomes = {
        b"committed": LocalTransactionState.COMMIT_MESSAGE,
        b"rolled back": LocalTransactionState.ROLLBACK_MESSAGE,
        b"open": LocalTransactionState.UNKNOW,
    }
    print(outcomes)


def test_props(rocketmq: RocketMQ, target: RocketMQ) -> None:
    topic = rocketmq.topic("props", queues=1)
    rocketmq.send(topic, "m", queue_id=0, tags="A", keys="k", properties={
        "color": "red", "PGROUP": "g", "TRAN_MSG": "false", "DELAY": "3",
    })
    for one in rocketmq.messages(topic): print(one)
    print(run(mirror_of(rocketmq, target, topic)).lead)
    for one in target.messages(topic): print(one.properties)
