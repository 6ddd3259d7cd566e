"""pocketmq.testing: a real name server and broker inside the process that tests.

    from pocketmq.testing import EmbeddedServer

    with EmbeddedServer() as server:            # ready in a few milliseconds, free ports, temporary store
        print(server.namesrv_addr)

With pytest nothing has to be imported: the fixtures `rocketmq_server` and `rocketmq` exist once PocketMQ is installed.

    server/             the server, its thread and its settings
    state/              the state that `reset` returns to
    views/              looking without changing, and waiting
    rocketmq.py         topics, groups and messages of one test
    pytest_plugin.py    the fixtures; the only file that needs pytest
    errors.py

A name is imported when it is used: pytest loads the plug-in at every start, also if no test wants a server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .errors import MessagesMissingError, NotRunningError, TestingError, WouldBlockError
    from .rocketmq import RocketMQ
    from .server.clock import ServerClock
    from .server.embedded import EmbeddedServer
    from .state.mark import Mark
    from .views.stored_message import StoredMessage

__all__ = (
    "EmbeddedServer",
    "Mark",
    "MessagesMissingError",
    "NotRunningError",
    "RocketMQ",
    "ServerClock",
    "StoredMessage",
    "TestingError",
    "WouldBlockError",
)

_PLACES: Final = {
    "EmbeddedServer": "server.embedded",
    "Mark": "state.mark",
    "RocketMQ": "rocketmq",
    "ServerClock": "server.clock",
    "StoredMessage": "views.stored_message",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_PLACES.get(name, 'errors')}", __name__), name)
