"""A driver that reads a topic and a store. Not a test.

    python formats_driver.py NAMESRV_ADDR TOPIC STORE MASTER registers|finds

`test_installed.py` runs it. With `finds` no format is registered: Spark must find the formats itself, which it does for
an installed package and not for --py-files. It prints its findings as JSON.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


def where_it_lives(_: Iterator[Any]) -> Iterator[str]:
    """The file of the package in an executor, and the executor's process."""
    import os

    import pocketmq.pipeline

    yield f"{os.getppid()} {pocketmq.pipeline.__file__}"


def main() -> None:
    namesrv_addr, topic, store, master, way = sys.argv[1:]
    builder = SparkSession.builder.master(master).appName("formats").config("spark.ui.enabled", "false")
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(name, "127.0.0.1")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    if way == "registers":
        from pocketmq.pipeline import register

        register(spark)
    options = {"rocketmq.namesrv.addr": namesrv_addr, "subscribe": topic}
    rows = spark.read.format("rocketmq").options(**options).load().select("body").collect()
    spark.sql(
        "CREATE TEMPORARY VIEW v USING rocketmq "
        f"OPTIONS (`rocketmq.namesrv.addr` '{namesrv_addr}', subscribe '{topic}')"
    )
    stored = spark.read.format("rocketmq-store").option("topics", topic).load(store)
    homes = spark.sparkContext.parallelize(range(8), 8).mapPartitions(where_it_lives).distinct().collect()
    found = {
        "bodies": sorted(bytes(row.body).decode() for row in rows),
        "counted": spark.sql("SELECT count(*) FROM v").collect()[0][0],
        "stored": stored.count(),
        "homes": homes,
    }
    print("FOUND " + json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
