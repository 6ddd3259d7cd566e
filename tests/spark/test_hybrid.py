"""A topic is read from its broker's files by batches and streams of Spark, with the same rows as from the broker."""

from pathlib import Path

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ
from pyspark.sql import SparkSession

from pipeline.topics import filled
from spark.conftest import ADDRESS, bodies

COUNT = 20


def test_a_batch_and_a_stream_read_files_and_what_is_sent_later(spark: SparkSession, tmp_path: Path) -> None:
    with EmbeddedServer(store=tmp_path / "store") as server:
        rocketmq = RocketMQ(server)
        topic = filled(rocketmq, "hybrid", COUNT, queues=2, text="m{:02}")
        options = {ADDRESS: server.namesrv_addr, "subscribe": topic, "startingOffsets": "earliest"}
        options["storePath"] = str(tmp_path / "store")
        batch = spark.read.format("rocketmq").options(**options).load()
        assert bodies(batch) == [f"m{number:02}" for number in range(COUNT)]
        assert {row.brokerName for row in batch.select("brokerName").collect()} == {"broker-a"}
        stream = spark.readStream.format("rocketmq").options(**options).load()
        for end in (COUNT, 2 * COUNT):
            for number in range(end - COUNT, end) if end > COUNT else ():
                rocketmq.send(topic, f"m{number:02}", queue_id=number % 2)
            writer = stream.selectExpr("body").writeStream.format("parquet")
            writer = writer.option("path", str(tmp_path / "rows"))
            query = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
            query.trigger(availableNow=True).start().awaitTermination()
            assert bodies(spark.read.parquet(str(tmp_path / "rows"))) == [
                f"m{number:02}" for number in range(end)
            ]
        with pytest.raises(Exception, match=r"option storePath: .* is not a folder"):
            spark.read.format("rocketmq").options(**{**options, "storePath": "/nowhere"}).load().collect()
