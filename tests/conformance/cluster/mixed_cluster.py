"""One cluster of all kinds: name servers and brokers of PocketMQ and of both official lines.

In one namespace run four name servers and four brokers: official 4.9.7, official 5.5.0, and ours as either line. Every
broker registers at every name server. Not the tests: `test_registration.py`.
"""

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from conformance.official.servers import OfficialServer
from conformance.servers import remoting
from conformance.servers.namespaces import Namespace
from conformance.servers.our_server import OurServer
from conformance.servers.raw_client import topic_fields, wait_until

QUEUES = 2
UNKNOWN_TOPIC = 17
GET_ROUTE = 105
GET_CLUSTER = 106
UPDATE_TOPIC = 17
QUERY_OFFSET = 14
GET_MAX_OFFSET = 30
CLIENT_VERSION = 513  # V5_5_0: may be answered in standard JSON


@dataclass(frozen=True)
class Member:
    """A name server and a broker of one kind; `side` also names the broker."""

    side: str
    namesrv_port: int
    broker_port: int

    @property
    def broker(self) -> str:
        return f"broker-{self.side}"

    @property
    def is_49(self) -> bool:
        return self.side.endswith("49")

    @property
    def namesrv_addr(self) -> str:
        return f"127.0.0.1:{self.namesrv_port}"


OURS_5, OURS_49 = Member("ours55", 9876, 10951), Member("ours49", 9879, 10971)
OFFICIAL_49, OFFICIAL_55 = Member("official49", 9877, 10911), Member("official55", 9878, 10931)
MEMBERS = (OURS_5, OURS_49, OFFICIAL_49, OFFICIAL_55)
EVERY_NAME_SERVER = ";".join(member.namesrv_addr for member in MEMBERS)


class Cluster:
    """All members started. `ours` and `official` are the servers, to be stopped or killed by tests."""

    def __init__(self, home: Path, namespace: Namespace) -> None:
        self.namespace = namespace
        self.ours = {member: self._our_server(member, home) for member in (OURS_5, OURS_49)}
        self.official = {
            member: OfficialServer(
                "4.9" if member.is_49 else "5.5",
                home / member.side,
                namespace=namespace,
                name_server_conf={"listenPort": member.namesrv_port},
                with_name_server=False,
                broker_conf={
                    "brokerName": member.broker,
                    "listenPort": member.broker_port,
                    "haListenPort": member.broker_port + 1,
                    "namesrvAddr": EVERY_NAME_SERVER,
                    "registerNameServerPeriod": 10_000,  # the shortest allowed
                    "brokerFastFailureEnable": False,  # a loaded machine must not make a broker refuse sends
                },
            )
            for member in (OFFICIAL_49, OFFICIAL_55)
        }

    def _our_server(self, member: Member, home: Path) -> OurServer:
        ports = ("--port", str(member.broker_port), "--namesrv-port", str(member.namesrv_port))
        return OurServer(
            home / member.side,
            line="4.9" if member.is_49 else "5.5",
            namespace=self.namespace,
            broker_conf={"brokerName": member.broker},
            options=(*ports, "--namesrv", EVERY_NAME_SERVER),
        )

    def start(self, pool: ThreadPoolExecutor) -> None:
        """Name servers, then brokers: a broker that starts before its name server is not tested here."""
        list(pool.map(OfficialServer.start_name_server, self.official.values()))
        official = pool.map(OfficialServer.start_broker, self.official.values())
        list(pool.map(OurServer.start, self.ours.values()))
        list(official)

    def close(self) -> None:
        for server in (*self.official.values(), *self.ours.values()):
            with contextlib.suppress(AssertionError):
                server.close()

    # -- questions to the members

    def call(self, port: int, code: int, **fields: object) -> remoting.Reply:
        with self.namespace.connect(port) as connection:
            return remoting.call(connection, code, fields, version=CLIENT_VERSION)

    def route(self, member: Member, topic: str) -> Any:
        """A topic's route at its name server, None if it has none."""
        reply = self.call(member.namesrv_port, GET_ROUTE, topic=topic, acceptStandardJsonOnly=True)
        assert reply.code in (0, UNKNOWN_TOPIC), reply
        return reply.json() if reply.code == 0 else None

    def brokers_at(self, member: Member) -> dict[str, Any]:
        """The brokers its name server knows, by name, with their addresses."""
        text = self.call(member.namesrv_port, GET_CLUSTER).body.decode()
        table = json.loads(text.replace("{0:", '{"0":'))[
            "brokerAddrTable"
        ]  # fastjson does not quote number keys
        return {name: data["brokerAddrs"] for name, data in table.items()}

    def make_topic(self, member: Member, topic: str) -> None:
        """Create it on that one broker; returns when every name server has its route."""
        assert self.call(member.broker_port, UPDATE_TOPIC, **topic_fields(topic, QUEUES)).code == 0
        for other in MEMBERS:
            wait_until(partial(self.knows_topic, other, topic), f"{other.side}: no route of {topic}")

    def knows_topic(self, member: Member, topic: str) -> bool:
        """Whether its name server has a route for that topic."""
        return self.route(member, topic) is not None

    def committed(self, member: Member, group: str, topic: str) -> list[tuple[str, str]]:
        """(committed, max) offset of each queue."""
        offsets = []
        for queue in range(QUEUES):
            place: dict[str, object] = {"topic": topic, "queueId": queue}
            stored = self.call(member.broker_port, QUERY_OFFSET, consumerGroup=group, **place)
            end = self.call(member.broker_port, GET_MAX_OFFSET, **place)
            offsets.append((stored.fields["offset"], end.fields["offset"]))
        return offsets


@contextlib.contextmanager
def started_cluster(home: Path) -> Iterator[Cluster]:
    with Namespace() as namespace, ThreadPoolExecutor() as pool:
        cluster = Cluster(home, namespace)
        try:
            cluster.start(pool)
            yield cluster
        finally:
            cluster.close()
