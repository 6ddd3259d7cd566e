"""The options of one call of `pocketmq admin`, as text, number, boolean or time.

Values are read as mqadmin reads them: trimmed, and anything but `true` is false. A value that cannot be read raises
`ClientError`, which the program prints as one line.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
from pocketmq.client import ClientError
from pocketmq.client.admin.calls import Place
from pocketmq.client.clock import wall_ms

from ..mistakes import refuse

TIME_TEXT: Final = "%Y-%m-%d#%H:%M:%S:%f"
ONE_OF: Final = "one of"

ValueT = TypeVar("ValueT")


class OptionRow(msgspec.Struct, frozen=True):
    """A line of `admin_commands.tsv`. For a command itself, `kind` is "command" and `need` names its function."""

    command: str
    short: str
    long: str
    kind: str
    need: str
    text: str

    @property
    def name(self) -> str:
        """The long name; some official names end with a space."""
        return self.long.strip()

    @property
    def variable(self) -> str:
        """The parameter's name in Python."""
        return f"given_{self.name.replace(' ', '_')}"


class Options:
    """The options of one call, by their long names."""

    def __init__(
        self, command: str, rows: Sequence[OptionRow], values: Mapping[str, Any], client: Mapping[str, Any]
    ) -> None:
        self.command = command
        self.client = client
        """How to reach the cluster: keywords of any class of `pocketmq.client`."""
        self._rows = {row.name: row for row in rows}
        self._values = values

    def check_choices(self) -> None:
        """Exactly one of the options that exclude each other must be given; else one line and exit code 2."""
        choices: dict[str, list[OptionRow]] = {}
        for row in self._rows.values():
            if row.need.startswith(ONE_OF):
                choices.setdefault(row.need, []).append(row)
        for rows in choices.values():
            if sum(self._values.get(row.variable) is not None for row in rows) != 1:
                names = " or ".join(f"-{row.short} ({row.name})" for row in rows)
                refuse(f"{self.command}: give one of {names}")

    def text(self, name: str) -> str | None:
        """The trimmed text; `None` if the option was not given."""
        value = self._values.get(self._rows[name].variable)
        return value.strip() if isinstance(value, str) else None

    def required(self, name: str) -> str:
        """The text of an option that is required, or that other options make necessary."""
        value = self.text(name)
        if value is None:
            raise ClientError(f"{self._called(name)} is missing")
        return value

    def flag(self, name: str) -> bool:
        """Whether an option without argument was given."""
        return bool(self._values.get(self._rows[name].variable))

    def boolean(self, name: str, default: bool = False) -> bool:
        """`true` in any case is true, anything else false (Boolean.parseBoolean)."""
        value = self.text(name)
        return default if value is None else value.lower() == "true"

    def number(self, name: str, default: int) -> int:
        """A whole number; the default if the option was not given."""
        value = self.text(name)
        if value is None:
            return default
        try:
            return int(value)
        except ValueError:
            raise ClientError(f"{self._called(name)} must be a whole number, got {value!r:.60}") from None

    def time_ms(self, name: str, default: int) -> int:
        """`now`, epoch milliseconds, or local time as 2026-01-31#23:59:59:999."""
        value = self.text(name)
        return default if value is None else parse_time_ms(value)

    def place(self) -> Place:
        """The broker or cluster to act on, as the calls of `AdminClient` take it."""
        cluster = "clusterName" if "clusterName" in self._rows else "cluster"
        return {"address": self.text("brokerAddr"), "cluster": self.text(cluster)}

    def _called(self, name: str) -> str:
        short = self._rows[name].short
        return f"-{short} ({name})" if short else f"--{name}"


def parse_time_ms(text: str) -> int:
    """A time as a user wrote it. `ClientError` for any other text."""
    if text == "now":
        return wall_ms()
    with suppress(ValueError):
        return int(text)
    day_and_time, _, fraction = text.rpartition(":")
    try:
        moment = datetime.strptime(f"{day_and_time}:{int(fraction) * 1000:06d}", TIME_TEXT)
    except ValueError:
        raise ClientError(
            f"specified timestamp invalid: {text!r:.60}, expected now, milliseconds or yyyy-MM-dd#HH:mm:ss:SSS"
        ) from None
    return int(moment.timestamp() * 1000)
