"""pocketmq.testing: a real name server and broker inside the process that tests.

    from pocketmq.testing import EmbeddedServer

    with EmbeddedServer() as server:            # ready in a few milliseconds, free ports, temporary store
        print(server.namesrv_addr)

With pytest nothing has to be imported: the fixtures `rocketmq_server` and `rocketmq` exist once PocketMQ is installed.

    server/             the server, its thread and its settings
    state/              the state that `reset` returns to
    requests/           the log of requests and replies
    ledger/             what became of every message
    time/               time that stands still until it is moved
    faults/             what a test makes the server do wrong
    cluster/            several name servers and brokers in one thread
    behave/             what a client program does while its brokers have trouble
    views/              looking without changing, and waiting
    fixtures/           what the plug-in does once a test needs a server
    view_of_server.py   topics, groups, messages, views and waits on any server
    rocketmq.py         the same on an embedded server, and what only that can show
    remote.py           the same over the wire, on a server that already runs
    factories.py        fixtures with other settings
    pytest_plugin.py    the fixtures, options and hooks of pytest
    errors.py

A name is imported when it is used: pytest loads the plug-in at every start, also if no test wants a server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .cluster.cluster import RocketMQCluster
    from .cluster.cluster_broker import ClusterBroker
    from .cluster.cluster_name_server import ClusterNameServer
    from .errors import (
        LoadError,
        MessagesMissingError,
        NotRunningError,
        SnapshotError,
        TestingError,
        UnusedRulesError,
        WouldBlockError,
        WrongValueError,
    )
    from .faults.outcomes import DROP, PASS, Refused, Reply
    from .faults.rule import Rule
    from .ledger.verdict import Finding, MessageHistory, Verdict
    from .remote import RemoteRocketMQ
    from .requests.logged_request import LoggedRequest
    from .rocketmq import RocketMQ
    from .server.embedded import EmbeddedServer
    from .state.reset import Mark
    from .state.snapshot import Snapshot
    from .time.clock import ServerClock
    from .views.values import FirstPosition, HeldPull, Lock, Member, StoredMessage

_NAMES: Final = {
    "cluster.cluster": "RocketMQCluster",
    "cluster.cluster_broker": "ClusterBroker",
    "cluster.cluster_name_server": "ClusterNameServer",
    "errors": "LoadError MessagesMissingError NotRunningError SnapshotError TestingError "
    "UnusedRulesError WouldBlockError WrongValueError",
    "faults.outcomes": "DROP PASS Refused Reply",
    "faults.rule": "Rule",
    "ledger.verdict": "Finding MessageHistory Verdict",
    "remote": "RemoteRocketMQ",
    "requests.logged_request": "LoggedRequest",
    "rocketmq": "RocketMQ",
    "server.embedded": "EmbeddedServer",
    "state.reset": "Mark",
    "state.snapshot": "Snapshot",
    "time.clock": "ServerClock",
    "views.values": "FirstPosition HeldPull Lock Member StoredMessage",
}
"""Each file, and the names that come from it."""
_FILE_OF: Final = {name: file for file, names in _NAMES.items() for name in names.split()}

__all__ = [
    "DROP", "PASS", "ClusterBroker", "ClusterNameServer", "EmbeddedServer", "Finding", "FirstPosition",
    "HeldPull", "LoadError", "Lock", "LoggedRequest", "Mark", "Member", "MessageHistory",
    "MessagesMissingError", "NotRunningError", "Refused", "RemoteRocketMQ", "Reply", "RocketMQ",
    "RocketMQCluster", "Rule", "ServerClock", "Snapshot", "SnapshotError", "StoredMessage",
    "TestingError", "UnusedRulesError", "Verdict", "WouldBlockError", "WrongValueError",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_FILE_OF[name]}", __name__), name)
