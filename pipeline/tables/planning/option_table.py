"""Every option of the formats: its name, default and meaning, and what Spark's Kafka connector calls it.

The formats know no other names; `docs/reference.py` makes the tables of docs/pipeline.md of it. Tests compare the
defaults with what a read or write does without the option; which values are allowed the readers say in their errors
(`option_values.py`).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from .option_values import NAMESRV

REQUIRED: Final = "required"
SAME: Final = "the same"


class Option(NamedTuple):
    """One option, in the words of the page."""

    name: str
    meaning: str
    default: str = ""
    """Behind a `;` what it is in other cases; empty without one."""
    example: str = ""
    kafka: str = "none"
    alias: str = ""
    """A second name."""


_PUSHDOWN_NEEDS: Final = "needs `spark.sql.python.filterPushdown.enabled`, which `pocketmq_session` sets"

_ACCESS: Final = (
    Option(
        "rocketmq.accessKey",
        "signs requests, for brokers with access control",
        kafka="`kafka.sasl.jaas.config`",
    ),
    Option("rocketmq.secretKey", "the key's secret", kafka="`kafka.sasl.jaas.config`"),
    Option("rocketmq.securityToken", "the token of a temporary key"),
    Option("rocketmq.tls.enable", "encrypts connections", "false", "true", "`kafka.security.protocol`"),
    Option(
        "rocketmq.tls.client.trustCertPath",
        "the CA certificate; without it any server certificate is accepted",
        example="/etc/ca.pem",
        kafka="`kafka.ssl.truststore.location`",
    ),
    Option(
        "rocketmq.tls.client.certPath",
        "the client certificate, a file on every machine that runs tasks",
        kafka="`kafka.ssl.keystore.location`",
    ),
    Option("rocketmq.tls.client.keyPath", "the file of its key", kafka="`kafka.ssl.keystore.location`"),
    Option(
        "rocketmq.tls.client.keyPassword", "what the key is locked with", kafka="`kafka.ssl.key.password`"
    ),
    Option(
        "rocketmq.broker.address.map",
        "other addresses for brokers whose routes name what this machine cannot reach",
        example="10.1.0.5:10911=mq.example:30911",
    ),
)
TOPICS: Final = {
    "What to read": (
        Option(
            NAMESRV,
            "the name servers",
            REQUIRED,
            "10.0.0.1:9876;10.0.0.2:9876",
            "`kafka.bootstrap.servers`",
            "nameServer",
        ),
        Option("subscribe", "topic names, separated by commas", "", "Orders,Payments", SAME, "topic"),
        Option(
            "subscribePattern",
            "for the whole name; matches no system, retry or dead-letter topics: name those in `subscribe`",
            example="Orders.*",
            kafka=SAME,
        ),
        Option("assign", "queues", example='{"Orders":{"broker-a":[0,1]}}', kafka=SAME),
        Option("subExpression", "the broker filters: tags, or with SQL92 a condition", "*", "paid || open"),
        Option(
            "filterType",
            "what `subExpression` is; for SQL92 the broker needs `enablePropertyFilter`",
            "TAG",
            "SQL92",
        ),
        Option("columns", "without effect if a schema is given", "lean", "queueId,body"),
        Option(
            "includeProperties",
            "whether there is the column `properties`, a map, which costs more than any other",
            "false; true with `columns=all`",
            "true",
            "`includeHeaders`",
        ),
        Option(
            "decompress",
            "false: bodies as stored, compressed if the producer compressed them",
            "true",
            "false",
        ),
    ),
    "Where to begin and end": (
        Option(
            "startingOffsets",
            "`latest` is for streams; `committed` needs `groupId` and begins with the first messages, with a "
            "warning, if the group has no offsets; JSON has every queue, where -2 is earliest and -1 latest",
            "earliest; streams: latest",
            '{"T":{"broker-a":{"0":23,"1":-2}}}',
            "`startingOffsets`, without `committed`",
        ),
        Option("endingOffsets", "the same without `earliest`; batches only", "latest", "committed", SAME),
        Option(
            "startingTimestamp", "store time, epoch ms; wins over the next options", "", "1700000000000", SAME
        ),
        Option("endingTimestamp", "store time, epoch ms", "", "1700000000000", SAME),
        Option(
            "startingOffsetsByTimestamp",
            "JSON, epoch ms by topic or by queue; wins over offsets",
            "",
            '{"T":1700000000000}',
            SAME,
        ),
        Option("endingOffsetsByTimestamp", "the same for the end", "", '{"T":1700000000000}', SAME),
        Option(
            "startingOffsetsByTimestampStrategy",
            "`latest`: a queue without a message at or after that time begins at its end",
            "error",
            "latest",
            SAME,
        ),
    ),
    "Batches of a stream, tasks": (
        Option(
            "maxOffsetsPerTrigger",
            "messages of a batch, shared in proportion to each queue's backlog, at least one for each queue; "
            "without it no limit",
            "",
            "100000",
            SAME,
        ),
        Option(
            "maxBytesPerTrigger",
            "bytes of a batch, estimated from the next messages; the smaller limit applies",
            "",
            "67108864",
        ),
        Option("minOffsetsPerTrigger", "wait for so many messages", "", "5000", SAME),
        Option("maxTriggerDelay", "but not longer than this", "15m", "30s", SAME),
        Option(
            "minPartitions",
            "tasks: ranges are split in proportion to their size; order is then kept within a task only",
            "",
            "16",
            SAME,
        ),
        Option("maxRecordsPerPartition", "messages of a task at most", "", "50000", SAME),
        Option(
            "pullBatchSize",
            "messages of a pull; brokers send at most 32 (8 from disk) unless they are configured otherwise "
            "(`maxTransferCountOnMessageInMemory`, `maxTransferBytesOnMessageInMemory`); the first reply shows how "
            "many",
            "32",
            "1024",
            "`kafka.max.poll.records`",
        ),
        Option("pullInFlight", "pulls of a task at the same time", "16", "32"),
        Option(
            "decodeRows", "messages of an Arrow batch; it has about 8 MiB of records at most", "16384", "4096"
        ),
        Option(
            "storePath",
            "the folder of the broker's store, or JSON of folders: what is in its files is read from there, which "
            "is several times as fast and costs the broker nothing; only the rest is pulled; every executor needs "
            "the path; not with SQL92",
            "",
            '{"broker-a":"/data/store"}',
        ),
        Option(
            "pushdown",
            "filters on topic, brokerName, queueId, queueOffset, storeTimestamp and tags narrow a batch read; "
            + _PUSHDOWN_NEEDS,
            "false",
            "true",
        ),
    ),
    "When something fails": (
        Option(
            "failOnDataLoss",
            "false: missing messages are skipped, logged by the task, and counted (see below)",
            "true",
            "false",
            SAME,
        ),
        Option(
            "retryTimeoutMs",
            "how long a broker may be unreachable, and a topic that was read before without a route",
            "60000",
            "300000",
        ),
        Option("pullTimeoutMs", "wait for one reply", "10000", "5000", "`kafkaConsumer.pollTimeoutMs`"),
        Option(
            "fetchOffset.numRetries",
            "if this or the next is set, their product applies while a read is planned, instead of `retryTimeoutMs`",
            "",
            "10",
            SAME,
        ),
        Option("fetchOffset.retryIntervalMs", "ms between the retries", "", "1000", SAME),
    ),
    "Progress and its numbers": (
        Option(
            "groupId",
            "the group to which the source commits what it has read, when it looks for the next batch; also the "
            "group of `committed`",
            "",
            "order-archive",
            "`kafka.group.id`, which commits nothing",
        ),
        Option(
            "commitOffsets",
            "`force`: commit although consumers of the group are connected",
            "false; true with `groupId`",
            "false",
        ),
        Option(
            "groupIdPrefix",
            "names the group of pulls without committing",
            "spark-rocketmq-source",
            "etl",
            SAME,
        ),
    ),
    "Access and addresses": _ACCESS,
}
"""Of the source `rocketmq`, by the part of the page."""
SINK: Final = (
    Option(NAMESRV, "the name servers", REQUIRED, "10.0.0.1:9876", "`kafka.bootstrap.servers`", "nameServer"),
    Option("topic", "wins over the column", "", "Orders", SAME),
    Option("guarantee", "see below", "idempotent", "transactional", "at least once"),
    Option("producerGroup", "", "spark-rocketmq-sink", "etl"),
    Option("batchRows", "rows of a request", "1000", "100"),
    Option("batchBytes", "bytes of a request", "524288", "100000", "`kafka.batch.size`"),
    Option(
        "inFlight",
        "requests of a task at the same time",
        "4",
        "8",
        "`kafka.max.in.flight.requests.per.connection`",
    ),
    Option("sendTimeoutMs", "wait for one reply", "10000", "3000", "`kafka.request.timeout.ms`"),
    Option("retryTimeoutMs", "for all attempts", "60000", "10000", "`kafka.delivery.timeout.ms`"),
    Option("sendRetries", "without it as many as fit into `retryTimeoutMs`", "", "3", "`kafka.retries`"),
    Option("maxRowsPerSecond", "rows a second of each task; without it no limit", "", "5000"),
)
"""Of the sink, besides those for keys, TLS and addresses."""
STORES: Final = (
    Option(
        "path",
        "the store's folder, the one with `commitlog` in it, or a URL; the argument of `load` is the same",
        "this or `paths` is required",
        "s3://bucket/store",
    ),
    Option(
        "paths",
        "the store of each broker, a folder or a URL; fills the column `brokerName`; for `table=messages`",
        "",
        '{"broker-a":"/data/a","broker-b":"s3://bucket/b"}',
    ),
    Option("table", "what to read; `runs` and `stats`: see below", "messages", "runs"),
    Option("topics", "topic names, separated by commas; without it all", "", "Orders,Payments"),
    Option(
        "driver",
        "`consumequeue` reads in the order of the queues, and reads nothing of other topics; messages that no "
        "queue has follow, with a warning; not behind a URL. With `commitlog`, too, `topics` that are a small part "
        "of the log are found by the queues",
        "commitlog",
        "consumequeue",
    ),
    Option(
        "splitBytes",
        "bytes of a task; the log is split at any byte, into 10,000 tasks at most",
        "134217728",
        "67108864",
    ),
    Option("minPartitions", "tasks at least; without it Spark's default parallelism", "", "16"),
    Option(
        "pushdown",
        "filters of the query rule out tasks by time, topic and log position, and rows before they are decoded; "
        + _PUSHDOWN_NEEDS,
        "false",
        "true",
    ),
    Option(
        "onCorrupt",
        "`report`: a row with `status` bad magic, bad size, bad offset, bad crc, or missing (a hole between two files)",
        "fail",
        "report",
    ),
    Option("verifyCrc", "check the CRC of every body", "false; true with `onCorrupt=report`", "true"),
    Option("checkQueues", "for `table=runs`: compare records and consume queues, both ways", "false", "true"),
    Option(
        "columns",
        "as [for topics](#what-to-read); stores also have `file` and `status`, and with `onCorrupt=report` the "
        "lean columns have these two and `physicalOffset`",
        "lean",
        "all",
    ),
    Option("includeProperties", "as for topics", "false; true with `columns=all`", "true"),
    Option("decompress", "false: bodies as stored", "true", "false"),
    Option("decodeRows", "messages of an Arrow batch; it has at most 8 MiB of records", "16384", "4096"),
    Option("commitLogPath", "the folder of a log that lies elsewhere", "", "/ssd/commitlog"),
    Option("brokerName", "fills the column `brokerName`", "", "broker-a"),
)
JOURNALS: Final = (
    Option(
        "path",
        "the folder, one file, or a URL of a folder; the argument of `load` is the same",
        "this or `paths` is required",
        "s3://bucket/journal",
    ),
    Option("paths", "the journal of each broker", "", '{"broker-a":"/data/a","broker-b":"/data/b"}'),
)


def names_of(options: Iterable[Option]) -> tuple[str, ...]:
    """In the order of the table."""
    return tuple(option.name for option in options)
