"""A driver that reads stores and journals of several brokers, wherever they are. Not a test.

    python locations_driver.py MASTER PATHS JOURNALS SETTING=VALUE ...

PATHS and JOURNALS are the JSON of option `paths`. `test_cluster_locations.py` runs it. It prints what it found as JSON,
after `FOUND`.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from pocketmq.pipeline import pocketmq_session


def processes(batches: Iterator[Any]) -> Iterator[int]:
    """The executor's process, if it read a row."""
    for _ in batches:
        yield os.getppid()
        break


def main() -> None:
    master, paths, journals, *settings = sys.argv[1:]
    own = dict(setting.split("=", 1) for setting in settings)
    spark = pocketmq_session("locations", master=master, settings=own)
    messages = spark.read.format("rocketmq-store").option("paths", paths).option("splitBytes", "2000")
    rows = messages.option("topics", "T").load().selectExpr("brokerName", "cast(body as string) text")
    origins = spark.read.format("rocketmq-store").options(paths=paths, topics="T").schema("file string")
    files = origins.load().distinct().collect()
    requests = spark.read.format("pocketmq-journal").option("paths", journals).load()
    found = {
        "messages": sorted([row.brokerName, row.text] for row in rows.collect()),
        "files": sorted(row.file for row in files),
        "sends": requests.where("topic = 'T' and kind = 'exchange'").count(),
        "executors": len(set(rows.rdd.mapPartitions(processes).collect())),
    }
    print("FOUND " + json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
