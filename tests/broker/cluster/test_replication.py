"""Master and slave as two nodes with sockets: the log, the tables, the waits of a SYNC_MASTER, outages."""

import asyncio
import contextlib
import json
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.cluster import metadata_sync, replication_slave
from pocketmq.broker.cluster.replication_master import bind_ha_port
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import StartError
from pocketmq.broker.network.listening import close_all, port_of
from pocketmq.broker.node import Node
from pocketmq.client.errors import ClientError
from pocketmq.client.producing.producer import Producer
from pocketmq.client.values.message import Message
from pocketmq.protocol.text import fastjson
from pocketmq.store import NewMessage
from pocketmq.store.config import DEFAULT_HA_PORT

from broker.nodes import WAIT_SECONDS, call, make_node, running
from ports import fixed_port
from stream_server import stream_server
from waiting import until


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds that only pass become hundredths."""
    monkeypatch.setattr(replication_slave, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(metadata_sync, "FIRST_SECONDS", 0.02)
    monkeypatch.setattr(metadata_sync, "PERIOD_SECONDS", 0.05)


def slave_of(master: Node, folder: Path, **settings: Any) -> Node:
    store = {"broker_role": "SLAVE"} | settings.pop("store", {})
    settings = {"broker_id": 1} | settings
    return make_node(folder, namesrv=master.namesrv_address, store=store, **settings)


def same_log(master: Node, slave: Node) -> bool:
    ours, theirs = master.broker.store, slave.broker.store
    if ours.log_end != theirs.log_end:
        return False
    files = {file.base: file for file in ours.log.files}
    copies = theirs.log.files
    return all(
        bytes(copy.view[: copy.written]) == bytes(files[copy.base].view[: copy.written]) for copy in copies
    )


async def send_some(node: Node, topic: str, count: int, **options: Any) -> None:
    async with Producer("pg", namesrv_addr=node.namesrv_address, **options) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number)


@pytest.mark.parametrize("emulate", [4, 5])
async def test_slave_follows_log_topics_groups_and_offsets(tmp_path: Path, emulate: int) -> None:
    async with running(make_node(tmp_path / "m", emulate=emulate)) as master:
        await send_some(master, "before", 20)
        async with running(slave_of(master, tmp_path / "s", emulate=emulate)) as slave:
            await send_some(master, "after", 20)
            master.broker.groups.find_or_create("readers")
            master.broker.offsets.commit("after", "readers", 0, 3)
            await until(lambda: same_log(master, slave))
            await until(lambda: "after" in slave.broker.topics)
            await until(lambda: slave.broker.offsets.query("after", "readers", 0) == 3)
            await until(lambda: slave.broker.groups.find("readers") is not None)
            assert sum(slave.broker.store.max_offset("after", queue) for queue in range(8)) == 20
            reply = await call(master.broker_address, 907)
            if emulate == 5:
                info = fastjson.loads(bytes(reply.body or b""))
                assert info["master"] is True
                assert info["haConnectionInfo"][0]["slaveAckOffset"] == master.broker.store.log_end
                assert info["inSyncSlaveNums"] == 1
                mine = fastjson.loads(bytes((await call(slave.broker_address, 907)).body or b""))
                assert mine["haClientRuntimeInfo"]["maxOffset"] == slave.broker.store.log_end
            else:
                assert reply.code == 3


async def test_tables_of_several_pages_are_copied_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_sync, "PAGE_SIZE", 3)
    async with running(make_node(tmp_path / "m")) as master:
        for number in range(7):
            master.broker.groups.find_or_create(f"readers{number}")
        async with running(slave_of(master, tmp_path / "s")) as slave:
            groups, topics = master.broker.groups, master.broker.topics
            await until(lambda: slave.broker.groups.data_version == groups.data_version)
            await until(lambda: slave.broker.topics.data_version == topics.data_version)
            assert set(slave.broker.groups.groups) == set(groups.groups)
            assert set(slave.broker.topics.topics) == set(topics.topics)


async def test_slave_takes_over_request_modes_and_the_counts_of_timed_messages(tmp_path: Path) -> None:
    async with running(make_node(tmp_path / "m")) as master:
        await send_some(master, "popped", 1)
        mode = {"topic": "popped", "consumerGroup": "readers", "mode": "POP", "popShareQueueNum": 2}
        assert (await call(master.broker_address, 401, body=json.dumps(mode).encode())).code == 0
        master.broker.delayed.timer.metrics.add("popped", 3)
        async with running(slave_of(master, tmp_path / "s")) as slave:
            modes, counts = slave.broker.membership.request_modes, slave.broker.delayed.timer.metrics
            await until(lambda: modes.find("popped", "readers") is not None)
            await until(lambda: counts.count("popped") == 3)
            assert modes.to_json() == master.broker.membership.request_modes.to_json()
            assert counts.to_json() == master.broker.delayed.timer.metrics.to_json()
            assert (
                await call(master.broker_address, 401, body=json.dumps({**mode, "mode": "PULL"}).encode())
            ).code == 0
            master.broker.delayed.timer.metrics.add("popped", -1)
            await until(lambda: counts.count("popped") == 2)
            await until(lambda: modes.to_json() == master.broker.membership.request_modes.to_json())
    config = tmp_path / "s" / "config"
    assert json.loads((config / "timermetrics").read_text())["timingCount"]["popped"]["count"] == 2
    kept = json.loads((config / "messageRequestMode.json").read_text())
    assert kept["messageRequestModeMap"]["popped"]["readers"]["mode"] == "PULL"


async def test_a_slave_copies_tables_again_after_an_unforeseen_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        running(make_node(tmp_path / "m")) as master,
        running(slave_of(master, tmp_path / "s")) as slave,
    ):
        sync, failures = slave.broker.cluster.metadata_sync, [RuntimeError("made up")]
        topics = sync._topics

        async def fail_once(address: str) -> None:
            if failures:
                raise failures.pop()
            await topics(address)

        monkeypatch.setattr(sync, "_topics", fail_once)
        master.broker.groups.find_or_create("readers")
        await until(lambda: slave.broker.groups.find("readers") is not None)
        sync.given_address = "a..b:10911"  # 906 sets it unchecked
        await until(lambda: " from a..b:10911: the address must have the form host:port" in caplog.text)
        assert sync._task is not None
        assert not sync._task.done()
    assert "made up" in caplog.text


@pytest.mark.parametrize(("emulate", "code"), [(4, 14), (5, 2)])
async def test_sends_to_a_slave_are_refused(tmp_path: Path, emulate: int, code: int) -> None:
    async with running(make_node(tmp_path / "m", emulate=emulate)) as master:
        await send_some(master, "orders", 1)
        async with running(slave_of(master, tmp_path / "s", emulate=emulate)) as slave:
            await until(lambda: "orders" in slave.broker.topics)
            fields = {"producerGroup": "pg", "topic": "orders", "defaultTopic": "TBW102", "queueId": "0"}
            fields |= {"defaultTopicQueueNums": "4", "sysFlag": "0", "bornTimestamp": "1", "flag": "0"}
            reply = await call(slave.broker_address, 10, fields, b"x")
            assert reply.code == code


async def test_sync_master_of_5_waits_for_its_replicas(tmp_path: Path) -> None:
    store = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "slave_timeout": 200}
    async with (
        running(make_node(tmp_path / "m", store=store)) as master,
        Producer("pg", namesrv_addr=master.namesrv_address) as producer,
    ):
        assert (await producer.send("orders", b"alone")).status.name == "FLUSH_SLAVE_TIMEOUT"
        master.broker.config.store.slave_timeout = 30_000
        async with running(slave_of(master, tmp_path / "s")) as slave:
            sent = await producer.send("orders", b"in company")
            assert sent.status.name == "SEND_OK"
            assert slave.broker.store.log_end == master.broker.store.log_end


async def test_sync_master_of_49_does_not_wait_where_no_slave_is(tmp_path: Path) -> None:
    store = {"broker_role": "SYNC_MASTER", "slave_timeout": 30_000}
    async with (
        running(make_node(tmp_path / "m", store=store, emulate=4)) as master,
        Producer("pg", namesrv_addr=master.namesrv_address) as producer,
    ):
        assert (await producer.send("orders", b"alone")).status.name == "SLAVE_NOT_AVAILABLE"
        async with running(slave_of(master, tmp_path / "s", emulate=4)):
            await until(lambda: master.broker.cluster.replication.refusal() is None)
            assert (await producer.send("orders", b"x")).status.name == "SEND_OK"


async def test_message_that_does_not_want_to_wait_does_not(tmp_path: Path) -> None:
    store = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "slave_timeout": 30_000}
    async with (
        running(make_node(tmp_path / "m", store=store)) as master,
        Producer("pg", namesrv_addr=master.namesrv_address) as producer,
    ):
        sent = await producer.send(Message("orders", b"x", wait_store_ok=False))
        assert sent.status.name == "SEND_OK"


async def test_stop_answers_the_sends_that_wait_for_slaves(tmp_path: Path) -> None:
    store = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "slave_timeout": 30_000}
    master = make_node(tmp_path / "m", store=store)
    await master.start()
    async with Producer("pg", namesrv_addr=master.namesrv_address, send_msg_timeout=20_000) as producer:
        sending = asyncio.ensure_future(producer.send("orders", b"x"))
        await until(lambda: master.broker.cluster.replication.waiters)
        await master.stop()
        try:
            assert (await sending).status.name == "FLUSH_SLAVE_TIMEOUT"
        except ClientError:
            pass  # the connection went before the answer did


async def test_slave_ahead_of_its_master_copies_nothing(tmp_path: Path) -> None:
    async with running(make_node(tmp_path / "m")) as master:
        await send_some(master, "orders", 10)
        async with running(slave_of(master, tmp_path / "s")) as slave:
            await until(lambda: same_log(master, slave))
    async with running(make_node(tmp_path / "other")) as master:
        await send_some(master, "others", 1)
        async with running(slave_of(master, tmp_path / "s")) as slave:
            end = slave.broker.store.log_end
            await until(lambda: master.broker.cluster.replication.slaves)
            await send_some(master, "others", 1)
            async with running(slave_of(master, tmp_path / "empty", broker_id=2)) as other:
                await until(lambda: same_log(master, other))
            assert slave.broker.store.log_end == end


async def test_a_master_without_slaves_is_not_notified_of_appends(tmp_path: Path) -> None:
    async with running(make_node(tmp_path / "m")) as master:
        assert master.broker.store.after_append == []
        async with running(slave_of(master, tmp_path / "s")):
            await until(lambda: master.broker.store.after_append)
        await until(lambda: not master.broker.store.after_append)


async def test_silent_slaves_are_closed_and_quiet_ones_hear_a_sign_of_life(tmp_path: Path) -> None:
    store = {"ha_send_heartbeat_interval": 50, "ha_housekeeping_interval": 1000}
    async with running(make_node(tmp_path / "m", store=store)) as master:
        await send_some(master, "orders", 1)
        end = master.broker.store.log_end
        port = int(master.broker.identity.ha_address.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(struct.pack(">q", end))
        async with asyncio.timeout(WAIT_SECONDS):
            assert struct.unpack(">qi", await reader.readexactly(12)) == (end, 0)
            rest = await reader.read()  # to the end of the connection
        assert len(rest) % 12 == 0
        writer.close()
        await until(lambda: not master.broker.cluster.replication.slaves)


async def test_garbage_on_the_ha_port_disturbs_no_slave(tmp_path: Path) -> None:
    async with (
        running(make_node(tmp_path / "m")) as master,
        running(slave_of(master, tmp_path / "s")) as slave,
    ):
        await until(lambda: master.broker.cluster.replication.slaves)
        port = int(master.broker.identity.ha_address.rpartition(":")[2])
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, struct.pack(">q", 1 << 62)):
            with socket.create_connection(("127.0.0.1", port)) as peer:
                peer.sendall(garbage)
        await send_some(master, "orders", 3)
        await until(lambda: same_log(master, slave))


@pytest.mark.parametrize(
    "promise", [{"authentication_enabled": True}, {"tls_server_mode": "enforcing"}], ids=str
)
@pytest.mark.parametrize("is_asked_for", [False, True])
async def test_the_log_leaves_past_access_control_and_tls_only_if_asked_for(
    tmp_path: Path, promise: dict[str, Any], is_asked_for: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store = {"ha_listen_port": fixed_port()} if is_asked_for else {}
    user = '{"username":"admin","password":"12345678"}'
    node = make_node(tmp_path / "m", store=store, init_authentication_user=user, **promise)
    async with running(node) as master:
        master.broker.store.append(NewMessage("orders", 0, b"secret", b""))
        port = int(master.broker.identity.ha_address.rpartition(":")[2])
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(bytes(8))
            async with asyncio.timeout(WAIT_SECONDS):
                with contextlib.suppress(ConnectionResetError):
                    assert (b"secret" in await reader.read(1000)) == is_asked_for
            writer.close()
    said = [record.message for record in caplog.records if "HA port" in record.message]
    assert len(said) == 1


@pytest.mark.parametrize("ahead", [1, 1 << 62])
async def test_a_slave_that_claims_what_was_not_sent_answers_no_send(tmp_path: Path, ahead: int) -> None:
    store = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "slave_timeout": 50}
    async with (
        running(make_node(tmp_path / "m", store=store)) as master,
        Producer("pg", namesrv_addr=master.namesrv_address) as producer,
    ):
        port = int(master.broker.identity.ha_address.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(struct.pack(">q", master.broker.store.log_end))
        await until(lambda: [slave.acknowledged for slave in master.broker.cluster.replication.slaves] == [0])
        writer.write(struct.pack(">q", master.broker.store.log_end + ahead))
        await until(lambda: master.broker.cluster.replication.slaves[0].acknowledged == -1)
        assert (await producer.send("orders", b"x")).status.name == "FLUSH_SLAVE_TIMEOUT"
        writer.close()


async def test_master_that_sends_garbage_does_no_harm(tmp_path: Path) -> None:
    heard = asyncio.Event()

    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(struct.pack(">qi", 0, -5) + b"x" * 100)
        await reader.read()
        heard.set()

    async with running(make_node(tmp_path / "m")) as master, stream_server(lie) as port:
        settings = {"ha_master_address": f"127.0.0.1:{port}"}
        async with running(slave_of(master, tmp_path / "s", store=settings)) as slave:
            async with asyncio.timeout(WAIT_SECONDS):
                await heard.wait()
            assert slave.broker.store.log_end == 0


async def test_a_taken_port_behind_the_brokers_does_not_keep_slaves_away(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sockets = await bind_ha_port(BrokerConfig(), "127.0.0.1", port - 1)
        assert port_of(sockets) not in (port, DEFAULT_HA_PORT)
        close_all(sockets)


async def test_a_taken_port_that_was_asked_for_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        node = make_node(tmp_path / "m", store={"ha_listen_port": taken.getsockname()[1]})
        with pytest.raises(StartError, match="haListenPort"):
            await node.start()
