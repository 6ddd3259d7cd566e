"""The pipeline's broker client inside a server's namespace, without Spark: sends batches, reads ranges, prints JSON.

    python pipeline_program.py TOPIC COUNT

Not a test: `test_pipeline.py` runs it.
"""

import asyncio
import json
import re
import sys
import time
from typing import Any, Final

import pyarrow as pa
from pocketmq.pipeline.jobs.moving.mirror_lease import LeaseLost, MirrorLease
from pocketmq.pipeline.tables.brokers.batch_sender import BatchSender
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient, shared_client
from pocketmq.pipeline.tables.brokers.range_reader import RangeReader
from pocketmq.pipeline.tables.brokers.read_planner import Planner
from pocketmq.pipeline.tables.planning.positions import Offsets, Queue
from pocketmq.pipeline.tables.planning.topic_options import read_source_options
from pocketmq.pipeline.tables.records.batch_encoder import bodies_of, elements, property_texts, row_ids

NAMESRV_ADDR: Final = "127.0.0.1:9876"
GROUP: Final = "pipeline-interop"
TIMEOUT_MS: Final = 60_000


def send(topic: str, count: int) -> None:
    """`count` messages in batches of 50, each acknowledged; and one delayed by two hours, which does not arrive."""
    broker = shared_client(NAMESRV_ADDR)
    sender = BatchSender(broker, group=GROUP, in_flight=4, timeout_ms=10_000, retry_timeout_ms=TIMEOUT_MS)
    for first in range(0, count, 50):
        numbers = range(first, min(first + 50, count))
        batch = pa.RecordBatch.from_pydict(
            {
                "body": pa.array([f"body {number}".encode() for number in numbers], pa.binary()),
                "keys": pa.array([f"k{number}" for number in numbers]),
                "tags": pa.array(["AB"[number % 2] for number in numbers]),
            }
        )
        texts = property_texts(batch, row_ids("interop", first, batch.num_rows))
        packed = elements(bodies_of(batch), texts)
        sender.send_batch(topic, b"".join(packed.to_pylist()), batch.num_rows)
    sender.finish()


def read(topic: str, **options: str) -> list[dict[str, Any]]:
    """The messages of a batch read as rows."""
    chosen = read_source_options({"nameServer": NAMESRV_ADDR, "subscribe": topic, **options}, is_stream=False)
    planner = Planner(shared_client(NAMESRV_ADDR), chosen)
    names = ("body", "keys", "tags", "queueId", "queueOffset", "msgId", "brokerName", "properties")
    rows: list[dict[str, Any]] = []
    for one in planner.batch():
        for records in RangeReader(planner.client, one, chosen).batches():
            columns = [column.to_pylist() for column in records.columns(names)]
            rows += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return rows


def wait_for(planner: Planner, count: int) -> tuple[list[Queue], Offsets]:
    """Queues and their ends, once that many messages can be read: official brokers fill queues after they answer."""
    end = time.monotonic() + TIMEOUT_MS / 1000
    while True:
        queues = planner.queues()
        ends = {queue: held.high for queue, held in planner.bounds(queues).items()}
        if sum(ends.values()) >= count or time.monotonic() > end:
            return queues, ends
        time.sleep(0.05)


def leases(queues: list[Queue]) -> list[str]:
    """What two mirrors of one name are told: the first, the second, and the second once the first has ended."""
    with BrokerClient(NAMESRV_ADDR).closing() as one, BrokerClient(NAMESRV_ADDR).closing() as other:
        first, second = MirrorLease(one, GROUP, "first"), MirrorLease(other, GROUP, "second")
        said = ["all" if first.take(queues) == (set(queues), {}) else "some"]
        for _ in range(50):
            try:
                said.append("all" if second.take(queues) == (set(queues), {}) else "some")
                break
            except LeaseLost as error:
                # the broker names the first once it has handled its heartbeat, which is not answered
                said += re.findall(r"#(first) at 127.0.0.1:\d+;", str(error))[len(said) - 1 :]
                if len(said) > 1:
                    first.release()
                one.run(asyncio.sleep(0.1))
        return said


def found(topic: str, count: int) -> dict[str, Any]:
    send(topic, count)
    planner = Planner(
        shared_client(NAMESRV_ADDR),
        read_source_options({"nameServer": NAMESRV_ADDR, "subscribe": topic}, is_stream=False),
    )
    queues, ends = wait_for(planner, count)
    rows = read(topic)
    places = {(row["queueId"], row["queueOffset"]) for row in rows}
    planner.client.commit(GROUP, ends, TIMEOUT_MS)
    committed = planner.client.committed(GROUP, queues, TIMEOUT_MS)
    return {
        "bodies": sorted(row["body"].decode() for row in rows),
        "ids": len({row["msgId"] for row in rows}),
        "places": len(places),
        "keys": sum(row["body"] == f"body {row['keys'][1:]}".encode() for row in rows),
        "tagged": len(read(topic, subExpression="A")),
        "split": len(read(topic, maxRecordsPerPartition="7")),
        "large_pulls": len(read(topic, pullBatchSize="1000")),
        "committed": committed == ends,
        "leases": leases(queues),
        "later": len(
            read(topic, startingTimestamp="4000000000000", startingOffsetsByTimestampStrategy="latest")
        ),
    }


if __name__ == "__main__":
    print("FOUND " + json.dumps(found(sys.argv[1], int(sys.argv[2]))), flush=True)
