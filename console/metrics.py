"""`/metrics`: the figures of a broker as Prometheus text, with the names and labels of RocketMQ 5.

Counted afresh for each request, so nothing stale stays: a topic or group that is gone has no series. Only figures that
this broker has are listed. Mirrors `BrokerMetricsManager` and its siblings.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.consumer_groups import Client
from pocketmq.broker.node import Node
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.message.topics import is_dlq_topic, is_internal_group, is_retry_topic
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response

from .answers import Call, serves
from .pages import Pause

_BASE = ("cluster", "node_type", "node_id")
_SAMPLES = 200
"""Made to text at once."""


@serves("GET", "/metrics", content="text/plain")
async def metrics(call: Call) -> Response:
    """The figures as Prometheus text, with the metric names and labels of RocketMQ 5."""
    async with call.reading as pause:
        text = await metrics_text(call.access.node, pause)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def metrics_text(node: Node, pause: Pause) -> bytes:
    """The text of one scrape."""
    parts = []
    figures = _Figures(node)
    for _ in _count(node, figures):
        await pause()
    for metric in figures.families.values():
        for part in _texts_of(metric):
            parts.append(part)
            await pause()
    return b"".join(parts)


class _Samples(Collector):
    """Some samples of a metric."""

    def __init__(self, metric: Metric, first: int) -> None:
        self._part = Metric(metric.name, metric.documentation, metric.type)
        self._part.samples = metric.samples[first : first + _SAMPLES]

    def collect(self) -> Iterator[Metric]:
        yield self._part


def _texts_of(metric: Metric) -> Iterator[bytes]:
    """Its text in parts, the first of which has the lines HELP and TYPE."""
    for first in range(0, max(len(metric.samples), 1), _SAMPLES):
        text = generate_latest(_Samples(metric, first))
        yield text if first == 0 else text.split(b"\n", 2)[2]


_PUT = ("topic", "message_type", "is_system")
_GET = ("topic", "consumer_group", "is_system")
_PRODUCER = ("language", "version", "protocol_type")
_CONSUMER = ("consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system")
_LAG = ("consumer_group", "topic", "is_retry", "is_system")
_STORAGE = ("storage_type", "storage_medium")
_FAMILIES: Final[dict[str, tuple[type[Any], str, tuple[str, ...]]]] = {
    "rocketmq_broker_permission": (GaugeMetricFamily, "What may be done: 4 read, 2 write", ()),
    "rocketmq_topic_number": (GaugeMetricFamily, "Topics in the table", ()),
    "rocketmq_consumer_group_number": (GaugeMetricFamily, "Consumer groups in the table", ()),
    "rocketmq_messages_in": (CounterMetricFamily, "Messages stored", _PUT),
    "rocketmq_throughput_in": (CounterMetricFamily, "Bytes stored", _PUT),
    "rocketmq_messages_out": (CounterMetricFamily, "Messages read", _GET),
    "rocketmq_throughput_out": (CounterMetricFamily, "Bytes read", _GET),
    "rocketmq_producer_connections": (GaugeMetricFamily, "Connected producers", _PRODUCER),
    "rocketmq_consumer_connections": (GaugeMetricFamily, "Connected consumers", _CONSUMER),
    "rocketmq_consumer_lag_messages": (GaugeMetricFamily, "Messages not consumed yet", _LAG),
    "rocketmq_consumer_lag_latency_milliseconds": (
        GaugeMetricFamily,
        "Age of the oldest message not consumed yet",
        _LAG,
    ),
    "rocketmq_consumer_ready_messages": (GaugeMetricFamily, "Messages that can be pulled", _LAG),
    "rocketmq_consumer_inflight_messages": (GaugeMetricFamily, "Pulled, not yet consumed", _LAG),
    "rocketmq_storage_size_bytes": (GaugeMetricFamily, "Bytes of the commit log", _STORAGE),
    "rocketmq_storage_flush_behind_bytes": (GaugeMetricFamily, "Bytes not forced to disk yet", _STORAGE),
    "rocketmq_storage_message_reserve_time_milliseconds": (
        GaugeMetricFamily,
        "Age of the oldest message",
        _STORAGE,
    ),
    "pocketmq_grpc_calls": (CounterMetricFamily, "gRPC calls answered", ("rpc", "code")),
    "pocketmq_grpc_connections": (GaugeMetricFamily, "Connections of gRPC clients", ()),
}
"""Name -> kind, help, and labels beside those of the broker. The last two are ours, for an open gRPC port: the official
proxy has a histogram of latencies."""


class _Figures:
    """All values of one scrape."""

    def __init__(self, node: Node) -> None:
        config = node.broker.config
        self._base = (config.broker_cluster_name, "broker", config.broker_name)
        self.families = {
            name: kind(name, text, labels=(*_BASE, *labels))
            for name, (kind, text, labels) in _FAMILIES.items()
            if node.side_servers or not name.startswith("pocketmq_grpc")
        }

    def add(self, name: str, value: float, *labels: object) -> None:
        self.families[name].add_metric((*self._base, *(_text(label) for label in labels)), value)


def _text(label: object) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _count(node: Node, figures: _Figures) -> Iterator[None]:
    """Fill in all values. Yields after each topic or group: there the loop may do something else."""
    broker = node.broker
    figures.add("rocketmq_broker_permission", broker.config.broker_permission)
    figures.add("rocketmq_topic_number", len(broker.topics.topics))
    figures.add("rocketmq_consumer_group_number", len(broker.groups.groups))
    yield from _messages(broker, figures)
    yield from _connections(broker, figures)
    yield from _lags(broker, figures)
    _storage(broker, figures)
    for server in node.side_servers:
        for (rpc, code), count in sorted(server.answered.items()):
            figures.add("pocketmq_grpc_calls", count, rpc, code)
        figures.add("pocketmq_grpc_connections", server.open_connections)


def _messages(broker: Broker, figures: _Figures) -> Iterator[None]:
    statistics = broker.statistics
    for topic, traffic in statistics.puts():
        yield
        if is_retry_topic(topic) or is_dlq_topic(topic):
            continue
        labels = (topic, _message_type(broker, topic), broker.topics.is_system_topic(topic))
        figures.add("rocketmq_messages_in", traffic.count, *labels)
        figures.add("rocketmq_throughput_in", traffic.size_bytes, *labels)
    for (topic, group), traffic in statistics.gets():
        yield
        labels = (topic, group, broker.topics.is_system_topic(topic) or is_internal_group(group))
        figures.add("rocketmq_messages_out", traffic.count, *labels)
        figures.add("rocketmq_throughput_out", traffic.size_bytes, *labels)


def _message_type(broker: Broker, topic: str) -> str:
    config = broker.topics.find(topic)
    return (config.attributes.get("message.type", "normal") if config is not None else "normal").lower()


def _connections(broker: Broker, figures: _Figures) -> Iterator[None]:
    connected: dict[object, Client] = {}
    for clients in broker.membership.producers.all().values():
        connected.update((client.connection, client) for client in clients)
        yield
    for (language, version), count in _kinds(connected.values()):
        figures.add("rocketmq_producer_connections", count, language, version, "remoting")
    for name in broker.membership.consumers.names():
        yield
        group = broker.membership.consumers.get(name)
        if group is None:
            continue
        mode = "push" if group.consume_type == "CONSUME_PASSIVELY" else "pull"
        for (language, version), count in _kinds(group.clients()):
            labels = (name, language, version, mode, "remoting", is_internal_group(name))
            figures.add("rocketmq_consumer_connections", count, *labels)


def _kinds(clients: Iterable[Client]) -> list[tuple[tuple[str, str], int]]:
    """How many clients there are of each language and version."""
    kinds = Counter((client.language.lower(), version_name(client.version).lower()) for client in clients)
    return sorted(kinds.items())


def _lags(broker: Broker, figures: _Figures) -> Iterator[None]:
    now_ms = broker.clock.now_ms()
    for group in broker.offsets.groups():
        for topic in sorted(broker.offsets.topics_of(group)):
            yield
            offsets = broker.offsets.offsets(topic, group) or {}
            lag = unread = 0
            oldest_ms = now_ms
            for queue in broker.store.queues_of(topic):
                begin = max(offsets.get(queue.queue_id, 0), queue.min_offset)
                pulled = max(broker.offsets.query_pull(topic, group, queue.queue_id), begin)
                lag += max(queue.max_offset - begin, 0)
                unread += max(queue.max_offset - pulled, 0)
                if begin < queue.max_offset:
                    stored_ms = broker.store.store_time(topic, queue.queue_id, begin)
                    oldest_ms = min(oldest_ms, stored_ms) if stored_ms > 0 else oldest_ms
            labels = (group, topic, is_retry_topic(topic), is_internal_group(group))
            figures.add("rocketmq_consumer_lag_messages", lag, *labels)
            figures.add("rocketmq_consumer_lag_latency_milliseconds", now_ms - oldest_ms, *labels)
            figures.add("rocketmq_consumer_ready_messages", unread, *labels)
            figures.add("rocketmq_consumer_inflight_messages", lag - unread, *labels)


def _storage(broker: Broker, figures: _Figures) -> None:
    log = broker.store.log
    earliest_ms = broker.store.earliest_log_time()
    age_ms = broker.clock.now_ms() - earliest_ms if earliest_ms > 0 else 0
    for name, value in (
        ("size_bytes", log.end - max(log.start, 0)),
        ("flush_behind_bytes", max(log.end - log.files.flushed, 0)),
        ("message_reserve_time_milliseconds", age_ms),
    ):
        figures.add(f"rocketmq_storage_{name}", value, "local", "disk")
