"""Options, the way to run, and error lines that several commands share."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Final

import click
from pocketmq.client import ClientError, NotReachable, SendFailed, UnreadableReply
from pocketmq.client.access import Access
from pocketmq.client.access_options import access_options
from pocketmq.client.producing.send_retry import NOT_FOUND_TOPIC_EXCEPTION
from pocketmq.protocol.wire.response_codes import ResponseCode

from .mistakes import FAILED, UNREACHABLE, USER_ERROR, refuse

NAME_SERVERS: Final[dict[str, Any]] = {
    "metavar": "ADDR[;ADDR]",
    "envvar": "NAMESRV_ADDR",
    "default": "127.0.0.1:9876",
    "show_default": True,
    "help": "Name servers; also from NAMESRV_ADDR.",
}
"""The option with which a command finds its cluster."""


_OF_USER: Final = (NOT_FOUND_TOPIC_EXCEPTION, ResponseCode.NO_PERMISSION)
"""Failed sends that the user can correct: no such topic or queue, a missing right or a wrong key."""


def client_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Name servers, keys and TLS. They arrive as one argument, `client`: keywords of any class of `pocketmq.client`."""

    @functools.wraps(command)
    def gathered(*, namesrv_addr: str, access: Access, **values: Any) -> Any:
        return command(**values, client=client_keywords(namesrv_addr, access))

    return click.option("-n", "--namesrv", "namesrv_addr", **NAME_SERVERS)(access_options(gathered))


def client_keywords(namesrv_addr: str, access: Access) -> dict[str, Any]:
    """What a client needs to reach and enter a cluster, as its keyword arguments."""
    return {"namesrv_addr": namesrv_addr, "hooks": access.hooks(), **access.tls_settings()}


def run_command(
    work: Coroutine[Any, Any, None], *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> None:
    """Run a command's coroutine. An error of the client becomes one line and the exit code that `code_of` says."""
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(work)
        return
    except ClientError as error:
        first: BaseException = error
    except BaseExceptionGroup as group:
        failure, others = group.split((ClientError, BrokenPipeError))
        if failure is None or others is not None:
            raise (others or group) from None
        first = _first(failure)
    if not isinstance(first, ClientError):
        raise first
    code = code_of(first)
    hint = "; is a server there? `pocketmq serve` starts one" if code == UNREACHABLE else ""
    refuse(f"{first}{hint}", code=code)


def code_of(error: BaseException) -> int:
    """3 if no server answers; 1 if a message was refused; 2 for the rest, what `_OF_USER` names included."""
    reason: BaseException | None = error
    while isinstance(reason, SendFailed) and reason.__cause__ is not None:
        reason = reason.__cause__
    if isinstance(reason, NotReachable) and not isinstance(reason, UnreadableReply):
        return UNREACHABLE
    is_refused = isinstance(error, SendFailed) and error.code not in _OF_USER
    return FAILED if is_refused else USER_ERROR


def _first(error: BaseException) -> BaseException:
    """One error of a group. If several happened at once, the first says enough."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
