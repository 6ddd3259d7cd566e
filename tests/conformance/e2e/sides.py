"""The servers that the suite runs on. It makes its topics itself; a topic that does not exist is to be refused."""

from collections.abc import Mapping
from pathlib import Path

from conformance.official.local_proxy import LocalProxy
from conformance.servers.our_server import OurServer
from conformance.servers.server import Server

SETTINGS: Mapping[str, object] = {
    "autoCreateTopicEnable": False,
    "enablePropertyFilter": True,
    "transactionCheckInterval": 5000,
    "transactionTimeOut": 5000,
}
OURS: Mapping[str, Mapping[str, object]] = {
    "ours": {},
    "ours-strict": {"grpcStrict": True},
    "ours-auto": {"autoCreateTopicEnable": True},
}
SIDES = (*OURS, "official-proxy")


def made_side(side: str, home: Path) -> Server:
    """A server that is not started yet."""
    if side in OURS:
        return OurServer(home, broker_conf={**SETTINGS, **OURS[side]}, options=("--grpc-port", "8081"))
    return LocalProxy(home, broker_conf=SETTINGS)
