"""A server for consumers, ours (friendly) or the official proxy: waits are short, groups retry quickly.

A client that closes waits for the receive that is under way; so the longest wait is the shortest that is allowed.
"""

import json
from pathlib import Path

from conformance.official.local_proxy import LocalProxy
from conformance.servers.our_server import OurServer
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server

ENDPOINT = "127.0.0.1:8081"
SHORT_WAITS = {"grpcClientConsumerMaxLongPollingTimeoutMillis": 5000}
QUICK = [1000, 1000, 1000, 1000]
"""Delays of a retry, in ms."""


def make_endpoint(side: str, home: Path) -> Server:
    """A server that is not started yet. `side` is `ours` or `official-proxy`."""
    if side == "ours":
        return OurServer(home, broker_conf=SHORT_WAITS, options=("--grpc-port", "8081"))
    return LocalProxy(home, proxy_settings=SHORT_WAITS)


def make_topic(client: RawClient, name: str, kind: str, queues: int = 4) -> None:
    reply = client.call(
        17,
        topic=name,
        defaultTopic="TBW102",
        readQueueNums=queues,
        writeQueueNums=queues,
        perm=6,
        topicFilterType="SINGLE_TAG",
        topicSysFlag=0,
        order=False,
        attributes=f"+message.type={kind}",
    )
    assert reply.code == 0, reply


def make_group(client: RawClient, name: str, **settings: object) -> None:
    """A group that retries quickly, at most twice."""
    policy = {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": QUICK}}
    of = {"groupName": name, "consumeEnable": True, "retryMaxTimes": 2, "groupRetryPolicy": policy}
    assert client.call(200, json.dumps({**of, **settings}).encode()).code == 0
