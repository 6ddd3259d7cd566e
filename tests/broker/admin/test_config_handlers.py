"""25 and 26: what is in force, remembered, logged and written to the file.

The answers of 4.9.7 and 5.5.0 are in the recorded conversation `administration`; `test_keys.py` compares the keys.
"""

import asyncio
import json
import stat
import time
from pathlib import Path

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.config import keys as config_keys
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.loading import load_broker
from pocketmq.protocol.requests.admin import GetBrokerConfig, UpdateBrokerConfig
from pocketmq.store import VirtualClock

from broker.nodes import make_node, running
from broker_fakes import Asked, MakeBroker, ask


async def update(broker: Broker, text: str) -> Asked:
    return await ask(broker, UpdateBrokerConfig(), text.encode())


async def settings(broker: Broker) -> dict[str, str]:
    body = (await ask(broker, GetBrokerConfig())).body.decode()
    return dict(row.split("=", 1) for row in body.splitlines())


# -- 26


async def test_answer_tells_what_is_set_and_the_official_default_of_the_rest(broker: Broker) -> None:
    answer = await settings(broker)
    assert answer["maxHashSlotNum"] == str(broker.config.store.max_hash_slot_num)
    assert answer["storePathCommitLog"] == str(broker.config.store.commit_log_dir)
    assert answer["sendHeartbeatTimeoutMillis"] == "1000"
    assert "haMasterAddress" not in answer, "officially null"


# -- 25


async def test_change_is_in_force_at_once_and_counted(broker: Broker, clock: VirtualClock) -> None:
    clock.advance(5)
    answer = await update(broker, "accessMessageInMemoryMaxRatio=7\nlongPollingEnable=false\n")
    assert (answer.code, answer.remark, answer.body) == (0, None, b"")
    assert broker.config.store.access_message_in_memory_max_ratio == 7
    assert broker.config.long_polling_enable is False
    version = json.loads((await ask(broker, GetBrokerConfig())).fields["version"])
    assert version == {"counter": 1, "stateVersion": 0, "timestamp": clock.now_ms()}


@pytest.mark.parametrize(
    ("text", "is_on"),
    [("abc", False), ("1", False), ("yes", False), ("", False), (" true", True), ("TRUE", True)],
)
async def test_any_text_but_true_is_false(broker: Broker, text: str, is_on: bool) -> None:
    """As 5.5.0 answers."""
    await update(broker, "autoCreateTopicEnable=true")
    answer = await update(broker, f"autoCreateTopicEnable={text}")
    assert (answer.code, answer.remark) == (0, None)
    assert (await settings(broker))["autoCreateTopicEnable"] == str(is_on).lower()


async def test_black_list_can_be_longer(broker_maker: MakeBroker) -> None:
    broker = broker_maker(config_black_list="configBlackList;brokerPermission")
    assert (await update(broker, "brokerPermission=2")).code == 16


async def test_the_4_9_line_has_no_black_list_but_skips_these_keys(broker4: Broker) -> None:
    assert (await update(broker4, "rocketmqHome=/tmp/x")).code == 0
    assert (await settings(broker4))["rocketmqHome"] == ""


async def test_permission_is_a_new_edition_of_all_topics(broker: Broker) -> None:
    before = broker.topics.data_version.counter
    await update(broker, "brokerPermission=4")
    assert broker.config.broker_permission == 4
    assert broker.topics.data_version.counter == before + 1


async def test_a_key_that_waits_for_a_restart_is_answered_but_not_in_force(broker: Broker) -> None:
    answer = await update(broker, "listenPort=12345\nflushDiskType=SYNC_FLUSH\ntraceOn=false\n")
    assert (answer.code, answer.remark) == (0, "after a restart: flushDiskType, listenPort")
    shown = await settings(broker)
    assert (shown["listenPort"], shown["flushDiskType"]) == ("12345", "SYNC_FLUSH")
    assert (broker.config.listen_port, broker.config.store.flush_disk_type) == (10911, "ASYNC_FLUSH")


async def test_thousands_of_unknown_keys_cost_one_line_and_three_searches(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """A similar key was searched for each: 20,000 took nine seconds."""
    text = "".join(f"longPolingEnable{number}=1\n" for number in range(2500))
    start = time.process_time()
    assert (await update(broker, text)).code == 0
    assert time.process_time() - start < 1
    [line] = [record.getMessage() for record in caplog.records if "ignored" in record.getMessage()]
    assert "longPolingEnable0 is an unknown key, did you mean longPollingEnable?; " in line
    assert line.endswith(", and 2497 others")
    assert len(line) < 500


async def test_settings_longer_than_all_keys_are_refused_unread(broker: Broker) -> None:
    answer = await update(broker, "a=\\\n" * 20_000)
    assert (answer.code, answer.remark) == (1, "settings of 80000 bytes; the limit is 65536")


async def test_settings_are_in_force_before_the_name_servers_answer(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that hangs up meanwhile ends the handler."""

    async def silent() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(broker.cluster.registration, "register_permission", silent)
    change = asyncio.create_task(update(broker, "brokerPermission=4\nautoCreateTopicEnable=false\n"))
    await asyncio.sleep(0)
    change.cancel()
    assert not broker.config.auto_create_topic_enable
    assert broker.topics.create_for_send("created", "TBW102", 4) is None


def test_keys_waiting_for_a_restart_are_honoured_keys() -> None:
    waiting = {key.name for key in config_keys.keys("broker").values() if "restart" in key.traits}
    assert config_keys.fields("broker").keys() >= waiting
    assert len(waiting) > 60


# -- the file


async def test_changes_are_written_into_broker_conf(broker_maker: MakeBroker, tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("# mine\nlistenPort=1\nregionId=a\n", encoding="utf-8")
    broker = broker_maker(conf_file=path)
    await update(broker, "regionId=b\nlistenPort=2\nnosuchkey=1\nmaxMessageSize=abc\ntraceOn=false\n")
    assert path.read_text(encoding="utf-8") == "# mine\nlistenPort=2\nregionId=b\ntraceOn=false\n"
    assert path.with_name("broker.conf.bak").read_text(encoding="utf-8").startswith("# mine\nlistenPort=1\n")


async def test_the_file_keeps_its_mode_and_its_place_behind_a_link(
    broker_maker: MakeBroker, tmp_path: Path
) -> None:
    """It may hold a password, and be a link into a folder of settings."""
    real, link = tmp_path / "real.conf", tmp_path / "broker.conf"
    real.write_text("regionId=a\n", encoding="utf-8")
    real.chmod(0o600)
    link.symlink_to(real)
    await update(broker_maker(conf_file=link), "regionId=b")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "regionId=b\n"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (real, tmp_path / "real.conf.bak")] == [0o600] * 2


async def test_unwritable_file_is_logged_and_the_change_applies(
    broker_maker: MakeBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    broker = broker_maker(conf_file=tmp_path / "file" / "broker.conf")
    assert (await update(broker, "regionId=b")).code == 0
    assert broker.config.region_id == "b"
    assert "cannot write changed settings" in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        "brokerRole=SLAVE",
        "brokerName=",
        "brokerClusterName= ",
        "metricCollectorMode=on",
        "bindAddress=no host",
    ],
)
async def test_what_the_next_start_would_refuse_is_not_written(
    broker_maker: MakeBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    """The official broker writes `brokerRole=SLAVE`, and does not start again."""
    path = tmp_path / "broker.conf"
    path.write_text("regionId=a\n", encoding="utf-8")
    broker = broker_maker(conf_file=path)
    assert (await update(broker, f"{change}\nregionId=b")).code == 0
    assert path.read_text(encoding="utf-8") == "regionId=a\n"
    assert f"cannot write changed settings to {path}: " in caplog.text
    load_broker(path)
    await update(broker, "regionId=c")
    assert path.read_text(encoding="utf-8") == "regionId=c\n"


async def test_a_file_that_the_command_line_completes_is_written(
    broker_maker: MakeBroker, tmp_path: Path
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("brokerRole=SLAVE\n", encoding="utf-8")
    await update(broker_maker(conf_file=path), "regionId=b")
    assert path.read_text(encoding="utf-8") == "brokerRole=SLAVE\nregionId=b\n"


async def test_without_a_file_nothing_is_written(broker: Broker, tmp_path: Path) -> None:
    await update(broker, "regionId=b")
    assert BrokerConfig().conf_file is None
    assert list(tmp_path.glob("*.conf")) == []


async def test_name_servers_are_those_the_broker_registers_at(tmp_path: Path) -> None:
    """Official brokers have no name server of their own, so there the key is always set."""
    async with running(make_node(tmp_path)) as node:
        assert (await settings(node.broker))["namesrvAddr"] == node.namesrv_address
