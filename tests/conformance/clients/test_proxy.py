"""The official 5.5.0 proxy in cluster mode in front of our broker, and the official gRPC client at that proxy.

Only with POCKETMQ_INTEROP_ALL=1: the proxy alone is 140 jars, fetched by Maven at the first run.
"""

import json
from pathlib import Path

import pytest

from conformance.grpc_clients.clients import expected, lines, make_places, start
from conformance.official.local_proxy import library
from conformance.on_demand import ON_DEMAND
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient
from conformance.servers.server import NAMESRV_ADDR, Server, StartServer

pytestmark = [
    ON_DEMAND,
    pytest.mark.timeout(600),
]


def start_proxy(server: Server, home: Path) -> Running:
    config = {"rocketMQClusterName": "DefaultCluster", "namesrvAddr": NAMESRV_ADDR, "proxyMode": "CLUSTER"}
    (home / "conf").mkdir(parents=True)
    file = home / "conf" / "rmq-proxy.json"
    file.write_text(json.dumps({**config, "grpcServerPort": 8081, "remotingListenPort": 8080}))
    places = (f"-Drocketmq.home.dir={home}", f"-Duser.home={home}")
    words = ["org.apache.rocketmq.proxy.ProxyStartup", "-pc", str(file), "-pm", "cluster", "-n", NAMESRV_ADDR]
    command = ["java", "-Xmx512m", *places, "-cp", library("proxy"), *words]
    proxy = Running(server.namespace, command, home / "proxy.out", name="proxy")
    proxy.wait_for("startup successfully", timeout=120)
    return proxy


@pytest.mark.parametrize("side", ["ours", "official-5.5"])
def test_a_grpc_client_is_served(peers: None, fresh_server: StartServer, tmp_path: Path, side: str) -> None:
    server = fresh_server(side)
    with RawClient(server) as client:
        make_places(client, "talk")
    with start_proxy(server, tmp_path / "proxy"):
        steps = ["send", "simple", "push"]
        assert lines(start(server, "java-5.0.7", tmp_path, "talk", *steps)) == expected("java-5.0.7", steps)
