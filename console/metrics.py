"""`/metrics`: the figures of a broker as Prometheus text, with the names and labels of RocketMQ 5.

Counted afresh for each request, so nothing stale stays: a topic or group that is gone has no series. Only figures that
this broker has are listed. The generators yield None after each topic or group: there the loop may do something else.
Mirrors `BrokerMetricsManager` and its siblings.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.client import Client
from pocketmq.broker.node import Node
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.message.topics import (
    is_dlq_topic,
    is_internal_group,
    is_retry_topic,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response

from .pages import Pause
from .server_access import Call

_BASE = ("cluster", "node_type", "node_id")
_SAMPLES = 200
"""Made to text at once."""


async def metrics(call: Call) -> Response:
    async with call.reading as pause:
        text = await metrics_text(call.access.node, pause)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def metrics_text(node: Node, pause: Pause) -> bytes:
    """The text of one scrape."""
    parts = []
    for metric in itertools.chain(_of_broker(node.broker), _of_grpc(node)):
        await pause()
        for part in () if metric is None else _texts_of(metric):
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


class _Family:
    """One metric; the base labels are added to each value."""

    def __init__(
        self, broker: Broker, kind: type[Any], name: str, text: str, labels: Iterable[str] = ()
    ) -> None:
        config = broker.config
        self._base = (config.broker_cluster_name, "broker", config.broker_name)
        self.metric = kind(name, text, labels=(*_BASE, *labels))

    def add(self, value: float, *labels: object) -> None:
        self.metric.add_metric((*self._base, *(_text(label) for label in labels)), value)


def _text(label: object) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _of_broker(broker: Broker) -> Iterator[Metric | None]:
    for name, text, value in (
        ("rocketmq_broker_permission", "What may be done: 4 read, 2 write", broker.config.broker_permission),
        ("rocketmq_topic_number", "Topics in the table", len(broker.topics.topics)),
        ("rocketmq_consumer_group_number", "Consumer groups in the table", len(broker.groups.groups)),
    ):
        gauge = _Family(broker, GaugeMetricFamily, name, text)
        gauge.add(value)
        yield gauge.metric
    yield from _messages(broker)
    yield from _connections(broker)
    yield from _lags(broker)
    yield from _storage(broker)


def _messages(broker: Broker) -> Iterator[Metric | None]:
    put_labels, get_labels = (
        ("topic", "message_type", "is_system"),
        ("topic", "consumer_group", "is_system"),
    )
    count_in, bytes_in, count_out, bytes_out = (
        _Family(broker, CounterMetricFamily, name, text, labels)
        for name, text, labels in (
            ("rocketmq_messages_in", "Messages stored", put_labels),
            ("rocketmq_throughput_in", "Bytes stored", put_labels),
            ("rocketmq_messages_out", "Messages read", get_labels),
            ("rocketmq_throughput_out", "Bytes read", get_labels),
        )
    )
    statistics = broker.statistics
    for topic, traffic in statistics.puts():
        yield None
        if is_retry_topic(topic) or is_dlq_topic(topic):
            continue
        labels = (topic, _message_type(broker, topic), broker.topics.is_system_topic(topic))
        count_in.add(traffic.count, *labels)
        bytes_in.add(traffic.size_bytes, *labels)
    for (topic, group), traffic in statistics.gets():
        yield None
        labels = (topic, group, broker.topics.is_system_topic(topic) or is_internal_group(group))
        count_out.add(traffic.count, *labels)
        bytes_out.add(traffic.size_bytes, *labels)
    for family in (count_in, bytes_in, count_out, bytes_out):
        yield family.metric


def _message_type(broker: Broker, topic: str) -> str:
    config = broker.topics.find(topic)
    return (config.attributes.get("message.type", "normal") if config is not None else "normal").lower()


def _connections(broker: Broker) -> Iterator[Metric | None]:
    producers = _Family(
        broker,
        GaugeMetricFamily,
        "rocketmq_producer_connections",
        "Connected producers",
        ("language", "version", "protocol_type"),
    )
    groups = broker.membership.producers.all().values()
    connected: dict[object, Client] = {}
    for clients in groups:
        connected.update((client.connection, client) for client in clients)
        yield None
    kinds = Counter((client.language, version_name(client.version)) for client in connected.values())
    for (language, version), count in sorted(kinds.items()):
        producers.add(count, language.lower(), version.lower(), "remoting")
    yield producers.metric
    consumers = _Family(
        broker,
        GaugeMetricFamily,
        "rocketmq_consumer_connections",
        "Connected consumers",
        ("consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system"),
    )
    for name in broker.membership.consumers.names():
        yield None
        group = broker.membership.consumers.get(name)
        if group is None:
            continue
        mode = "push" if group.consume_type == "CONSUME_PASSIVELY" else "pull"
        members = Counter((client.language, version_name(client.version)) for client in group.clients())
        for (language, version), count in sorted(members.items()):
            consumers.add(
                count, name, language.lower(), version.lower(), mode, "remoting", is_internal_group(name)
            )
    yield consumers.metric


def _lags(broker: Broker) -> Iterator[Metric | None]:
    labels = ("consumer_group", "topic", "is_retry", "is_system")
    messages, latency, ready, inflight = (
        _Family(broker, GaugeMetricFamily, f"rocketmq_consumer_{name}", text, labels)
        for name, text in (
            ("lag_messages", "Messages not consumed yet"),
            ("lag_latency_milliseconds", "Age of the oldest message not consumed yet"),
            ("ready_messages", "Messages that can be pulled"),
            ("inflight_messages", "Pulled, not yet consumed"),
        )
    )
    now_ms = broker.clock.now_ms()
    for group in broker.offsets.groups():
        for topic in sorted(broker.offsets.topics_of(group)):
            yield None
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
            values = (group, topic, is_retry_topic(topic), is_internal_group(group))
            messages.add(lag, *values)
            latency.add(now_ms - oldest_ms, *values)
            ready.add(unread, *values)
            inflight.add(lag - unread, *values)
    for family in (messages, latency, ready, inflight):
        yield family.metric


def _storage(broker: Broker) -> Iterator[Metric]:
    log = broker.store.log
    start, end = max(log.start, 0), log.end
    now_ms = broker.clock.now_ms()
    earliest_ms = broker.store.earliest_log_time()
    for name, text, value in (
        ("rocketmq_storage_size_bytes", "Bytes of the commit log", end - start),
        (
            "rocketmq_storage_flush_behind_bytes",
            "Bytes not forced to disk yet",
            max(end - log.files.flushed, 0),
        ),
        (
            "rocketmq_storage_message_reserve_time_milliseconds",
            "Age of the oldest message",
            now_ms - earliest_ms if earliest_ms > 0 else 0,
        ),
    ):
        gauge = _Family(broker, GaugeMetricFamily, name, text, ("storage_type", "storage_medium"))
        gauge.add(value, "local", "disk")
        yield gauge.metric


def _of_grpc(node: Node) -> Iterator[Metric]:
    """The gRPC port, while it is open. The names are our own: the official proxy has a histogram of latencies."""
    if not node.side_servers:
        return
    broker = node.broker
    calls = _Family(
        broker, CounterMetricFamily, "pocketmq_grpc_calls", "gRPC calls answered", ("rpc", "code")
    )
    connections = _Family(
        broker, GaugeMetricFamily, "pocketmq_grpc_connections", "Connections of gRPC clients"
    )
    for server in node.side_servers:
        for (rpc, code), count in sorted(server.answered.items()):
            calls.add(count, rpc, code)
        connections.add(server.open_connections)
    yield calls.metric
    yield connections.metric
