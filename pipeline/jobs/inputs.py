"""Where a job's messages come from: a store directory, or topics of a running broker. The same options for all jobs."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from pocketmq.protocol.message.topics import SYSTEM_PREFIX, SYSTEM_TOPICS

from ..errors import OptionError
from ..files.log_files import log_files
from ..planning.access import NO_ACCESS_KEYS, Access
from ..planning.option_values import check_name_servers
from .access_options import access_options, source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IS_SYSTEM_TOPIC: Final = " or ".join(
    (
        f"topic in ({', '.join(repr(topic) for topic in sorted(SYSTEM_TOPICS))})",
        f"startswith(topic, '{SYSTEM_PREFIX}')",
    )
)
"""SQL for `is_system_topic`. Brokers keep copies of users' messages in these topics."""


class MessageInput(msgspec.Struct, frozen=True, kw_only=True):
    """A store, or a name server and topics."""

    store: str | None = None
    namesrv_addr: str | None = None
    topics: str | None = None
    access: Access = NO_ACCESS_KEYS

    def check(self) -> None:
        """`OptionError` unless it is exactly one of the two, as far as this process can see."""
        if (self.store is None) == (self.namesrv_addr is None):
            raise OptionError("one of --store DIR and --namesrv ADDR is required")
        if self.namesrv_addr is not None and not self.topics:
            raise OptionError("--topics is required with --namesrv")
        if self.namesrv_addr is not None:
            check_name_servers("--namesrv", self.namesrv_addr)
        if self.store is not None:
            check_store(self.store)


def check_store(text: str) -> None:
    """`OptionError` if the folder is not a store."""
    try:
        log_files(Path(text) / "commitlog")
    except OptionError as error:
        raise OptionError(str(error).replace("option path", "--store", 1)) from error


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--store`, `--namesrv` and `--topics`, and the keys for that name server."""
    command = access_options(command)
    for decorate in (
        click.option("--topics", metavar="T[,T]", help="Topics to read; default for a store: all."),
        click.option("-n", "--namesrv", "namesrv_addr", metavar="ADDR", help="Read from a running broker."),
        click.option("--store", metavar="DIR", help="Read the files of a store directory."),
    ):
        command = decorate(command)
    return command


def split_input_options(options: dict[str, Any]) -> tuple[MessageInput, dict[str, Any]]:
    """The input that `input_options` name, and the other options."""
    of_input = {name: options[name] for name in ("store", "namesrv_addr", "topics")}
    others = {name: value for name, value in options.items() if name not in (*of_input, "access")}
    return MessageInput(**of_input, access=options["access"]), others


def messages(
    spark: "SparkSession", source: MessageInput, schema: str | None = None, **options: str
) -> "DataFrame":
    """The messages of an input, with the columns in `schema`, or those that the option `columns` chooses."""
    source.check()
    if source.store is not None:
        reader = spark.read.format("rocketmq-store").option("path", source.store)
        reader = reader if source.topics is None else reader.option("topics", source.topics)
    else:
        assert source.namesrv_addr is not None
        assert source.topics is not None
        reader = spark.read.format("rocketmq").option("nameServer", source.namesrv_addr)
        reader = reader.option("subscribe", source.topics).options(**source_options(source.access))
    reader = reader if schema is None else reader.schema(schema)
    return reader.options(**options).load()
