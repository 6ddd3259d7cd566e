"""Progress of streaming queries: committed as offsets of consumer groups, as numbers, and as a line for each batch.

Spark commits a batch to its source when it plans the next one, and so never the last batch. This listener commits the
end offsets of every progress event, also of the last, for which the end of `commit_progress` waits. Lag tools then see
each query like a consumer. The numbers: `metrics.py`.
"""

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pocketmq.client.access import NO_ACCESS_KEYS, Access
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ...errors import CheckpointError, PipelineError
from ...tables.brokers.broker_client import BrokerClient
from ...tables.brokers.group_offsets import GroupWriter
from ...tables.planning.access_names import ACCESS_NAMES, read_access
from ...tables.planning.option_values import OptionValues, canonical_options
from .metrics import StreamMetrics, metrics_line, position_of, stream_metrics

_log = logging.getLogger("pocketmq.pipeline")

COMMIT_TIMEOUT_MS: Final = 3000
SETTLE_SECONDS: Final = 10.0
GROUP_PREFIX: Final = "spark-"
LONGEST_GROUP: Final = 200
Line = Callable[[str], None]
OnMetrics = Callable[[StreamMetrics], None]


class ProgressListener(StreamingQueryListener):
    """Commits the positions of queries, and calls `say` and `on_metrics` for each batch. Each is optional."""

    def __init__(
        self,
        namesrv_addr: str | None = None,
        group: str | None = None,
        say: Line | None = None,
        access: Access = NO_ACCESS_KEYS,
        *,
        on_metrics: OnMetrics | None = None,
        shares_group: bool = False,
    ) -> None:
        self._namesrv_addr = namesrv_addr
        self._group = group
        self._say = say
        self._access = access
        self._on_metrics = on_metrics
        self._shares_group = shares_group
        self._client: BrokerClient | None = None
        self._query_of: dict[str, str] = {}
        """Each group with the id of the query that commits to it."""

        self._last_batch: dict[str, int] = {}
        """The number of the last batch of each query that was reported."""
        self._running: set[str] = set()
        self._has_event = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is read yet. Spark waits for this call, and for no other."""
        self._running.add(str(event.id))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing new."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = json.loads(event.progress.json)
        try:
            self._report(progress)
        finally:
            self._last_batch[str(progress.get("id"))] = progress.get("batchId", 0)
            self._has_event.set()

    def _report(self, progress: dict[str, Any]) -> None:
        numbers = stream_metrics(progress)
        if numbers.missing:
            _log.warning(
                "%s: %d messages of batch %d are missing", numbers.query, numbers.missing, numbers.batch
            )
        if self._say is not None:
            self._say(metrics_line(numbers))
        if self._on_metrics is not None:
            self._on_metrics(numbers)
        if self._namesrv_addr is not None:
            for source in progress.get("sources", []):
                self._commit(source.get("endOffset"), str(progress.get("id")), progress.get("name"))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Its last batch was in a progress event, which came before this one."""
        self._running.discard(str(event.id))
        self._has_event.set()

    def settle(self, spark: SparkSession) -> None:
        """Wait, `SETTLE_SECONDS` at most, until the events of all batches that have ended are here."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while not self._is_settled(spark) and time.monotonic() < deadline:
            self._has_event.wait(0.1)
            self._has_event.clear()

    def _is_settled(self, spark: SparkSession) -> bool:
        try:
            active = {str(query.id): query.lastProgress for query in spark.streams.active}
        except Exception:  # Spark has been stopped: no event will come
            _log.debug("Spark names no queries", exc_info=True)
            return True
        reported = {query: last.batchId for query, last in active.items() if last is not None}
        return self._running <= active.keys() and all(
            self._last_batch.get(query, -1) >= batch for query, batch in reported.items()
        )

    def close(self) -> None:
        """Close the connections of the commits."""
        if self._client is not None:
            with self._client.closing():
                self._client = None

    def _commit(self, end: Any, query_id: str, name: str | None) -> None:
        try:
            position = position_of(end)
        except (CheckpointError, ValueError):
            return  # another kind of source
        letters = re.sub(r"[^a-zA-Z0-9_-]", "_", name or query_id)
        group = self._group or f"{GROUP_PREFIX}{letters}"[:LONGEST_GROUP]
        if self._query_of.setdefault(group, query_id) != query_id:
            _log.warning("query %s commits nothing: group %s is another query's", name or query_id, group)
            return
        assert self._namesrv_addr is not None
        # Events arrive on a thread of the gateway, so the listener has a client of its own: a client is not thread-
        # safe.
        self._client = self._client or BrokerClient(self._namesrv_addr, self._access)
        writer = GroupWriter(self._client, group, COMMIT_TIMEOUT_MS, self._shares_group)
        try:
            # The source may commit to the group too (option groupId), and be ahead of this event.
            writer.commit(position.offsets, only_forward=True, exempt=position.start_offsets)
        except PipelineError as error:
            _log.warning("the offsets of group %s were not committed: %s", group, error)


@contextmanager
def commit_progress(
    spark: SparkSession,
    namesrv_addr: str | None = None,
    group: str | None = None,
    say: Line | None = None,
    options: Mapping[str, str] | None = None,
    *,
    on_metrics: OnMetrics | None = None,
    shares_group: bool = False,
) -> Iterator[ProgressListener]:
    """Inside the `with`, the queries of a session commit their progress, and report it for each batch.

    With a name server address each query commits to a group of its own, `spark-` and its name, or, if there is only
    one query, to `group`. A group with live members is left alone, unless `shares_group` is true. `say` is called with
    a line, `on_metrics` with `StreamMetrics`. `options` are the sources' options for keys, TLS and addresses, such as
    `rocketmq.accessKey`; `OptionError` for any other.
    """
    access = read_access(OptionValues(canonical_options(options or {}, ACCESS_NAMES, {})))
    listener = ProgressListener(
        namesrv_addr, group, say, access, on_metrics=on_metrics, shares_group=shares_group
    )
    spark.streams.addListener(listener)
    try:
        yield listener
    finally:
        listener.settle(spark)
        spark.streams.removeListener(listener)
        listener.close()
