"""Where a job's messages come from: a store directory, or topics of a running broker. The same options for all jobs."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import click
from pocketmq.client.access import Access
from pocketmq.client.access_options import access_options
from pocketmq.protocol.message.topics import SYSTEM_PREFIX, SYSTEM_TOPICS

from ..sql.message_input import MessageInput, stores_named
from .run import exit_on_user_error

_SYSTEM_TOPICS: Final = ", ".join(repr(topic) for topic in sorted(SYSTEM_TOPICS))
IS_SYSTEM_TOPIC: Final = f"topic in ({_SYSTEM_TOPICS}) or startswith(topic, '{SYSTEM_PREFIX}')"
"""SQL for `is_system_topic`. Brokers keep copies of users' messages in these topics."""
UTC_DAY: Final = "date_from_unix_date(cast(unix_micros(storeTimestamp) div 86400000000 as int))"
"""The day of storing, in Spark's SQL, whatever the time zone of the session."""

LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, which both engines know."""


def input_options(command: Callable[..., Any], *, takes_several: bool = False) -> Callable[..., Any]:
    """`--store`, `--namesrv` and `--topics`, and the keys for that name server, gathered into one parameter, `source`.

    Place it above `time_options`, whose times belong to the source. With `takes_several`, `--store NAME=DIR` may be
    repeated.
    """

    @functools.wraps(command)
    def gathered(access: Access, **options: Any) -> Any:
        names = ("store", "namesrv_addr", "topics", "since_ms", "until_ms")
        of_input = {name: options.pop(name) for name in names if name in options}
        if takes_several:
            with exit_on_user_error():
                of_input["store"], of_input["stores"] = stores_named(of_input["store"])
        return command(**options, source=MessageInput(**of_input, access=access))

    decorated = access_options(gathered)
    words = "Read the files of a store: a directory, or a URL such as s3://bucket/store."
    if takes_several:
        words += " NAME=DIR names its broker, and may be repeated: one for each broker."
    for decorate in (
        click.option("--topics", metavar="T[,T]", help="Topics to read; default for a store: all."),
        click.option("-n", "--namesrv", "namesrv_addr", metavar="ADDR", help="Read from a running broker."),
        click.option("--store", multiple=takes_several, metavar="DIR", help=words),
    ):
        decorated = decorate(decorated)
    return decorated


inputs_of_several_brokers: Final = functools.partial(input_options, takes_several=True)
"""The same for a job that can read the stores of several brokers."""


def time_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--since` and `--until`."""
    for name, words in (
        ("until", "Messages stored before this time."),
        ("since", "Messages stored at or after this time."),
    ):
        command = click.option(f"--{name}", f"{name}_ms", type=epoch_ms, metavar="TIME", help=words)(command)
    return command


def epoch_ms(text: str) -> int:
    """Epoch ms, or a time such as 2026-01-31T12:00:00, UTC unless it names a zone. BadParameter for anything else."""
    try:
        if text.isascii() and text.isdigit():
            ms = int(text)
        else:
            moment = datetime.fromisoformat(text)
            ms = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        ms = -1
    if not 0 <= ms <= LATEST_MS:
        raise click.BadParameter(
            f"must be epoch ms or a time such as 2026-01-31T12:00:00, from 1970 to 9999, got {text!r}"
        )
    return ms
