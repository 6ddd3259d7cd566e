"""PocketMQ as a user starts it: `pocketmq serve` as a subprocess, in a namespace of its own."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.servers.namespaces import Namespace
from conformance.servers.processes import Running
from conformance.servers.server import BROKER_PORT, NAME_SERVER_PORT, Server

READY = r"\ANAMESRV_ADDR=(\S+):(\d+)$"
READY_TIMEOUT_S = 15.0


class OurServer(Server):
    """PocketMQ's name server and broker on the official ports.

    It emulates `line`; broker_conf holds broker.conf keys (given as --set), options further words of `pocketmq serve`.
    """

    def __init__(
        self,
        home: Path,
        *,
        line: str = "5.5",
        namespace: Namespace | None = None,
        broker_conf: Mapping[str, object] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        super().__init__(home, namespace)
        self.side = "ours"
        self.emulates = line
        self._settings = setting_words(line, broker_conf)
        self.options = tuple(options)
        self.process: Running | None = None
        self._starts = 0
        self._stopped = True

    def start(self) -> None:
        ports = ["--port", str(BROKER_PORT), "--namesrv-port", str(NAME_SERVER_PORT)]
        self._starts += 1  # a log file per start: lines of an earlier run must not count for this one
        words = [
            "-m",
            "pocketmq.cli",
            "serve",
            "--store",
            str(self.store),
            *ports,
            *self._settings,
            *self.options,
        ]
        log = self.home / "run" / f"pocketmq-{self._starts}.out"
        self.process = Running(
            self.namespace, [sys.executable, *words], log, name="pocketmq serve", separate_errors=True
        )
        self._stopped = False
        self.process.wait_for(READY, READY_TIMEOUT_S)

    def stop(self) -> None:
        """SIGTERM; raises AssertionError if the exit code is not 0, also if it had already ended by itself."""
        if self.process is None or self._stopped:
            return
        self._stopped = True
        code = self.process.stop()
        if code != 0:
            raise self.process.failed(f"exited with {code}, not with 0 after SIGTERM")

    def process_errors(self) -> str:
        """What it logged in this run."""
        assert self.process is not None
        return self.process.errors

    def end(self) -> None:
        """A clean stop, so every test session also checks that our server stops cleanly."""
        self.stop()

    def kill(self) -> None:
        if self.process is not None:
            self._stopped = True
            self.process.kill()


def setting_words(line: str, broker_conf: Mapping[str, object] | None) -> list[str]:
    """Those of `pocketmq serve` for a server of that line."""
    settings = {"emulate": "4.9" if line == "4.9" else "5", **(broker_conf or {})}
    texts = (
        f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in settings.items()
    )
    return [word for text in texts for word in ("--set", text)]
