"""pocketmq.testing: a real name server and broker inside the process that tests.

    from pocketmq.testing import EmbeddedServer

    with EmbeddedServer() as server:            # up in some milliseconds, on free ports, store in a temporary folder
        print(server.namesrv_addr)

With pytest nothing has to be imported: the fixtures `rocketmq_server` and `rocketmq` are there once PocketMQ is
installed. In reading order: `embedded` (the server and its thread), `settings` (keywords to settings), `mark` (what
`reset` goes back to), `rocketmq` (topics, groups and messages of one test), `stored_message`, `pytest_plugin`,
`errors`. Needs nothing but the server itself, the plug-in also pytest. Imported on use, not here: pytest loads the
plug-in at every start, also where no test wants a server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .embedded import EmbeddedServer
    from .errors import MessagesMissingError, NotRunningError, TestingError, WouldBlockError
    from .mark import Mark
    from .rocketmq import RocketMQ
    from .stored_message import StoredMessage

__all__ = (
    "EmbeddedServer",
    "Mark",
    "MessagesMissingError",
    "NotRunningError",
    "RocketMQ",
    "StoredMessage",
    "TestingError",
    "WouldBlockError",
)

_PLACES: Final = {
    "EmbeddedServer": "embedded",
    "Mark": "mark",
    "RocketMQ": "rocketmq",
    "StoredMessage": "stored_message",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_PLACES.get(name, 'errors')}", __name__), name)
