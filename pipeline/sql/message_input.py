"""Where messages come from: the files of a store, or topics of running brokers."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ..errors import OptionError, PathError
from ..files.log_files import log_files
from ..planning.access import NO_ACCESS_KEYS, Access
from ..planning.option_values import check_name_servers


class MessageInput(msgspec.Struct, frozen=True, kw_only=True):
    """A store, or a name server and topics. `since_ms <= storeTimestamp < until_ms` limits the messages."""

    store: str | None = None
    namesrv_addr: str | None = None
    topics: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    access: Access = NO_ACCESS_KEYS

    def check(self) -> None:
        """`OptionError` unless it is exactly one of the two, as far as this process can see."""
        if (self.store is None) == (self.namesrv_addr is None):
            raise OptionError("one of --store DIR and --namesrv ADDR is required")
        if self.namesrv_addr is not None:
            check_name_servers("--namesrv", self.namesrv_addr)
        if self.topics is not None and not any(name.strip() for name in self.topics.split(",")):
            raise OptionError(f"--topics must name a topic, got {self.topics!r}")
        if self.store is not None:
            check_store(self.store)
        if self.since_ms is not None and self.until_ms is not None and self.since_ms >= self.until_ms:
            raise OptionError("--since must be before --until")

    def check_topics(self) -> None:
        """The same, and brokers are asked for named topics only."""
        self.check()
        if self.namesrv_addr is not None and not self.topics:
            raise OptionError("--topics is required with --namesrv")

    @property
    def name(self) -> str:
        """The store's folder or the name server's address."""
        return self.store or self.namesrv_addr or ""

    def store_bytes(self) -> int:
        """The bytes of the store's log files; 0 for brokers."""
        if self.store is None:
            return 0
        return sum(file.size for file in log_files(Path(self.store) / "commitlog"))

    def missing_topics(self) -> list[str]:
        """Named topics without consume queues in the store: misspelt, or deleted. Records may be left of those."""
        queues = Path(self.store or "") / "consumequeue"
        if self.store is None or self.topics is None or not queues.is_dir():
            return []
        return [name for name in self.topic_names() if not (queues / name).is_dir()]

    def topic_names(self) -> list[str]:
        """The named topics."""
        return [name.strip() for name in (self.topics or "").split(",") if name.strip()]

    def similar_topics(self, name: str) -> str:
        """`; did you mean Orders?` if the store has a topic that is spelled nearly so, or nothing."""
        from ..brokers.reachable import did_you_mean

        folders = (Path(self.store or "") / "consumequeue").iterdir()
        return did_you_mean(name, [folder.name for folder in folders])

    def time_condition(self) -> str:
        """SQL for the two times; `true` without them."""
        bounds = [
            f"storeTimestamp {sign} timestamp '{utc_text(moment)}'"
            for sign, moment in ((">=", self.since_ms), ("<", self.until_ms))
            if moment is not None
        ]
        return " and ".join(bounds) or "true"


def utc_text(ms: int) -> str:
    """Epoch ms as a time in SQL."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f") + "+00:00"


def sql_text(value: str) -> str:
    """A text as a literal that both engines read alike."""
    if "\\" in value:  # Spark reads a backslash as an escape, DuckDB does not
        return "unhex_text('" + value.encode().hex().upper() + "')"
    return "'" + value.replace("'", "''") + "'"


def check_store(text: str) -> None:
    """`OptionError` if the folder is not a store."""
    try:
        log_files(Path(text) / "commitlog")
    except PathError as error:
        raise error.under("--store") from error
