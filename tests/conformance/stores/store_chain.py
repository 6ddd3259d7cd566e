"""One store that several servers open in turn; each adds to it and then stops, or is killed.

`Chain.run` does all turns and keeps what every server showed; the tests compare it. All servers of a chain run one
after the other in one namespace, on the same ports and the same directory; one JVM with StoreTraffic.java is the
client of all of them.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from conformance import JAVA
from conformance.conftest import make_server
from conformance.official.programs import Programs, compile_java
from conformance.servers.namespaces import Namespace
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import NAMESRV_ADDR
from conformance.stores.store_snapshot import (
    GET_ALL_CONSUMER_OFFSETS,
    GET_ALL_DELAY_OFFSETS,
    Snapshot,
    java_json,
    take,
)

BULK = 150
LATER_LEVEL, RETRY_LEVEL, LONGEST_LEVEL = 2, 3, 4
GROUP = "Readers"
TOPICS = ("Plain", "Keyed", "Batch", f"%RETRY%{GROUP}")
SAVED_SECONDS = 30.0

# Small files, so that each step fills one or two of every kind. The same for every server of a store.
STORE_CONF: dict[str, object] = {
    "mappedFileSizeCommitLog": 1 << 17,
    "mappedFileSizeConsumeQueue": 1200,
    "maxHashSlotNum": 64,
    "maxIndexNum": 300,
    "messageDelayLevel": "1s 4s 1s 3600s",
    "flushConsumerOffsetInterval": 1000,
    "flushDelayOffsetInterval": 1000,
    "brokerFastFailureEnable": False,
}
GROUP_CONFIG = {
    "groupName": GROUP,
    "consumeEnable": True,
    "retryMaxTimes": 7,
    "consumeBroadcastEnable": False,
}


@dataclass(frozen=True)
class Turn:
    """Which server is next, and how its turn ends: "stop" or "kill"."""

    side: str
    end: str


@dataclass
class Step:
    """What one server showed: `opened` before anything was added (None for the first), `closed` before its end."""

    turn: Turn
    sent: list[list[str]] = field(default_factory=list)
    got: list[list[str]] = field(default_factory=list)
    opened: Snapshot | None = None
    closed: Snapshot | None = None
    later: list[bytes] = field(default_factory=list)
    """Bodies of the messages that were waiting when the former servers ended."""
    files: dict[str, int] = field(default_factory=dict)
    """How many files there are in some folders of the store."""


class Chain:
    """Use once. `steps` grows as it runs."""

    def __init__(self, turns: tuple[Turn, ...], home: Path, client: str) -> None:
        self.turns = turns
        self.steps: list[Step] = []
        self._home = home
        self._client = client

    def run(self) -> None:
        with Namespace() as namespace:
            programs = Programs(namespace, self._home / "programs", NAMESRV_ADDR)
            try:
                java = programs.start_java(compile_java(self._client, JAVA / "StoreTraffic.java"))
                for number, turn in enumerate(self.turns):
                    self._take_turn(number, turn, java, namespace)
            finally:
                programs.close()

    def _take_turn(self, number: int, turn: Turn, java: Running, namespace: Namespace) -> None:
        step = Step(turn)
        server = make_server(turn.side, self._home / "server", namespace=namespace, broker_conf=STORE_CONF)
        try:
            server.start()
            with RawClient(server) as client:
                self._prepare(client, step, number)
                self._add(java, step, number)
                step.closed = take(client, TOPICS, (RETRY_LEVEL, LONGEST_LEVEL), GROUP)
                if turn.end == "kill":
                    wait_until(
                        lambda: is_saved(client, server.store), "offsets were never saved", SAVED_SECONDS
                    )
            self._job(java, step, f"later s{number}")
            server.stop() if turn.end == "stop" else server.kill()
        finally:
            server.close()
        for folder in ("commitlog", "consumequeue/Plain/0", "index"):
            step.files[folder] = sum(path.is_file() for path in (server.store / folder).iterdir())
        self.steps.append(step)

    def _prepare(self, client: RawClient, step: Step, number: int) -> None:
        if number == 0:
            assert client.call(200, json.dumps(GROUP_CONFIG).encode()).code == 0
            # The first heartbeat creates it too, but the client learns of it only 30 s later, with its next routes.
            client.update_topic(f"%RETRY%{GROUP}", 1)
            return
        step.opened = take(client, TOPICS, (RETRY_LEVEL, LONGEST_LEVEL), GROUP)
        wait_until(lambda: later_count(client) >= number, "a waiting message was never delivered")
        step.later = [
            message.body
            for messages in take(client, ["Later"], (), GROUP).messages.values()
            for message in messages
        ]

    def _add(self, java: Running, step: Step, number: int) -> None:
        self._job(java, step, f"write s{number} {BULK}")
        self._job(java, step, f"read s{number} 7")

    def _job(self, java: Running, step: Step, line: str) -> None:
        before = len(java.output)
        java.say(line)
        java.wait_for(f"^(DONE|FAILED) {line}$", 60)
        for printed in java.output[before:].splitlines():
            words = printed.split(" ")
            if words[0] == "FAILED":
                raise java.failed(line)
            if words[0] in ("SENT", "GOT"):
                (step.sent if words[0] == "SENT" else step.got).append(words[1:])


def later_count(client: RawClient) -> int:
    return sum(client.max_offset("Later", queue_id) for queue_id in range(4))


def is_saved(client: RawClient, store: Path) -> bool:
    """Whether the files hold the broker's whole state: only then must a kill lose nothing."""
    for code, name in ((GET_ALL_CONSUMER_OFFSETS, "consumerOffset"), (GET_ALL_DELAY_OFFSETS, "delayOffset")):
        known = java_json(client.call(code).body.decode())["offsetTable"]
        try:
            held = java_json((store / "config" / f"{name}.json").read_text(encoding="utf-8"))["offsetTable"]
        except (FileNotFoundError, ValueError):  # not yet written, or being written
            return False
        if without_zeros(known) != without_zeros(held):
            return False
    return True


def without_zeros(table: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in table.items() if value != 0}
