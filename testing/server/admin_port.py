"""The HTTP port of a server: connects `pocketmq.console` with the request log, the faults and the starting state.

    async with admin_port(node, watched, host="127.0.0.1", port=0) as url: ...
    run(config, name_server, beside=[admin_port_beside("127.0.0.1", 8080)])         behind `serve --admin-port`

Imported when a port is asked for: it loads `pocketmq.console`.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from pocketmq.broker.node import Node
from pocketmq.console.server import Console

from ..faults.watched_node import WatchedNodes
from ..state.reset import Mark, take_mark
from .stand_in_views import StandIn


@asynccontextmanager
async def admin_port(
    node: Node,
    watched: WatchedNodes,
    *,
    host: str,
    port: int,
    mark: Callable[[], Mark],
    names: Sequence[str] = (),
) -> AsyncIterator[str]:
    """The port of a running node, 0 for a free one; the URL. `watched` watches the node already.

    A reset over HTTP returns to the mark. It ends all rules and empties log and ledger, too: between two tests it is
    all that a program calls.
    `StartError` if the port is taken. Clients may call this machine by one of `names`, or by the advertised one.
    """
    access = StandIn(lambda: node, watched, mark=mark)
    advertised = node.broker.config.advertise.rpartition(":")[0]
    console = Console(access, names=[*names, *([advertised] if advertised else [])])
    try:
        yield await console.start(host, port)
    finally:
        await console.stop()


def admin_port_beside(
    host: str, port: int, names: Sequence[str] = ()
) -> Callable[[Node], AbstractAsyncContextManager[dict[str, str]]]:
    """What runs beside a node of `pocketmq serve --admin-port`: its request log, its faults, and the port."""

    @asynccontextmanager
    async def beside(node: Node) -> AsyncIterator[dict[str, str]]:
        watched = WatchedNodes(lambda function: function())
        watched.attach(node)
        mark = await take_mark(node)
        try:
            async with admin_port(node, watched, host=host, port=port, mark=lambda: mark, names=names) as url:
                yield {"POCKETMQ_ADMIN": url}
        finally:
            watched.detach(node)

    return beside
