"""Settings: names and defaults of the official classes, and what is refused."""

import json
import re
import runpy
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
from pocketmq.client import InvalidSetting, Producer, ProducerSettings, PushConsumer
from pocketmq.client.settings.allocation import AllocateMessageQueueAveragelyByCircle
from pocketmq.client.settings.checks import official_name
from pocketmq.client.settings.client_settings import AccessChannel, ClientSettings, name_servers
from pocketmq.client.settings.consumer_settings import LitePullConsumerSettings, PushConsumerSettings
from pocketmq.client.settings.java_setters import REPLACEMENTS
from pocketmq.client.settings.keywords import (
    ClientOptions,
    LitePullConsumerOptions,
    ProducerOptions,
    PushConsumerOptions,
)
from pocketmq.client.settings.timestamps import parse_timestamp
from pocketmq.protocol.bodies.client import ConsumeFromWhere, MessageModel

from client_vectors import refusal, vectors

WRITER = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "settings.py"))

OBJECTS = {
    *("log", "logger", "rpcHook", "traceDispatcher", "produceAccumulator", "compressor", "offsetStore"),
    *("defaultMQProducerImpl", "defaultMQPushConsumerImpl", "defaultLitePullConsumerImpl"),
    *("backPressureForAsyncSendNumLock", "backPressureForAsyncSendSizeLock", "subscriptionsForHeartbeat"),
    *("messageListener", "messageQueueListener", "namespaceInitialized"),
    *("producerGroup", "consumerGroup"),
}
"""Fields of the official classes that do something, hold state, or are the first argument here."""
WITHOUT_SETTER = {
    *("batch_max_bytes", "batch_max_delay_ms", "broker_suspend_max_time_millis", "retry_response_codes"),
    "total_batch_max_bytes",
}
"""The defaults of all others are in `test_java_setters.py`."""
OF_SETTERS = {"send_latency_fault_enable", "latency_max", "not_available_duration"}
"""Settings the official producer hands on to its fault strategy instead of holding them in fields."""
OF_JVM_PROPERTIES = {
    *("namesrv_domain", "namesrv_domain_subgroup", "recall_trace_enable", "tls_test_mode_enable"),
    *("tls_client_auth_server", "tls_client_trust_cert_path", "tls_client_cert_path"),
    *("tls_client_key_path", "tls_client_key_password"),
}
"""Settings the official clients take from properties of the JVM."""


def snake(name: str) -> str:
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("producer", ProducerSettings()),
        ("push", PushConsumerSettings()),
        ("lite", LitePullConsumerSettings()),
    ],
)
def test_names_and_defaults_are_the_official_ones(kind: str, settings: ClientSettings):
    official = {snake(name): text for name, text in vectors(f"default-{kind}") if name not in OBJECTS}
    for name in official.keys() & REPLACEMENTS.keys() - set(settings.__struct_fields__):
        del official[name]  # without effect: an error says so, and what to use
    ours = set(settings.__struct_fields__) - OF_SETTERS - OF_JVM_PROPERTIES
    assert ours == set(official)
    for name in WITHOUT_SETTER & ours:
        default = json.loads(official[name].partition("=")[2])
        expected = frozenset(default) if isinstance(default, list) else default
        assert getattr(settings, name) == expected, name


def settings_class(rule: str) -> type[ClientSettings]:
    return PushConsumerSettings if rule == "check-push" else LitePullConsumerSettings


@pytest.mark.parametrize(
    ("rule", "asked", "recorded"),
    [
        (rule, asked, recorded)
        for rule in ("check-push", "check-lite")
        for asked, recorded in vectors(rule)
        if not asked.startswith("consumerGroup")
    ],
)
def test_wrong_settings_are_refused_with_the_official_messages(rule: str, asked: str, recorded: str):
    name, _, text = asked.partition("=")
    value: Any = int(text) if text.lstrip("-").isdigit() else text
    refused = refusal(recorded)
    if refused is None:
        assert getattr(settings_class(rule)(**{snake(name): value}), snake(name)) == value
    else:
        with pytest.raises(InvalidSetting) as caught:
            settings_class(rule)(**{snake(name): value})
        assert str(caught.value) == f"{snake(name)}={value!r}: {refused[1]}"


@pytest.mark.parametrize(
    "wrong",
    [
        {"send_msg_timeout": "3000"},
        {"send_msg_timeout": True},
        {"send_msg_timeout": 3000.0},
        {"send_msg_timeout": 0},
        {"send_msg_timeout": None},
        {"send_msg_max_timeout_per_request": -2},
        {"retry_times_when_send_failed": -1},
        {"max_message_size": 0},
        {"auto_batch": 1},
        {"batch_max_delay_ms": 0},
        {"batch_max_delay_ms": 30_001},
        {"batch_max_bytes": 2 * 1024 * 1024 + 1},
        {"total_batch_max_bytes": 0},
        {"back_pressure_for_async_send_num": 9},
        {"back_pressure_for_async_send_size": 1024 * 1024 - 1},
        {"compress_type": "rar"},
        {"compress_level": 10},
        {"topics": ["ok", "not ok"]},
        {"topics": [1]},
        {"topics": "orders"},
        {"create_topic_key": ""},
        {"retry_response_codes": ["2"]},
        {"latency_max": (50, 100, 550, 1800, 3000, 5000, 15000.0)},
        {"latency_max": (1, 2)},
        {"latency_max": (50, 100, 550, 1800, 3000, 15000, 5000)},
        {"language": "COBOL"},
        {"instance_name": ""},
        {"namesrv_addr": "localhost"},
        {"namesrv_addr": "localhost:x"},
        {"namesrv_addr": "localhost:9876;:1"},
        {"namesrv_addr": "a:9876,b:9876"},
        {"namesrv_addr": "https://a:443"},
        {"namesrv_addr": "a:b:9876"},
        {"heartbeat_broker_interval": 0},
        {"access_channel": "MOON"},
    ],
)
def test_wrong_producer_settings_are_named(wrong: dict[str, Any]):
    with pytest.raises(InvalidSetting, match=re.escape(f"{next(iter(wrong))}=")):
        ProducerSettings(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"message_model": "LITE_SELECTIVE"},
        {"message_model": "SHOUTING"},
        {"message_model": None},
        {"consume_from_where": 3},
        {"allocate_message_queue_strategy": None},
        {"allocate_message_queue_strategy": "AVG"},
        {"subscription": {"bad topic": "*"}},
        {"subscription": {"t": "||"}},
        {"subscription": ["t"]},
        {"subscription": {"t": None}},
        {"subscription": {1: "*"}},
        {"consume_timeout": 0},
        {"max_reconsume_times": -2},
    ],
)
def test_wrong_consumer_settings_are_named(wrong: dict[str, Any]):
    with pytest.raises(InvalidSetting, match=re.escape(f"{next(iter(wrong))}=")):
        PushConsumerSettings(**wrong)


def test_a_short_auto_commit_interval_is_refused_not_ignored():
    with pytest.raises(InvalidSetting, match="auto_commit_interval_millis=999"):
        LitePullConsumerSettings(auto_commit_interval_millis=999)


def test_names_of_enum_members_and_lists_are_accepted():
    push = PushConsumerSettings(
        message_model="broadcasting",  # type: ignore[arg-type]
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",  # type: ignore[arg-type]
    )
    assert push.message_model is MessageModel.BROADCASTING
    assert push.consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    producer = ProducerSettings(
        topics=["a", "b"],  # type: ignore[arg-type]
        retry_response_codes=[1, 2],  # type: ignore[arg-type]
        access_channel="cloud",  # type: ignore[arg-type]
        compress_type=" zstd ",
        compress_level=22,
    )
    assert producer.topics == ("a", "b")
    assert producer.retry_response_codes == frozenset({1, 2})
    assert producer.access_channel is AccessChannel.CLOUD
    assert producer.compress_type == "ZSTD"


def test_the_default_timestamp_is_half_an_hour_ago():
    ages = [
        msgspec.structs.replace(settings, consume_timestamp="")
        for settings in (PushConsumerSettings(), LitePullConsumerSettings())
    ]
    now_ms = parse_timestamp(PushConsumerSettings().consume_timestamp) + 1_800_000
    assert all(abs(parse_timestamp(age.consume_timestamp) + 1_800_000 - now_ms) <= 1000 for age in ages)


def test_settings_do_not_change():
    with pytest.raises(AttributeError):
        ProducerSettings().send_msg_timeout = 1  # type: ignore[misc]


def test_fault_tolerance_has_two_switches():
    assert not ProducerSettings().is_fault_tolerant
    assert ProducerSettings(send_latency_enable=True).is_fault_tolerant
    assert not ProducerSettings(send_latency_enable=True, send_latency_fault_enable=False).is_fault_tolerant
    assert ProducerSettings(send_latency_fault_enable=True).is_fault_tolerant


def test_a_strategy_of_the_user_is_accepted():
    strategy = AllocateMessageQueueAveragelyByCircle()
    settings = PushConsumerSettings(allocate_message_queue_strategy=strategy)
    assert settings.allocate_message_queue_strategy is strategy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1", ["a:1"]),
        (" a:1 ; b:2;", ["a:1", "b:2"]),
        ("http://ns.example:9876", ["ns.example:9876"]),
        ("[::1]:9876", ["[::1]:9876"]),
        (None, ["env:1"]),
        ("", ["env:1"]),
    ],
)
def test_name_servers_are_given_or_found_in_the_environment(text: str | None, expected: list[str]):
    assert name_servers(text, {"NAMESRV_ADDR": "env:1"}) == expected
    assert name_servers(None, {}) == []


def test_client_ids_are_javas():
    assert ClientSettings().client_id("10.0.0.1", "77#1") == "10.0.0.1@77#1"
    assert ClientSettings(unit_name="u").client_id("10.0.0.1", "i") == "10.0.0.1@i@u"
    assert ClientSettings(unit_name=" ").client_id("10.0.0.1", "i") == "10.0.0.1@i"
    assert LitePullConsumerSettings().client_id("10.0.0.1", "i") == "10.0.0.1@i@STREAM"


def test_official_names_of_settings():
    assert official_name("pull_threshold_size_for_queue") == "pullThresholdSizeForQueue"
    assert official_name("namespace_v2") == "namespaceV2"


@pytest.mark.parametrize(
    ("file", "text"),
    [(WRITER["KEYWORDS"], WRITER["keywords_text"]()), (WRITER["PAGE"], WRITER["page_text"]())],
    ids=["keywords", "page"],
)
def test_what_is_written_from_the_settings_is_up_to_date(file: Path, text: str):
    """Types of keyword arguments, what an editor shows of them, and the page."""
    assert file.read_text(encoding="utf-8") == text, "run: make reference"


def test_the_written_keyword_arguments_are_the_settings():
    for options, settings in (
        (ClientOptions, ClientSettings),
        (ProducerOptions, ProducerSettings),
        (PushConsumerOptions, PushConsumerSettings),
        (LitePullConsumerOptions, LitePullConsumerSettings),
    ):
        hints = get_type_hints(settings)
        assert get_type_hints(options) == {name: hints[name] for name in settings.__struct_fields__}


def test_a_setting_that_only_producers_use_is_refused_by_consumers():
    for name in ("send_latency_enable", "start_detector_enable", "detect_timeout", "detect_interval"):
        with pytest.raises(InvalidSetting, match="only producers choose among brokers"):
            PushConsumer("g", print, **{name: 1})
        assert name in ProducerSettings.__struct_fields__


def test_settings_of_another_client_are_refused():
    with pytest.raises(InvalidSetting, match="must be ProducerSettings, not PushConsumerSettings"):
        Producer("g", settings=PushConsumerSettings())
    with pytest.raises(InvalidSetting, match="must be PushConsumerSettings, not dict"):
        PushConsumer("g", print, settings={})


def test_the_repr_of_settings_names_changed_ones_and_hides_secrets():
    settings = ProducerSettings(send_msg_timeout=7, tls_client_key_password="hush")
    assert repr(settings) == "ProducerSettings(tls_client_key_password=***, send_msg_timeout=7)"
    assert "hush" not in f"{settings!s}{msgspec.structs.replace(settings, auto_batch=True)!r}"
