"""What the name servers of a `RocketMQCluster` answer."""

import json
from typing import Any

from pocketmq.testing import RocketMQCluster

from frames_client import raw


def brokers_of(cluster: RocketMQCluster, topic: str, name_server: str = "n0") -> dict[str, dict[str, str]]:
    """What a route says: the addresses of each broker by id; empty without a route."""
    with raw(cluster.name_server(name_server).addr) as client:
        reply = client.ask(105, topic=topic, acceptStandardJsonOnly="true")
    if reply.code:
        return {}
    body: dict[str, Any] = json.loads(bytes(reply.body or b""))
    return {data["brokerName"]: data["brokerAddrs"] for data in body["brokerDatas"]}
