"""Spark imports every module named `pyspark_*` when it meets an unknown format: this one is `rocketmq-store`."""

from pocketmq.pipeline.spark.sources.store_source import StoreSource as DefaultSource

__all__ = ["DefaultSource"]
