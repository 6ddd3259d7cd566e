"""Messages sent to brokers as the sink sends them, and to a queue of a broker of a cluster."""

from typing import Any

import pyarrow as pa
from pocketmq.pipeline.spark.sink.sink_options import read_sink_options
from pocketmq.pipeline.spark.sink.task_sender import TaskSender
from pocketmq.pipeline.tables.brokers.batch_sender import BatchSender
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.testing import RocketMQCluster


def sender_to(client: BrokerClient, **more: Any) -> BatchSender:
    return BatchSender(
        client, **{"group": "g", "in_flight": 4, "timeout_ms": 10_000, "retry_timeout_ms": 5_000, **more}
    )


def send_rows(namesrv_addr: str, *batches: dict[str, Any], **options: str) -> None:
    """The rows of one task of the sink."""
    chosen = read_sink_options({"nameServer": namesrv_addr, **options})
    with BrokerClient(namesrv_addr).closing() as client:
        sender = sender_to(client)
        task = TaskSender(sender, chosen, "w")
        for batch in batches:
            task.send(pa.RecordBatch.from_pydict(batch))
        sender.finish()


def send_to(cluster: RocketMQCluster, queue: Queue, first: int, count: int) -> None:
    """Messages `m0`, `m1` ... into one queue."""
    with BrokerClient(cluster.namesrv_addr).closing() as client:
        sender = sender_to(client, in_flight=1)
        for number in range(first, first + count):
            sender.send_one(queue.topic, b"m%d" % number, "", 0, queue=queue)
        sender.finish()
