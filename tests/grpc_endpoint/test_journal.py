"""gRPC calls in the journal: recorded as remoting requests are, and found by its readers."""

import asyncio
import json
import zlib
from pathlib import Path

import pytest
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.messages.service import MESSAGING
from pocketmq.protocol.journal_frames import (
    VERSION,
    Closed,
    Connected,
    Entry,
    Exchange,
    FrameReader,
    Pushed,
    decode_entries,
)
from pocketmq.protocol.requests.send import CheckTransactionState
from pocketmq.protocol.rpc_numbers import FIRST_RPC, RPC_NAMES, RPC_NUMBERS
from pocketmq.protocol.wire.schema import REQUESTS
from pocketmq.testing import EmbeddedServer, RocketMQ

from grpc_client import GrpcClient, encode
from grpc_companion import half, record_grpc_calls, sent


def entries_of(folder: Path) -> list[Entry]:
    found: list[Entry] = []
    for path in sorted(folder.glob("*.journal")):
        frames = list(FrameReader(path.read_bytes()))
        found += [entry for frame in frames[1:] for entry in decode_entries(frame)]
    return found


def exchanges(entries: list[Entry], name: str) -> list[Exchange]:
    return [one for one in entries if isinstance(one, Exchange) and one.code == RPC_NUMBERS[name]]


async def test_calls_stand_in_it_with_name_client_topic_group_code_and_times(tmp_path: Path) -> None:
    await record_grpc_calls(tmp_path)
    entries = entries_of(tmp_path)
    one, two, refused = exchanges(entries, "SendMessage")
    assert one.fields == {"topic": "orders", "clientId": "test@1@0@a"}
    assert (one.client_id, one.language, one.is_oneway, one.reply_code) == ("test@1@0@a", "JAVA", False, 0)
    body = encode(sent(b"one"))
    assert (one.body_bytes, one.body_crc) == (len(body), zlib.crc32(body))
    assert one.reply_bytes > 0
    assert 0 < one.received_ns <= one.answered_ns <= two.received_ns
    assert (refused.reply_code, refused.reply_remark) == (
        m.Code.MESSAGE_BODY_EMPTY,
        "message body cannot be empty",
    )
    found, cancelled = exchanges(entries, "ReceiveMessage")
    assert (found.fields or {})["consumerGroup"] == "billing"
    assert found.reply_fields == {"messages": "2"}
    assert (cancelled.reply_code, cancelled.answered_ns) == (None, 0)
    assert entries.index(cancelled) < entries.index(exchanges(entries, "Heartbeat")[0]), (
        "recorded when it ends"
    )
    (ack,) = exchanges(entries, "AckMessage")
    assert ack.reply_code == 0
    connected = {entry.connection: entry for entry in entries if isinstance(entry, Connected)}
    assert connected[one.connection].server == "gRPC"
    assert {entry.connection for entry in entries if isinstance(entry, Closed)} == connected.keys()


async def test_settings_and_heartbeats_say_who_is_a_member_of_what(tmp_path: Path) -> None:
    await record_grpc_calls(tmp_path)
    entries = entries_of(tmp_path)
    (telemetry,) = exchanges(entries, "Telemetry")
    assert telemetry.is_oneway
    assert json.loads(telemetry.detail or "") == {
        "clientID": "test@1@0@a",
        "consumerDataSet": [
            {
                "groupName": "billing",
                "messageModel": "CLUSTERING",
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "consumeType": "CONSUME_ACTIVELY",
                "subscriptionDataSet": [{"topic": "orders", "subString": "*", "expressionType": "TAG"}],
            }
        ],
        "producerDataSet": [],
    }
    (heartbeat,) = exchanges(entries, "Heartbeat")
    assert json.loads(heartbeat.detail or "")["consumerDataSet"][0]["groupName"] == "billing"
    assert exchanges(entries, "SendMessage")[0].detail is None


async def test_what_the_server_asks_a_client_is_in_it(tmp_path: Path) -> None:
    """As for remoting clients: the check of a transaction."""
    async with (
        EmbeddedServer(journal=tmp_path, grpc_port=0, virtual_time=True) as server,
        GrpcClient.connected(server.grpc_endpoint) as client,
    ):
        await half(RocketMQ(server), client)
        await asyncio.to_thread(server.clock.advance, "50s")
        await client.ping()
    to_clients = [one for one in entries_of(tmp_path) if isinstance(one, Pushed)]
    pushed = [one for one in to_clients if one.code == CheckTransactionState.code]
    assert {one.client_id for one in pushed} == {"test@1@0@a"}
    assert {"tranStateTableOffset", "commitLogOffset", "msgId"} <= (pushed[0].fields or {}).keys()
    assert pushed[0].body_bytes > 0


async def test_bodies_of_messages_are_not_in_it(tmp_path: Path) -> None:
    async with (
        EmbeddedServer(journal=tmp_path, grpc_port=0) as server,
        GrpcClient.connected(server.grpc_endpoint) as client,
    ):
        await client.ask(sent(b"a secret"))
    assert exchanges(entries_of(tmp_path), "SendMessage")
    assert not any(b"a secret" in path.read_bytes() for path in tmp_path.glob("*.journal"))


async def test_a_refused_call_is_recorded_as_its_client_saw_it(tmp_path: Path) -> None:
    """The journal is nearer to the client than the faults."""
    async with EmbeddedServer(journal=tmp_path, grpc_port=0) as server:
        rocketmq = RocketMQ(server)
        rocketmq.faults.refuse(code="SendMessage", response="TOO_MANY_REQUESTS")
        async with GrpcClient.connected(server.grpc_endpoint) as client:
            await client.ask(sent())
    (one,) = exchanges(entries_of(tmp_path), "SendMessage")
    assert one.reply_code == m.Code.TOO_MANY_REQUESTS


async def test_the_rows_of_the_pipeline_name_the_rpcs(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from pocketmq.pipeline.tables import open_journal

    await record_grpc_calls(tmp_path)
    rows = open_journal(str(tmp_path)).read_all().to_pylist()
    calls = [row for row in rows if row["kind"] == "exchange" and row["code"] >= FIRST_RPC]
    assert [row["request"] for row in calls] == [
        *("Telemetry", "SendMessage", "SendMessage", "ReceiveMessage", "AckMessage", "SendMessage"),
        *("ReceiveMessage", "Heartbeat", "NotifyClientTermination"),
    ]
    receives = [row for row in calls if row["request"] == "ReceiveMessage"]
    assert {(row["group"], row["topic"], row["queueId"]) for row in receives} == {("billing", "orders", None)}
    assert {row["clientId"] for row in calls} == {"test@1@0@a"}
    assert all(row["tookMicros"] is None or row["tookMicros"] >= 0 for row in calls)


def test_every_rpc_has_a_number_that_no_request_has() -> None:
    assert {rpc.name for rpc in MESSAGING} <= set(RPC_NUMBERS)
    assert list(RPC_NAMES) == list(range(FIRST_RPC, FIRST_RPC + len(RPC_NUMBERS)))
    assert max(REQUESTS) < FIRST_RPC


def test_the_form_of_the_file_is_the_one_that_older_readers_know() -> None:
    """Calls are exchanges with other numbers; an older reader shows the number."""
    assert VERSION == 1
