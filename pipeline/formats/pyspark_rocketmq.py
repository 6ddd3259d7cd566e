"""Spark imports every module named `pyspark_*` when it meets an unknown format: this one is `rocketmq`."""

from pocketmq.pipeline.spark.sources.topic_source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
