"""The options that `serve` and `exec` share: how the server behaves, and where its addresses are written."""

import functools
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from pocketmq.broker.errors import StartError

if TYPE_CHECKING:
    from pocketmq.broker.config.broker_config import BrokerConfig
    from pocketmq.testing.state.load import LoadSource

MAX_LOGGED_CHARS: Final = 500
"""So that a line has less than 1 KiB, also in UTF-8 of two bytes a character."""
_LEVELS: Final = ("debug", "info", "warning", "error")
_SHARED: Final = (
    click.option("-c", "conf_file", metavar="FILE", help="A broker.conf."),
    click.option(
        "--set", "sets", metavar="KEY=VALUE", multiple=True, help="One key of broker.conf; repeatable."
    ),
    click.option("--emulate", metavar="LINE", help="The line to behave like: 4.9 or 5.  [default: 5]"),
    click.option("--journal", metavar="DIR", help="Record every request and its answer in files of DIR."),
    click.option("--virtual-time", is_flag=True, help="The broker's time stands still until it is moved."),
    click.option(
        "--topic",
        "topics",
        metavar="TOPIC[:N]",
        multiple=True,
        help="A topic to begin with, and its number of queues (4); repeatable.",
    ),
    click.option(
        "--load",
        "loads",
        metavar="FILE",
        multiple=True,
        help="Topics, groups and messages to begin with, as YAML; repeatable.",
    ),
    click.option(
        "--ports-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write all addresses to FILE, as JSON.",
    ),
    click.option(
        "--admin-port",
        type=click.IntRange(0, 65535),
        help="HTTP port: API, metrics and a page; 0 for a free one.  [default: none]",
    ),
    click.option(
        "--admin-host-name",
        "admin_host_names",
        metavar="NAME",
        multiple=True,
        help="A name of this machine by which HTTP clients may call it; repeatable.",
    ),
    click.option(
        "--open-admin-port",
        is_flag=True,
        help="Allow --admin-port, which asks for no password, on a broker with access control.",
    ),
    click.option(
        "--grpc-port",
        type=click.IntRange(0, 65535),
        help="Port for gRPC clients (RocketMQ 5), 0 for a free one.  [default: none]",
    ),
)


class ServerOptions(NamedTuple):
    """What was given of them."""

    conf_file: str | None
    sets: tuple[str, ...]
    emulate: str | None
    journal: str | None
    virtual_time: bool
    loads: "tuple[LoadSource, ...]"
    """The topics of `--topic` are the first: what files load may be sent to them."""
    ports_file: Path | None
    admin_port: int | None
    admin_host_names: tuple[str, ...]
    open_admin_port: bool
    grpc_port: int | None

    def check_admin_port(self, config: "BrokerConfig") -> None:
        """`StartError` with access control: the HTTP port asks for no password, and shows and changes everything."""
        has_access_control = (
            config.authentication_enabled or config.authorization_enabled or config.acl_enable
        )
        if self.admin_port is not None and not self.open_admin_port and has_access_control:
            raise StartError(
                "--admin-port: access control is on, and the HTTP port lets everybody do everything without a "
                "password; --open-admin-port allows that"
            )


def server_options(*, log_level: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds them to a command, which gets them as `given` and has the log that they ask for; `log_level` is the default
    of `--log-level`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(*, topics: tuple[str, ...], loads: tuple[str, ...], log_level: str, **values: Any) -> Any:
            log_to_stderr(log_level)
            made = ({"topics": topics_named(topics)},) if topics else ()
            own = {name: values.pop(name) for name in ServerOptions._fields if name != "loads"}
            return function(**values, given=ServerOptions(**own, loads=(*made, *loads)))

        level = click.Choice(_LEVELS, case_sensitive=False)
        command = click.option("--log-level", type=level, default=log_level, show_default=True)(command)
        for option in reversed(_SHARED):
            command = option(command)
        return command

    return decorate


def topics_named(words: Sequence[str]) -> dict[str, dict[str, int]]:
    """The topics of words like `orders` or `orders:8`, as a load has them."""
    found: dict[str, dict[str, int]] = {}
    for word in words:
        name, colon, queues = word.partition(":")
        if not name or (colon and not (queues.isascii() and queues.isdecimal())):
            raise click.UsageError(f"--topic must be TOPIC or TOPIC:QUEUES, got {word!r}")
        if name in found:
            raise click.UsageError(f"--topic names {name} twice")
        found[name] = {"queues": int(queues)} if colon else {}
    return found


def log_to_stderr(level: str) -> None:
    """Write the log to standard error, from this level on, a bounded line for each message."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(BoundedFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])


class BoundedFormatter(logging.Formatter):
    """Cuts the message of a line: names and texts in it may be a peer's, and as long as a frame."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        if len(record.message) > MAX_LOGGED_CHARS:
            left_out = len(record.message) - MAX_LOGGED_CHARS
            record.message = f"{record.message[:MAX_LOGGED_CHARS]} ... ({left_out} characters more)"
        return super().formatMessage(record)
