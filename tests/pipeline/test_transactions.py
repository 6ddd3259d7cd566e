"""The number of the last batch of a transactional stream is known as long as one broker is."""

import pytest
from pocketmq.pipeline.spark.sink.sink_options import SinkOptions
from pocketmq.pipeline.spark.sink.transactions import is_batch_committed, mark_batch_committed
from pocketmq.testing import RocketMQCluster


@pytest.mark.parametrize("away", ["b0", "b1"])
def test_a_batch_is_known_to_be_committed_although_a_broker_is_away(away: str) -> None:
    with RocketMQCluster(brokers=2) as cluster:
        cluster.grow("T", queues=2)
        options = SinkOptions(namesrv_addr=cluster.namesrv_addr, topic="T", retry_timeout_ms=500)
        assert not is_batch_committed(options, "query", 0)
        mark_batch_committed(options, "query", 0)
        cluster.broker(away).kill()
        assert is_batch_committed(options, "query", 0)
        assert not is_batch_committed(options, "query", 1)
