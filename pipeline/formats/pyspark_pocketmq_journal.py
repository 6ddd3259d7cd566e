"""Spark imports every module named `pyspark_*` when it meets an unknown format: this one is `pocketmq-journal`."""

from pocketmq.pipeline.spark.sources.journal_source import JournalSource as DefaultSource

__all__ = ["DefaultSource"]
