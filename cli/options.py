"""Options, the way to run, and error lines that several commands share."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

import click
from pocketmq.client import ClientError

USER_ERROR: Final = 2
INTERRUPTED: Final = 130

namesrv_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "-n",
    "--namesrv",
    "namesrv_addr",
    metavar="ADDR[;ADDR]",
    envvar="NAMESRV_ADDR",
    default="127.0.0.1:9876",
    show_default=True,
    help="Name servers; also from NAMESRV_ADDR.",
)


def run_command(
    work: Coroutine[Any, Any, None], *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> None:
    """Run a command's coroutine; what the client refuses becomes one line and exit code 2.

    A reader of our output that has seen enough (`| head`) ends the command in silence.
    """
    failure: BaseException | None = None
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(work)
    except (ClientError, BrokenPipeError) as error:
        failure = error
    except BaseExceptionGroup as group:
        failure, others = group.split((ClientError, BrokenPipeError))
        if others is not None:
            raise others from None
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    if failure is None:
        return
    first = _first(failure)
    if isinstance(first, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to say at exit
        return
    click.echo(f"pocketmq: {first}", err=True)
    sys.exit(USER_ERROR)


def _first(error: BaseException) -> BaseException:
    """One error of a group; of several at once the first tells enough."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
