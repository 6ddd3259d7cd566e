"""Options and reads for tests."""

from typing import Any

from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.brokers.range_reader import RangeReader
from pocketmq.pipeline.tables.brokers.read_planner import Planner
from pocketmq.pipeline.tables.planning.ranges import Range
from pocketmq.pipeline.tables.planning.topic_options import SourceOptions, read_source_options


def options(server: Any, topic: str, **more: str) -> SourceOptions:
    """Of a batch from a server or cluster."""
    return read_source_options(
        {"nameServer": server.namesrv_addr, "subscribe": topic, **more}, is_stream=False
    )


def read(client: BrokerClient, chosen: SourceOptions, ranges: list[Range] | None = None) -> list[str]:
    planner = Planner(client, chosen)
    parts = planner.batch() if ranges is None else ranges
    return [
        body.decode()
        for one in parts
        for records in RangeReader(client, one, chosen).batches()
        for body in records.column("body").to_pylist()
    ]
