"""Options, the way to run, and error lines that several commands share."""

import asyncio
import functools
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import click
from pocketmq.client import ClientError, NotReachable, UnreadableReply
from pocketmq.pipeline.jobs.access_options import access_options
from pocketmq.pipeline.planning.access import Access

from .mistakes import INTERRUPTED, UNREACHABLE, refuse

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


def client_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Name servers, keys and TLS. They arrive as one argument, `client`: keywords of any class of `pocketmq.client`."""

    @functools.wraps(command)
    def gathered(*, namesrv_addr: str, access: Access, **values: Any) -> Any:
        return command(**values, client=client_keywords(namesrv_addr, access))

    return namesrv_option(access_options(gathered))


def client_keywords(namesrv_addr: str, access: Access) -> dict[str, Any]:
    """What a client needs to reach and enter a cluster, as its keyword arguments."""
    return {"namesrv_addr": namesrv_addr, "hooks": access.hooks(), **access.tls_settings()}


def run_command(
    work: Coroutine[Any, Any, None], *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> None:
    """Run a command's coroutine. An error of the client becomes one line and exit code 2, or 3 if no server answers.

    If the reader of our output closes it (`| head`), the command ends without a message.
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
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # so that the flush at exit cannot fail again
        return
    if isinstance(first, NotReachable) and not isinstance(first, UnreadableReply):
        refuse(f"{first}; is a server there? `pocketmq serve` starts one", code=UNREACHABLE)
    refuse(first)


def _first(error: BaseException) -> BaseException:
    """One error of a group. If several happened at once, the first says enough."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
