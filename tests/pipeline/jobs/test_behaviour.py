"""What clients did, from a journal: double owners, members, and gRPC clients beside the others."""

import asyncio
from pathlib import Path
from typing import Any

from pocketmq.client.connections.connection import Connection
from pocketmq.pipeline.jobs.behaviour import job
from pocketmq.pipeline.tables import open_topic
from pocketmq.protocol.bodies.client import ConsumerData, HeartbeatData
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.testing import EmbeddedServer, RocketMQ

from grpc_companion import record_grpc_calls
from pipeline.jobs.reports import rows


async def pull(connection: Connection, topic: str, queue_id: int) -> None:
    request = PullMessage(
        consumer_group="g", topic=topic, queue_id=queue_id, queue_offset=0, max_msg_nums=1, sys_flag=4,
        commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
    )  # fmt: skip
    await connection.post(request, timeout_seconds=30)


async def _two_owners(address: str, topic: str) -> None:
    """Queue 0 is handed over from one client to another, which has connected before; both read queue 1 alternately."""
    earlier = await Connection.connect(address)
    beat = HeartbeatData(client_id="client-1", consumer_data_set=[ConsumerData(group_name="g")])
    await earlier.call(HeartBeat(), beat.encode())
    earlier.close()
    clients = [await Connection.connect(address) for _ in range(2)]
    for number, connection in enumerate(clients):
        beat = HeartbeatData(client_id=f"client-{number}", consumer_data_set=[ConsumerData(group_name="g")])
        await connection.call(HeartBeat(), beat.encode())
    for number in (0, 0, 1, 1):
        await pull(clients[number], topic, 0)
    for number in (0, 1, 0, 1, 0, 1):
        await pull(clients[number], topic, 1)
    for connection in clients:
        connection.close()


def record_two_owners(folder: Path) -> None:
    with EmbeddedServer(journal=folder) as server:
        topic = RocketMQ(server).topic("shared", queues=2)
        asyncio.run(_two_owners(server.broker_addr, topic))
        RocketMQ(server).send(topic, "m", queue_id=1)
        for _ in range(3):
            open_topic(server.namesrv_addr, topic).read_all()


def test_the_behaviour_report_finds_the_one_double_owner(engine: Any, tmp_path: Path) -> None:
    record_two_owners(tmp_path / "journal")
    report = job.build(engine, [str(tmp_path / "journal")])
    assert report.findings is not None
    (finding,) = report.findings
    assert "queue 1 was read by two clients at once, client-0 and client-1" in finding
    clients = {row["client"]: row["pulls"] for row in rows(report, "clients")}
    assert clients == {"client-0": 5, "client-1": 5}, "a read of the pipeline is no client"
    ends = {row["client"]: row["until"] for row in rows(report, "members")}
    assert ends["client-1"] >= max(row["until"] for row in rows(report, "owners")), (
        "not the end of its first connection"
    )
    assert any("<svg" in piece for piece in report.drawings)


def test_the_behaviour_report_shows_grpc_clients_with_the_others(engine: Any, tmp_path: Path) -> None:
    """Members by their settings, receives as pulls of no queue, requests by the name of the rpc."""
    asyncio.run(record_grpc_calls(tmp_path / "journal"))
    report = job.build(engine, [str(tmp_path / "journal")])
    assert report.findings == []
    (member,) = rows(report, "members")
    assert (member["group"], member["client"], member["language"]) == ("billing", "test@1@0@a", "JAVA")
    assert (member["consumeFromWhere"], member["messageModel"]) == ("CONSUME_FROM_LAST_OFFSET", "CLUSTERING")
    assert member["how"] == "unregistered"
    (client,) = rows(report, "clients")
    assert (client["group"], client["client"], client["language"]) == ("billing", "test@1@0@a", "JAVA")
    assert (client["pulls"], client["messages"]) == (2, 2), "two receives, two messages"
    counts = {row["request"]: row["count"] for row in rows(report, "requests")}
    assert counts["ReceiveMessage"] == 2
    assert counts["SendMessage"] == 3
    assert rows(report, "owners") == rows(report, "positions") == []
