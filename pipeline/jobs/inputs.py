"""Where a job's messages come from: a store directory, or topics of a running broker. One pair of options for all jobs.

The keys of a broker with access control: `access.py`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from pocketmq.client.errors import ClientError
from pocketmq.client.settings.client_settings import name_servers

from ..errors import OptionError
from ..planning.access import NO_ACCESS_KEYS, Access
from .access_options import access_options, source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SYSTEM_TOPICS = "topic rlike '^(rmq_sys_|RMQ_SYS_|SCHEDULE_TOPIC_XXXX|TBW102|OFFSET_MOVED_EVENT)'"
"""Where the broker keeps what is not a user's: the same message stands there under another topic."""


class MessageInput(msgspec.Struct, frozen=True, kw_only=True):
    """A store, or a name server with topics."""

    store: str | None = None
    namesrv_addr: str | None = None
    topics: str | None = None
    access: Access = NO_ACCESS_KEYS

    def check(self) -> None:
        """`OptionError` unless it is one of the two, as far as this process can see."""
        if (self.store is None) == (self.namesrv_addr is None):
            raise OptionError("give one of --store DIR and --namesrv ADDR")
        if self.namesrv_addr is not None and not self.topics:
            raise OptionError("--topics: is required with --namesrv")
        if self.namesrv_addr is not None:
            check_name_servers("--namesrv", self.namesrv_addr)
        if self.store is not None:
            check_store(self.store)


def check_name_servers(option: str, text: str) -> None:
    """`OptionError` unless it is `host:port;host:port`."""
    try:
        servers = name_servers(text, {})
    except ClientError as error:
        raise OptionError(f"{option}: {text!r} is not host:port;host:port") from error
    if not servers:
        raise OptionError(f"{option}: is empty, and should be host:port;host:port")


def check_store(text: str) -> None:
    """`OptionError` for a folder that is no store."""
    from ..files.log_files import log_files

    try:
        log_files(Path(text) / "commitlog")
    except OptionError as error:
        raise OptionError(str(error).replace("option path", "--store", 1)) from error


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--store`, `--namesrv` and `--topics`, and the keys for that name server."""
    command = access_options(command)
    for decorate in (
        click.option("--topics", metavar="T[,T]", help="These topics; all of a store without."),
        click.option("-n", "--namesrv", "namesrv_addr", metavar="ADDR", help="Read from a running broker."),
        click.option("--store", metavar="DIR", help="Read the files of a store directory."),
    ):
        command = decorate(command)
    return command


def split_input_options(given: dict[str, Any]) -> tuple[MessageInput, dict[str, Any]]:
    """The place that `input_options` name, and the options that are none of theirs."""
    theirs = {name: given[name] for name in ("store", "namesrv_addr", "topics")}
    others = {name: value for name, value in given.items() if name not in (*theirs, "access")}
    return MessageInput(**theirs, access=given["access"]), others


def messages(
    spark: "SparkSession", place: MessageInput, schema: str | None = None, **options: str
) -> "DataFrame":
    """The messages of a place, of the columns in `schema` (default: all)."""
    place.check()
    if place.store is not None:
        reader = spark.read.format("rocketmq-store").option("path", place.store)
        reader = reader if place.topics is None else reader.option("topics", place.topics)
    else:
        assert place.namesrv_addr is not None
        assert place.topics is not None
        reader = spark.read.format("rocketmq").option("nameServer", place.namesrv_addr)
        reader = reader.option("subscribe", place.topics).options(**source_options(place.access))
    reader = reader if schema is None else reader.schema(schema)
    return reader.options(**options).load()
