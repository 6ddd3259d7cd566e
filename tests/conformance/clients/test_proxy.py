"""The official 5.5.0 proxy in cluster mode in front of our broker, and the official gRPC client at that proxy.

Only with POCKETMQ_INTEROP_ALL=1: the proxy alone is 140 jars, fetched by Maven at the first run.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import JAVA
from conformance.official import jars
from conformance.on_demand import ON_DEMAND
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient
from conformance.servers.server import NAMESRV_ADDR, Server

TALK = JAVA / "GrpcTalk.java"
TOPIC = "GrpcTopic"

pytestmark = [
    ON_DEMAND,
    pytest.mark.timeout(600),
]


def library(name: str) -> str:
    lib = jars.cache() / name / "lib"
    if not lib.exists():
        jars.fetch(name, lib)
    return f"{lib}/*"


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
def test_a_grpc_client_is_served(
    peers: None, fresh_server: Callable[..., Server], tmp_path: Path, side: str
) -> None:
    server = fresh_server(side)
    with RawClient(server) as client:
        client.update_topic(TOPIC, 4)
        client.update_group("grpc_simple")
        client.update_group("grpc_push")
    home = tmp_path / "proxy"
    with start_proxy(server, home):
        command = ["java", "-Xmx256m", f"-Duser.home={home}", "-cp", library("grpc"), str(TALK), TOPIC]
        with Running(server.namespace, command, tmp_path / "grpc.out", name="gRPC client") as talk:
            assert talk.finish(300) == 0
            lines = dict(line.split(" ", 1) for line in talk.output.splitlines() if " [" in line)
    once = [f"m{number}/1" for number in range(10)]
    assert lines["ACKNOWLEDGED"] == _set({*once, "m3/2"} - {"m3/1"})
    assert lines["PUSHED"] == _set({*once, "m5/2"})


def _set(texts: set[str]) -> str:
    return f"[{', '.join(sorted(texts))}]"
