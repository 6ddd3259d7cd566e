"""The names in a cluster: of its masters, its topics and its groups; for lists, and for TAB in a shell.

A TAB asks the name server that the command line or NAMESRV_ADDR names, for at most half a second. Without a server
there are no names, and never an error.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

import click
from pocketmq.client.connections.route import MASTER_ID
from pocketmq.protocol.message.topics import is_internal_group, is_system_topic

if TYPE_CHECKING:
    from pocketmq.client import AdminClient

PATIENCE_SECONDS: Final = 0.5
"""How long a TAB waits for a server."""


async def masters(admin: "AdminClient") -> dict[str, str]:
    """The name and the address of each master, by name."""
    brokers = (await admin.cluster_info()).broker_addr_table or {}
    addresses = {name: (broker.broker_addrs or {}).get(MASTER_ID) for name, broker in brokers.items()}
    return {name: address for name, address in sorted(addresses.items()) if address is not None}


async def group_names(admin: "AdminClient", *, with_system: bool = False) -> list[str]:
    """Consumer groups that any master knows, sorted; groups of the broker and of its tools only `with_system`."""
    names: set[str] = set()
    for address in (await masters(admin)).values():
        names.update(await admin.group_configs(address))
    return sorted(name for name in names if with_system or not is_internal_group(name))


def complete_topics(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Topics that begin with what was typed."""
    return _complete(ctx, incomplete, _topic_names)


def complete_groups(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Consumer groups that begin with what was typed."""
    return _complete(ctx, incomplete, group_names)


async def _topic_names(admin: "AdminClient") -> list[str]:
    return [name for name in await admin.topics() if not is_system_topic(name)]


def _complete(
    ctx: click.Context, incomplete: str, ask: "Callable[[AdminClient], Awaitable[list[str]]]"
) -> list[str]:
    address = ctx.params.get("namesrv_addr") or os.environ.get("NAMESRV_ADDR") or "127.0.0.1:9876"
    try:
        names = asyncio.run(asyncio.wait_for(_ask(address, ask), PATIENCE_SECONDS))
    except Exception:
        return []
    return [
        name
        for name in names
        if name.startswith(incomplete) and (incomplete.startswith("%") or not name.startswith("%"))
    ]


async def _ask(address: str, ask: "Callable[[AdminClient], Awaitable[list[str]]]") -> list[str]:
    from pocketmq.client import AdminClient  # not before a TAB needs it

    async with AdminClient(namesrv_addr=address) as admin:
        return await ask(admin)


AT_ONCE: Final = 16
"""Questions under way at the same time."""

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")


async def gather_limited(items: Iterable[ItemT], ask: Callable[[ItemT], Awaitable[AnswerT]]) -> list[AnswerT]:
    """The answers in the order of the items. The first failure ends the questions and is raised."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask_one(item: ItemT) -> AnswerT:
        async with gate:
            return await ask(item)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask_one(item)) for item in items]
    return [task.result() for task in tasks]
