"""Where messages come from: the files of a store, or of the stores of several brokers, or topics of running brokers."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from pocketmq.client.access import NO_ACCESS_KEYS, Access

from ...errors import OptionError, PathError
from ...tables.files.locations import absolute, is_url, shown_url
from ...tables.files.log_files import log_files
from ...tables.planning.access_names import source_options
from ...tables.planning.option_values import check_name_servers, names_in

_NAMED: Final = re.compile(r"[\w.%|-]+=.+")


class MessageInput(msgspec.Struct, frozen=True, kw_only=True):
    """A store, stores with the names of their brokers, or a name server and topics. A store is a folder, or a URL.

    `since_ms <= storeTimestamp < until_ms` limits the messages.
    """

    store: str | None = None
    stores: tuple[tuple[str, str], ...] = ()
    """(broker name, folder) of each."""
    namesrv_addr: str | None = None
    topics: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    access: Access = NO_ACCESS_KEYS

    def check(self) -> None:
        """`OptionError` unless it is exactly one of these, as far as this process can see."""
        if bool(self.folders) == (self.namesrv_addr is not None):
            problem = "is required" if self.namesrv_addr is None else "is read, not both"
            raise OptionError("one of --store DIR and --namesrv ADDR", problem)
        if self.namesrv_addr is not None:
            check_name_servers("--namesrv", self.namesrv_addr)
        if self.topics is not None and not self.topic_names():
            raise OptionError("--topics", f"must name a topic, got {self.topics!r}")
        for folder in self.folders:
            check_store(folder)
        if self.since_ms is not None and self.until_ms is not None and self.since_ms >= self.until_ms:
            raise OptionError("--since", "must be before --until")

    def check_topics(self) -> None:
        """The same, and brokers are asked for named topics only."""
        self.check()
        if self.namesrv_addr is not None and not self.topics:
            raise OptionError("--topics", "is required with --namesrv")

    @property
    def folders(self) -> list[str]:
        """The folders or URLs of the stores; none for brokers."""
        return [folder for _, folder in self.stores] or ([] if self.store is None else [self.store])

    @property
    def format(self) -> str:
        """The Spark format that reads it."""
        return "rocketmq-store" if self.folders else "rocketmq"

    def reader_options(self, *, is_stream: bool = False) -> dict[str, str]:
        """The options of that format; the times of a store, and the end of a stream, are conditions of the query."""
        if self.folders:
            places = {name: absolute(path) for name, path in self.stores}
            options = {"paths": json.dumps(places)} if places else {"path": absolute(self.store or "")}
            return options if self.topics is None else {**options, "topics": self.topics}
        options = {"nameServer": self.namesrv_addr or "", "subscribe": self.topics or ""}
        options |= source_options(self.access)
        if self.since_ms is None:
            options["startingOffsets"] = "earliest"
        else:
            options["startingTimestamp"] = str(self.since_ms)
            options["startingOffsetsByTimestampStrategy"] = "latest"
        if self.until_ms is not None and not is_stream:
            options["endingTimestamp"] = str(self.until_ms)
        return options

    @property
    def has_broker_names(self) -> bool:
        """Whether each message names its broker."""
        return self.store is None

    @property
    def name(self) -> str:
        """The stores' folders, or URLs without their keys, or the name server's address."""
        return ", ".join(map(shown_url, self.folders)) or self.namesrv_addr or ""

    def topic_names(self) -> list[str]:
        """The named topics."""
        return names_in(self.topics)

    def time_condition(self) -> str:
        """SQL for the two times; `true` without them."""
        bounds = [
            f"storeTimestamp {sign} timestamp '{datetime.fromtimestamp(ms / 1000, UTC)}'"
            for sign, ms in ((">=", self.since_ms), ("<", self.until_ms))
            if ms is not None
        ]
        return " and ".join(bounds) or "true"


def sql_text(value: str) -> str:
    """A text as a literal that both engines read alike."""
    if "\\" in value:  # Spark reads a backslash as an escape, DuckDB does not
        return "unhex_text('" + value.encode().hex().upper() + "')"
    return "'" + value.replace("'", "''") + "'"


def stores_named(texts: Sequence[str]) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """(the store, the stores with names) of `--store DIR` or of one or more `--store NAME=DIR`.

    `OptionError` for several without names, and for a name twice.
    """
    if not texts or (len(texts) == 1 and (Path(texts[0]).exists() or not _NAMED.fullmatch(texts[0]))):
        return (texts[0] if texts else None), ()
    stores: list[tuple[str, str]] = []
    for text in texts:
        name, separator, folder = text.partition("=")
        if not separator or not _NAMED.fullmatch(text):
            raise OptionError(
                "--store",
                "must be NAME=DIR if it is given several times, such as --store broker-a=/data/a, "
                f"got {text!r}",
            )
        if name in dict(stores):
            raise OptionError("--store", f": broker {name} is named twice")
        stores.append((name, folder))
    return None, tuple(stores)


def check_store(text: str) -> None:
    """`OptionError` if the folder or URL is not one of a store."""
    try:
        log_files(text if is_url(text) else Path(text) / "commitlog")
    except PathError as error:
        raise error.named("--store") from error
    except OSError as error:  # of the file system behind the URL
        raise OptionError("--store", f": {shown_url(text)} cannot be read: {error}") from error


def check_is_folder(job: str, text: str) -> None:
    """`OptionError` for a URL, which this job does not read."""
    if is_url(text):
        raise OptionError(
            "--store", f": {job} reads a folder, not a URL; copy the store, or ask its brokers with --namesrv"
        )
