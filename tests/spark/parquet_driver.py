"""A driver that copies a topic into Parquet until it is killed, or until it has every message. Not a test.

    python parquet_driver.py NAMESRV_ADDR TOPIC FOLDER forever|all [MASTER]

`test_exactly_once.py` and `test_cluster.py` run it. Checkpoint and rows lie in FOLDER.
"""

import sys

from pocketmq.pipeline import pocketmq_session

BATCH_MESSAGES = 40


def main() -> None:
    namesrv_addr, topic, folder, until, *others = sys.argv[1:]
    spark = pocketmq_session(
        "exactly-once",
        master=others[0] if others else "local[2]",
        optimize_for_startup=True,
        settings={"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "2"},
    )
    options = {"rocketmq.namesrv.addr": namesrv_addr, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("rocketmq").options(**options, maxOffsetsPerTrigger=str(BATCH_MESSAGES))
    rows = frame.load().selectExpr("queueId", "queueOffset", "cast(body as string) text", "msgId")
    writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    trigger = {"availableNow": True} if until == "all" else {"processingTime": "0 seconds"}
    query = writer.option("path", f"{folder}/rows").trigger(**trigger).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
