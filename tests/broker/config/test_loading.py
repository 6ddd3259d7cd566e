"""broker.conf and namesrv.conf: the official files are read unchanged, and a mistake is one line.

`official_settings/` holds what official 4.9.7 and 5.5.0 servers answered to 26 and 319.
"""

import re
from pathlib import Path

import pytest
from pocketmq.broker.config.addresses import own_address
from pocketmq.broker.config.loading import Setting, load_broker, load_name_server
from pocketmq.broker.errors import StartError

OFFICIAL = Path(__file__).with_name("official_settings")
LINES = [("49", 4), ("55", 5)]

SHIPPED_BROKER_CONF = """\
# Licensed to the Apache Software Foundation (ASF) under one or more
# contributor license agreements.
brokerClusterName = DefaultCluster
brokerName = broker-b
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = SYNC_MASTER
flushDiskType = ASYNC_FLUSH
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "broker.conf"
    path.write_text(text, encoding="utf-8")
    return path


# -- reading


def test_shipped_broker_conf_is_read_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = load_broker(write(tmp_path, SHIPPED_BROKER_CONF))
    assert (config.broker_name, config.store.broker_role) == ("broker-b", "SYNC_MASTER")
    assert caplog.messages == []


@pytest.mark.parametrize(("line", "emulate"), LINES)
def test_everything_an_official_broker_writes_is_a_known_key(
    line: str, emulate: int, caplog: pytest.LogCaptureFixture
) -> None:
    config = load_broker(OFFICIAL / f"broker_{line}.properties", [f"emulate={emulate}"])
    load_name_server(OFFICIAL / f"namesrv_{line}.properties")
    assert config.store.mapped_file_size_commit_log == 67_108_864
    assert not any("unknown" in message for message in caplog.messages)


def test_later_words_win(tmp_path: Path) -> None:
    conf = write(tmp_path, "listenPort=1\nlistenPort=2\nbrokerName=a\n")
    config = load_broker(conf, ["listenPort=3", "regionId=x"], [Setting("regionId", "y", "--region")])
    assert (config.listen_port, config.broker_name, config.region_id) == (3, "a", "y")


def test_texts_are_trimmed_and_numbers_signed_as_java_does() -> None:
    config = load_broker(sets=["brokerName= a ", "startAcceptSendRequestTimeStamp=+7", "traceOn=FALSE"])
    assert (config.broker_name, config.start_accept_send_request_time_stamp, config.trace_on) == (
        "a",
        7,
        False,
    )


BAD_VALUES = [
    ("listenPort=x", "listenPort must be a whole number, got 'x'"),
    ("listenPort=10911 ", "listenPort must be a whole number without blanks, got '10911 '"),
    ("listenPort=65536", "listenPort must be a number from 0 to 65535, got '65536'"),
    ("defaultTopicQueueNums=0", "defaultTopicQueueNums must be a number from 1 to 2147483647, got '0'"),
    ("maxMessageSize=2147483648", "maxMessageSize must be a number from -2147483648 to 2147483647, got"),
    (
        "flushConsumerOffsetInterval=0",
        "flushConsumerOffsetInterval must be a number from 1 to 2147483647, got",
    ),
    ("traceOn=yes", "traceOn must be true or false, got 'yes'"),
    ("flushDiskType=sync_flush", "flushDiskType must be ASYNC_FLUSH or SYNC_FLUSH, got 'sync_flush'"),
    ("namesrvAddr=localhost", "namesrvAddr must have the form host:port;host:port, got 'localhost'"),
    ("brokerRole=SLAVE", "brokerId must be greater than 0 for a slave, got '0'"),
    (
        "brokerIP1=no.such.host.invalid",
        "brokerIP1 must be an IP address or a host name with one, got 'no.such.host.invalid'",
    ),
    ("brokerName=", "brokerName must not be empty, got ''"),
    ("grpcServerPort=65536", "grpcServerPort must be a number from 0 to 65535, got '65536'"),
    ("grpcClientIdleTimeMills=0", "grpcClientIdleTimeMills must be a number from 1 to"),
    (
        "grpcMaxInboundMessageSize=-1",
        "grpcMaxInboundMessageSize must be a number from 1 to 2147483647, got '-1'",
    ),
    ("metricCollectorMode=sometimes", "metricCollectorMode must be off, on or proxy, got 'sometimes'"),
    ("metricCollectorMode=on", "--set: metricCollectorMode=on needs metricCollectorAddress=HOST:PORT"),
    (
        "metricCollectorAddress=collector",
        "metricCollectorAddress must have the form host:port, got 'collector'",
    ),
    ("emulate=3", "emulate must be 4 (or 4.9) or 5 (or 5.5), got '3'"),
]


@pytest.mark.parametrize(("word", "reason"), BAD_VALUES)
def test_bad_value_of_an_honoured_key_stops_the_start(word: str, reason: str) -> None:
    with pytest.raises(StartError, match=re.escape(reason)) as caught:
        load_broker(sets=[word])
    assert "\n" not in str(caught.value)


def test_error_of_a_bad_value_names_key_value_file_and_line(tmp_path: Path) -> None:
    conf = write(tmp_path, "# ports\n\nlistenPort = ten\n")
    with pytest.raises(StartError) as caught:
        load_broker(conf)
    assert str(caught.value) == f"{conf}:3: listenPort must be a whole number, got 'ten'"


def test_missing_file_and_word_without_equals_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"cannot read .*nowhere\.conf: No such file"):
        load_broker(tmp_path / "nowhere.conf")
    with pytest.raises(StartError, match="--set must have the form KEY=VALUE, got 'listenPort'"):
        load_broker(sets=["listenPort"])


def test_unknown_key_is_one_warning_that_names_the_nearest(caplog: pytest.LogCaptureFixture) -> None:
    load_broker(sets=["longPolingEnable=true"])
    assert caplog.messages == [
        "--set: unknown key longPolingEnable is ignored, did you mean longPollingEnable?"
    ]


def test_key_misspelled_since_4_5_2_is_answered_with_its_new_name(caplog: pytest.LogCaptureFixture) -> None:
    config = load_broker(sets=["mapedFileSizeCommitLog=1024"])
    assert config.store.mapped_file_size_commit_log == 1 << 30
    assert "write mappedFileSizeCommitLog" in caplog.text


@pytest.mark.parametrize(
    "word", ["sendMessageThreadPoolNums=64", "coldDataFlowControlEnable=false", "storePathIndex=/x"]
)
def test_harmless_keys_and_defaults_of_unsupported_ones_cause_no_warning(
    word: str, caplog: pytest.LogCaptureFixture
) -> None:
    load_broker(sets=[word])
    assert caplog.messages == []


def test_asking_for_what_is_unsupported_is_one_warning_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    load_broker(sets=["coldDataFlowControlEnable=true"])
    assert caplog.messages == [
        "--set: coldDataFlowControlEnable=true has no effect: reads of cold data are not limited"
    ]


def test_emulation_brings_its_own_defaults_unless_set() -> None:
    assert load_broker(sets=["emulate=4.9"]).register_broker_timeout_mills == 6000
    assert (
        load_broker(sets=["emulate=4.9", "registerBrokerTimeoutMills=5"]).register_broker_timeout_mills == 5
    )
    config = load_broker(sets=["emulate=4.9.8"])
    assert (config.emulate, config.store.emulate) == (4, 4)


def test_master_has_id_zero_as_in_the_official_broker() -> None:
    assert load_broker(sets=["brokerId=3"]).broker_id == 0
    assert load_broker(sets=["brokerId=3", "brokerRole=SLAVE"]).broker_id == 3


# -- addresses


def test_clients_get_the_listening_address() -> None:
    config = load_broker(sets=["bindAddress=127.0.0.2"])
    assert (config.broker_ip1, config.broker_ip2) == ("127.0.0.2", "127.0.0.2")


def test_clients_of_a_server_on_every_address_get_the_machines_own() -> None:
    assert load_broker(sets=["bindAddress=0.0.0.0"]).broker_ip1 == own_address()


def test_address_clients_could_not_reach_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    config = load_broker(sets=["brokerIP1=192.0.2.7"])
    assert config.broker_ip1 == "192.0.2.7"
    assert "--host 0.0.0.0" in caplog.text


# -- the name server


def test_name_server_takes_only_its_own_keys_from_broker_conf(tmp_path: Path) -> None:
    conf = write(tmp_path, "listenPort=10911\nscanNotActiveBrokerInterval=100\n")
    config = load_name_server(None, ["orderMessageEnable=true", "listenPort=1"], broker_conf_file=conf)
    assert config.scan_not_active_broker_interval == 100
    assert config.order_message_enable
    assert config.listen_port == 9876


def test_namesrv_conf_sets_the_name_servers_port(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text("listenPort=19876\nkvConfigPath=/x/kvConfig.json\n", encoding="utf-8")
    config = load_name_server(path)
    assert (config.listen_port, config.kv_config_path) == (19876, "/x/kvConfig.json")
