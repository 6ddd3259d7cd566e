"""How many rows a streaming query wrote, batch by batch.

Spark keeps its last progress reports only: `KEPT_REPORTS` of them, whatever the query does. `BatchCounts.look` adds up
those that are new, so it must be called before Spark has dropped one: every second is enough.
"""

from typing import TYPE_CHECKING, Any, Final

from .metrics import observed_fields

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT_REPORTS: Final = 100


def keep_reports(spark: "SparkSession") -> None:
    """Let the queries that start from now on keep as many reports as `look` needs."""
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", KEPT_REPORTS)


class BatchCounts:
    """The rows of one query, as its metric `name` counts them: `frame.observe(name, count("*").alias("messages"))`."""

    def __init__(self, query: Any, name: str) -> None:
        self._query = query
        self._name = name
        self._last_batch = -1
        self.rows = 0

    def look(self) -> int:
        """Add what is new, and return the sum. Only if there is something new all reports are fetched."""
        last = self._query.lastProgress
        if last is None or last.batchId <= self._last_batch:
            return self.rows
        for progress in self._query.recentProgress:
            counts = progress.observedMetrics.get(self._name)
            if progress.batchId > self._last_batch and counts is not None:
                self._last_batch = progress.batchId
                self.rows += int(observed_fields(counts.asDict()).get("messages") or 0)
        return self.rows
