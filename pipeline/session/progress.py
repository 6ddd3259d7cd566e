"""Progress of streaming queries, committed as offsets of a consumer group and printed as a line for each batch.

Spark commits a batch to its source when it plans the next one, and so never the last batch. This listener commits the
end offsets of every progress event, also of the last. Lag tools then see the query like any consumer.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ..brokers.broker_client import BrokerClient
from ..errors import CheckpointError, PipelineError
from ..planning.access import ACCESS_NAMES, NO_ACCESS_KEYS, Access, read_access
from ..planning.option_values import OptionValues, canonical_options
from ..planning.positions import StreamPosition

_log = logging.getLogger("pocketmq.pipeline")

COMMIT_TIMEOUT_MS: Final = 3000
Line = Callable[[str], None]


class ProgressListener(StreamingQueryListener):
    """Commits positions to `group`, and calls `say` with a line for each batch. Each is optional."""

    def __init__(
        self,
        namesrv_addr: str | None = None,
        group: str | None = None,
        say: Line | None = None,
        access: Access = NO_ACCESS_KEYS,
    ) -> None:
        self._namesrv_addr = namesrv_addr
        self._group = group
        self._say = say
        self._access = access
        self._client: BrokerClient | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is read yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing new."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = json.loads(event.progress.json)
        if self._say is not None:
            self._say(progress_line(progress))
        if self._group is None or self._namesrv_addr is None:
            return
        for source in progress.get("sources", []):
            self._commit(source.get("endOffset"))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Its last batch was in a progress event."""

    def _commit(self, end: Any) -> None:
        try:
            position = StreamPosition.of_json(end if isinstance(end, dict) else json.loads(end or "{}"))
        except (CheckpointError, ValueError):
            return  # another kind of source
        assert self._group is not None
        assert self._namesrv_addr is not None
        # Events arrive on a thread of the gateway, so the listener has a client of its own: a client is not thread-
        # safe.
        self._client = self._client or BrokerClient(self._namesrv_addr, self._access)
        try:
            self._client.commit(self._group, position.offsets, COMMIT_TIMEOUT_MS)
        except PipelineError as error:
            _log.warning("the offsets of group %s were not committed: %s", self._group, error)


def progress_line(progress: dict[str, Any]) -> str:
    """One line for a progress event: batch, rows, speed, and the messages not yet read."""
    waiting = 0
    for source in progress.get("sources", []):
        waiting += _lag(source)
    rows = progress.get("numInputRows", 0)
    speed = progress.get("processedRowsPerSecond", 0.0) or 0.0
    took_ms = progress.get("durationMs", {}).get("triggerExecution", 0)
    return f"batch {progress.get('batchId')}: {rows} rows in {took_ms} ms ({speed:,.0f}/s), {waiting} waiting"


def _lag(source: dict[str, Any]) -> int:
    try:
        ends, latest = (_position(source.get(name)) for name in ("endOffset", "latestOffset"))
    except (CheckpointError, ValueError):
        return 0
    return sum(max(0, offset - ends.offsets.get(queue, offset)) for queue, offset in latest.offsets.items())


def _position(value: Any) -> StreamPosition:
    return StreamPosition.of_json(value if isinstance(value, dict) else json.loads(value or "{}"))


@contextmanager
def commit_progress(
    spark: SparkSession,
    namesrv_addr: str | None = None,
    group: str | None = None,
    say: Line | None = None,
    options: Mapping[str, str] | None = None,
) -> Iterator[ProgressListener]:
    """Inside the `with`, the queries of a session commit to `group`, and `say` is called with a line for each batch.

    `options` are the sources' options for keys and TLS, such as `rocketmq.accessKey`; `OptionError` for any other.
    """
    access = read_access(OptionValues(canonical_options(options or {}, ACCESS_NAMES, {})))
    listener = ProgressListener(namesrv_addr, group, say, access)
    spark.streams.addListener(listener)
    try:
        yield listener
    finally:
        spark.streams.removeListener(listener)
