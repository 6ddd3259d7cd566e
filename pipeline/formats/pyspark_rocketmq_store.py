"""Spark imports every module named `pyspark_*` when it meets an unknown format: this one is `rocketmq-store`."""

from pocketmq.pipeline.sources.located_readers import LocatedStoreSource as DefaultSource

__all__ = ["DefaultSource"]
