"""The official name server and broker, started as their scripts do but small.

Not one process: name server and broker are two JVMs, and a slave or second broker is a third
(`start_broker`).
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.official.jars import JavaProgram, prepare_home
from conformance.servers.namespaces import Namespace
from conformance.servers.processes import Running
from conformance.servers.server import BROKER_PORT, NAMESRV_ADDR, Server

BOOT_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0  # a clean stop takes 7 s (4.9.7) or 17 s (5.5.0) on an idle machine
BOOTED = r"boot success"

# A machine's full disk must not stop a test: the official broker refuses sends above these ratios.
DISK_RATIOS = (
    "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
    "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.98",
)
NAME_SERVER_HEAP = ("-Xms96m", "-Xmx96m")
BROKER_HEAP = ("-Xms256m", "-Xmx256m", "-XX:MaxDirectMemorySize=256m")


def broker_settings(home: Path, changes: Mapping[str, object]) -> dict[str, str]:
    """broker.conf for a small broker whose store is home/store; None as a change leaves a key out."""
    store = home / "store"
    settings: dict[str, object] = {
        "brokerClusterName": "DefaultCluster",
        "brokerName": "broker-a",
        "brokerId": 0,
        "brokerIP1": "127.0.0.1",
        "brokerIP2": "127.0.0.1",
        "listenPort": BROKER_PORT,
        "namesrvAddr": NAMESRV_ADDR,
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
        "mappedFileSizeCommitLog": 64 << 20,
        "mappedFileSizeConsumeQueue": 6_000_000,
        "maxHashSlotNum": 100_000,
        "maxIndexNum": 400_000,
        "mappedFileSizeTimerLog": 8 << 20,
        "deleteWhen": "04",
        "fileReservedTime": 72,
        "diskMaxUsedSpaceRatio": 95,
        "flushDiskType": "ASYNC_FLUSH",
        "brokerRole": "ASYNC_MASTER",
        "enablePropertyFilter": True,
        "traceTopicEnable": True,
        **changes,
    }
    texts = {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()
    }
    return {key: text for key, text in texts.items() if settings[key] is not None}


class OfficialServer(Server):
    """Official name server on :9876 and broker on :10911 of one version, "4.9" or "5.5"."""

    def __init__(
        self,
        version: str,
        home: Path,
        *,
        namespace: Namespace | None = None,
        broker_conf: Mapping[str, object] | None = None,
        name_server_conf: Mapping[str, object] | None = None,
        with_name_server: bool = True,
        java_opts: Sequence[str] = (),
    ) -> None:
        super().__init__(home, namespace)
        self.version = version
        self.side = f"official-{version}"
        self.emulates = version
        self.broker_conf = dict(broker_conf or {})
        self.name_server_conf = dict(name_server_conf or {})
        self.with_name_server = with_name_server
        self.java_opts = tuple(java_opts)
        self.name_server: Running | None = None
        self.brokers: dict[str, Running] = {}

    def start(self) -> None:
        if self.with_name_server:
            self.start_name_server()
        self.start_broker()

    def start_name_server(self) -> Running:
        prepare_home(self.home)
        conf = self.home / "conf" / "namesrv.conf"
        conf.write_text(
            "".join(f"{key}={value}\n" for key, value in self.name_server_conf.items()), encoding="utf-8"
        )
        self.name_server = self._run("namesrv.NamesrvStartup", "namesrv", NAME_SERVER_HEAP, conf)
        self.name_server.wait_for(BOOTED, BOOT_TIMEOUT_S)
        return self.name_server

    def start_broker(
        self, name: str = "broker", home: Path | None = None, conf: Mapping[str, object] | None = None
    ) -> Running:
        """One broker JVM. A second one needs a name and a home, and in conf a listenPort, a haListenPort and
        a brokerName (or brokerId and brokerRole)."""
        place = home or self.home
        prepare_home(place)
        settings = broker_settings(place, {**self.broker_conf, **(conf or {})})
        conf_file = place / "conf" / f"{name}.conf"
        conf_file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        broker = self._run("broker.BrokerStartup", name, BROKER_HEAP, conf_file, place)
        self.brokers[name] = broker
        broker.wait_for(BOOTED, BOOT_TIMEOUT_S)
        if self.with_name_server and settings["brokerId"] == "0":
            self._wait_for_registration(settings["brokerName"], broker)
        return broker

    def _wait_for_registration(self, broker_name: str, broker: Running) -> None:
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while not self.has_broker(broker_name):
            if not broker.alive or time.monotonic() > deadline:
                raise broker.failed("never stood in the name server's table")
            time.sleep(0.05)

    def _run(
        self, main: str, name: str, heap: tuple[str, ...], conf: Path, home: Path | None = None
    ) -> Running:
        place = home or self.home
        program = JavaProgram(self.version, f"org.apache.rocketmq.{main}")
        argv = program.command(place, (*heap, *DISK_RATIOS, *self.java_opts), ("-c", str(conf)))
        return Running(
            self.namespace, argv, place / "run" / f"{name}.out", name=f"official {self.version} {name}"
        )

    def stop(self) -> None:
        for broker in self.brokers.values():
            broker.stop(STOP_TIMEOUT_S)
        if self.name_server is not None:
            self.name_server.stop(STOP_TIMEOUT_S)

    def kill(self) -> None:
        for broker in self.brokers.values():
            broker.kill()
        if self.name_server is not None:
            self.name_server.kill()
