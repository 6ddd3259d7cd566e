"""Our endpoint and the official proxy, with the topics and groups that the rows name.

Ours runs with grpcStrict: where a friendly endpoint answers otherwise, `tests/grpc_endpoint` says so.
"""

from collections.abc import Mapping
from pathlib import Path

from conformance.official.local_proxy import LocalProxy
from conformance.servers.our_server import OurServer
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server

TOPICS = {
    "NormalT": ("NORMAL", 4, 4, 6),
    "OneT": ("NORMAL", 1, 1, 6),
    "FifoT": ("FIFO", 8, 8, 6),
    "DelayT": ("DELAY", 1, 1, 6),
    "TransT": ("TRANSACTION", 1, 1, 6),
    "PriorityT": ("PRIORITY", 4, 4, 6),
    "ReadT": ("NORMAL", 2, 2, 4),
    "WriteT": ("NORMAL", 2, 2, 2),
    "NoneT": ("NORMAL", 2, 2, 0),
    "MoreWriteT": ("NORMAL", 1, 3, 6),
    "MoreReadT": ("NORMAL", 3, 1, 6),
}
"""Message type, read queues, write queues, perm."""
GROUPS = ("g", "g2", "g3", "simple")
SIDES = ("ours", "official-proxy")

SETTINGS: Mapping[str, object] = {"autoCreateTopicEnable": False, "transactionTimeOut": 6000}


def make_side(side: str, home: Path, broker_conf: Mapping[str, object] | None = None) -> Server:
    """A server that is not started yet."""
    conf = {**SETTINGS, **(broker_conf or {})}
    if side == "ours":
        return OurServer(home, broker_conf={**conf, "grpcStrict": True}, options=("--grpc-port", "8081"))
    return LocalProxy(home, broker_conf=conf)


def prepare(server: Server) -> None:
    """Make the topics and groups."""
    with RawClient(server) as client:
        for name, (kind, read, write, perm) in TOPICS.items():
            reply = client.call(
                17,
                topic=name,
                defaultTopic="TBW102",
                readQueueNums=read,
                writeQueueNums=write,
                perm=perm,
                topicFilterType="SINGLE_TAG",
                topicSysFlag=0,
                order=False,
                attributes=f"+message.type={kind}",
            )
            assert reply.code == 0, f"{name}: {reply}"
        for group in GROUPS:
            client.update_group(group)
