"""The names that a wrong one may mean, for error messages: a misspelt one, or one of Spark's Kafka connector.

A program that moves from Kafka is told the name to write. Nothing is accepted under Kafka's names, since the values
differ (addresses are separated by `;`, queues belong to brokers). All of them: docs/pipeline-practice.md.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

_BOTH: Final = {
    "kafka.bootstrap.servers": "rocketmq.namesrv.addr",
    "kafka.security.protocol": "rocketmq.tls.enable",
    "kafka.sasl.jaas.config": "rocketmq.accessKey with rocketmq.secretKey",
    "kafka.ssl.truststore.location": "rocketmq.tls.client.trustCertPath",
    "kafka.ssl.keystore.location": "rocketmq.tls.client.certPath with rocketmq.tls.client.keyPath",
    "kafka.ssl.key.password": "rocketmq.tls.client.keyPassword",
}
SOURCE_OPTIONS: Final = {
    **_BOTH,
    "kafka.group.id": "groupId",
    "includeHeaders": "includeProperties",
    "kafkaConsumer.pollTimeoutMs": "pullTimeoutMs",
    "kafka.max.poll.records": "pullBatchSize",
    "kafka.auto.offset.reset": "startingOffsets",
    "kafka.enable.auto.commit": "commitOffsets",
}
SINK_OPTIONS: Final = {
    **_BOTH,
    "includeHeaders": "the column properties, which is written if it is selected",
    "kafka.acks": "flushDiskType and brokerRole of the broker, not the producer's choice",
    "kafka.batch.size": "batchBytes with batchRows",
    "kafka.linger.ms": "batchRows: a request is sent when it is full or its rows end",
    "kafka.max.in.flight.requests.per.connection": "inFlight",
    "kafka.request.timeout.ms": "sendTimeoutMs",
    "kafka.delivery.timeout.ms": "retryTimeoutMs",
    "kafka.retries": "sendRetries",
    "kafka.enable.idempotence": "guarantee=idempotent",
    "kafka.transactional.id": "guarantee=transactional",
    "kafka.partitioner.class": "the column shardingKey or queueId",
}
SOURCE_COLUMNS: Final = {
    "key": "keys",
    "value": "body",
    "partition": "queueId (with brokerName)",
    "offset": "queueOffset",
    "timestamp": "storeTimestamp or bornTimestamp",
    "timestampType": "storeTimestamp or bornTimestamp, two columns",
    "headers": "properties",
}
SINK_COLUMNS: Final = {
    "key": "keys, and shardingKey if it decides on the queue",
    "value": "body",
    "partition": "queueId (with brokerName)",
    "headers": "properties",
}


def kafka_hint(name: str, others: Mapping[str, str], names: Iterable[str] = ()) -> str:
    """What to add to an error about an unknown name: `; here it is body`, `; similar: topic`, or nothing."""
    for other, here in others.items():
        if other.lower() == name.lower():
            return f"; here it is {here}"
    spelling = {known.lower(): known for known in names}
    similar = difflib.get_close_matches(name.lower(), spelling, n=1, cutoff=0.8)
    return f"; similar: {spelling[similar[0]]}" if similar else ""


def did_you_mean(name: str, existing: Iterable[str]) -> str:
    """The existing topic or group that a misspelt one is like, as the end of a sentence; empty if there is none."""
    close = difflib.get_close_matches(name, list(existing), n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""
