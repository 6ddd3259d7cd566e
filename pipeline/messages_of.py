"""Where a job's messages come from: a store directory, or topics of a running broker. One pair of options for all jobs.

Next: the jobs, `audit_job.py` first.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from .errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SYSTEM_TOPICS = "topic rlike '^(rmq_sys_|RMQ_SYS_|SCHEDULE_TOPIC_XXXX|TBW102|OFFSET_MOVED_EVENT)'"
"""Where the broker keeps what is not a user's: the same message stands there under another topic."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A store, or a name server with topics."""

    store: str | None = None
    namesrv_addr: str | None = None
    topics: str | None = None

    def check(self) -> None:
        """`OptionError` unless it is one of the two."""
        if (self.store is None) == (self.namesrv_addr is None):
            raise OptionError("give one of --store DIR and --namesrv ADDR")
        if self.namesrv_addr is not None and not self.topics:
            raise OptionError("--topics: is required with --namesrv")


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--store`, `--namesrv` and `--topics`."""
    for decorate in (
        click.option("--topics", metavar="T[,T]", help="These topics; all of a store without."),
        click.option("-n", "--namesrv", "namesrv_addr", metavar="ADDR", help="Read from a running broker."),
        click.option("--store", metavar="DIR", help="Read the files of a store directory."),
    ):
        command = decorate(command)
    return command


def messages(spark: "SparkSession", place: Place, schema: str | None = None, **options: str) -> "DataFrame":
    """The messages of a place, of the columns in `schema` (default: all)."""
    place.check()
    if place.store is not None:
        reader = spark.read.format("rocketmq-store").option("path", place.store)
        reader = reader if place.topics is None else reader.option("topics", place.topics)
    else:
        assert place.namesrv_addr is not None
        assert place.topics is not None
        reader = spark.read.format("rocketmq").option("nameServer", place.namesrv_addr)
        reader = reader.option("subscribe", place.topics)
    reader = reader if schema is None else reader.schema(schema)
    return reader.options(**options).load()
