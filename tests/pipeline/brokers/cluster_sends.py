"""Messages sent to a queue of a broker of a cluster."""

from pocketmq.pipeline.tables.brokers.batch_sender import BatchSender
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.topic_options import SourceOptions, read_source_options
from pocketmq.testing import RocketMQCluster


def send_to(cluster: RocketMQCluster, queue: Queue, first: int, count: int) -> None:
    """Messages `m0`, `m1` ... into one queue."""
    with BrokerClient(cluster.namesrv_addr).closing() as client:
        sender = BatchSender(client, group="g", in_flight=1, timeout_ms=5_000, retry_timeout_ms=5_000)
        for number in range(first, first + count):
            sender.send_one(queue.topic, b"m%d" % number, "", 0, queue=queue)
        sender.finish()


def options_of(
    cluster: RocketMQCluster, topic: str, *, is_stream: bool = False, **more: str
) -> SourceOptions:
    return read_source_options(
        {"nameServer": cluster.namesrv_addr, "subscribe": topic, **more}, is_stream=is_stream
    )
