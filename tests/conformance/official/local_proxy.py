"""The official 5.5.0 proxy in LOCAL mode: gRPC port, remoting port and broker in one Java process.

The name server is that of `OfficialServer`. The proxy registers its broker ten seconds after its start, and keeps a
missing route for twenty: `start` returns when a route was found.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from conformance.official.jars import OPENS, cache, fetch, prepare_home, settings_jar
from conformance.official.servers import BOOT_TIMEOUT_S, DISK_RATIOS, OfficialServer, broker_settings
from conformance.servers.namespaces import Namespace
from conformance.servers.processes import Running
from conformance.servers.server import NAMESRV_ADDR

GRPC_PORT = 8081
LIBRARIES = {"5.0.7": "grpc", "5.2.0": "grpc52"}
"""Version of the Java client for gRPC -> its pom."""
PROXY_HEAP = ("-Xms256m", "-Xmx768m", "-XX:MaxDirectMemorySize=512m")


def library(name: str) -> str:
    """The class path of pom<name>.xml, fetched at the first use."""
    lib = cache() / name / "lib"
    if not lib.exists():
        fetch(name, lib)
    return f"{lib}/*"


class LocalProxy(OfficialServer):
    """`proxy_settings` are keys of rmq-proxy.json, `broker_conf` those of broker.conf."""

    def __init__(
        self,
        home: Path,
        *,
        namespace: Namespace | None = None,
        broker_conf: Mapping[str, object] | None = None,
        proxy_settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__("5.5", home, namespace=namespace, broker_conf=broker_conf)
        self.side = "official-proxy"
        self.proxy_settings = dict(proxy_settings or {})

    def start(self) -> None:
        self.start_name_server()
        prepare_home(self.home)
        conf = self.home / "conf"
        (conf / "broker.conf").write_text(
            "".join(f"{key}={value}\n" for key, value in broker_settings(self.home, self.broker_conf).items())
        )
        proxy = {
            "rocketMQClusterName": "DefaultCluster",
            "namesrvAddr": NAMESRV_ADDR,
            "proxyMode": "LOCAL",
            "grpcServerPort": GRPC_PORT,
            "remotingListenPort": 8080,
            **self.proxy_settings,
        }
        (conf / "rmq-proxy.json").write_text(json.dumps(proxy))
        places = (f"-Drocketmq.home.dir={self.home}", f"-Duser.home={self.home}")
        words = ("-pm", "local", "-n", NAMESRV_ADDR)
        files = ("-pc", f"{conf}/rmq-proxy.json", "-bc", f"{conf}/broker.conf")
        classpath = f"{settings_jar('5.5')}:{library('proxy')}"
        main = "org.apache.rocketmq.proxy.ProxyStartup"
        argv = ["java", *OPENS, *places, *PROXY_HEAP, *DISK_RATIOS, "-cp", classpath, main, *words, *files]
        broker = Running(self.namespace, argv, self.home / "run" / "proxy.out", name="official proxy")
        self.brokers["broker"] = broker
        broker.wait_for("startup successfully", 2 * BOOT_TIMEOUT_S)
        self._wait_until_registered(broker)

    def _wait_until_registered(self, broker: Running) -> None:
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while not self.has_broker():
            if not broker.alive or time.monotonic() > deadline:
                raise broker.failed("its broker never stood in the name server's table")
            time.sleep(0.1)
