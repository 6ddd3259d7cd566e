"""`pocketmq behave` with programs that speak gRPC: what they send, receive, fail and leave behind is in the report."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.behave.sends import sends_of

from cli_runs import pocketmq
from grpc_client import GrpcClient
from grpc_companion import sent

TESTS = Path(__file__).parent.parent.parent
CLIENT = """
import asyncio, os, sys
sys.path.insert(0, os.environ["TESTS"])
from grpc_client import GrpcClient
from pocketmq.grpc_endpoint import messages as m

topic, group = (m.Resource(name=os.environ["BEHAVE_" + name]) for name in ("TOPIC", "GROUP"))
me = f"program@{os.getpid()}"

async def send(client):
    for number in range(10_000):
        properties = m.SystemProperties(message_id=f"{os.getpid()}-{number}")
        message = m.Message(topic=topic, body=b"x", system_properties=properties)
        reply = await client.ask(m.SendMessageRequest(messages=[message]), client_id=me)
        print("SENT" if reply.status == m.OK else "FAILED", flush=True)
        await asyncio.sleep(0.02)

async def receive(client):
    entry = m.SubscriptionEntry(topic=topic, expression=m.FilterExpression(expression="*"))
    subscription = m.Subscription(group=group, subscriptions=[entry])
    stream = client.open("Telemetry", client_id=me)
    kind = m.ClientType.SIMPLE_CONSUMER
    stream.send(m.TelemetryCommand(settings=m.Settings(client_type=kind, subscription=subscription)))
    await stream.next()
    asked = m.ReceiveMessageRequest(
        group=group,
        message_queue=m.MessageQueue(topic=topic, id=-1),
        filter_expression=m.FilterExpression(expression="*"),
        batch_size=8,
        invisible_duration=m.Duration(seconds=10),
        long_polling_timeout=m.Duration(seconds=20),
    )
    while True:
        call = client.open("ReceiveMessage", asked, client_id=me)
        while (reply := await call.next(30)) is not None:
            message = reply.message
            if message is None:
                continue
            properties = message.system_properties
            print("GOT", flush=True)
            if "HOLDS" in os.environ and os.environ["HOLDS"] == "once" and properties.delivery_attempt == 1:
                continue
            handle = m.AckMessageEntry(message_id=properties.message_id, receipt_handle=properties.receipt_handle)
            await client.ask(m.AckMessageRequest(group=group, topic=topic, entries=[handle]), client_id=me)

async def run():
    async with GrpcClient.connected(os.environ["ROCKETMQ_GRPC_ENDPOINT"].split(";")[0]) as client:
        await (send if os.environ["BEHAVE_ROLE"] == "producer" else receive)(client)

asyncio.run(run())
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("TESTS", str(TESTS))
    path = tmp_path / "client.py"
    path.write_text(CLIENT)
    return sys.executable, str(path)


def played(folder: Path, steps: str, client: tuple[str, ...]) -> dict[str, Any]:
    path = folder / "mine.yaml"
    path.write_text(f"about: Mine.\n{steps}")
    result = pocketmq("behave", str(path), "--json", "--output", str(folder), "--", *client)
    assert result.exit_code == 0, result.output + (folder / "mine-1.txt").read_text()
    found: dict[str, Any] = json.loads(result.stdout)["scenarios"]["mine"]["measures"]
    return found


@pytest.mark.slow
def test_sends_over_grpc_are_in_the_report(tmp_path: Path, client: tuple[str, ...]) -> None:
    steps = """
role: producer
brokers: 2
steps:
  - until: {sent: 10}
  - fault: {effect: refuse, code: SendMessage, topic: "{topic}", response: TOO_MANY_REQUESTS, times: 2}
  - until: {hits: 2}
  - until: {sent: 10}
"""
    found = played(tmp_path, steps, client)
    assert found["sends_refused"] == {"TOO_MANY_REQUESTS": 2}
    assert (found["given_up"], found["hits"]) == (2, 2)
    assert found["sent"] >= 20
    assert abs(found["said"]["SENT"] - found["sent"]) <= 1, "the last one may be answered while it ends"
    assert list(found["sent_to"]) == ["b0"]
    assert "GET_ROUTEINFO_BY_TOPIC" not in found["requests"], "the brokers asked that"
    assert found.get("reconnects", 0) == 0


@pytest.mark.slow
def test_receives_over_grpc_are_judged(tmp_path: Path, client: tuple[str, ...]) -> None:
    steps = """
role: consumer
programs: 2
steps:
  - until: {joined: 2}
  - feed: {messages: 40, seconds: 1}
  - kill_program: 1
  - until: {delivered: all}
"""
    found = played(tmp_path, steps, client)
    assert found["delivered"] == 40
    assert found.get("lost", 0) == found.get("unread", 0) == 0
    assert found["exit_codes"] == [143, 137]
    assert found["requests"]["AckMessage"] >= 30
    assert "rebalance_ms" not in found, "members that pop share the queues"


@pytest.mark.slow
def test_a_message_that_is_not_acknowledged_comes_again_or_dies(
    tmp_path: Path, client: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDS", "once")
    steps = """
role: consumer
retries: 0
steps:
  - until: {joined: 1}
  - feed: 2
  - until: {dead_letters: 2}
"""
    found = played(tmp_path, steps, client)
    assert (found["delivered"], found.get("redelivered", 0)) == (2, 0)


async def test_a_message_sent_over_grpc_is_known_by_its_id() -> None:
    async with EmbeddedServer() as server:
        one = RocketMQ(server)
        one.topic("orders")
        assert one.requests.count() == 0
        async with GrpcClient.connected(server.grpc_endpoint) as client:
            for body in (b"a", b"b", b"a"):
                await client.ask(sent(body))
        found = sends_of(one.requests)
    assert [(one.message, one.is_stored) for one in found] == [
        ("IDb'a'", True),
        ("IDb'b'", True),
        ("IDb'a'", True),
    ]
