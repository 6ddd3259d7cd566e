"""Every public setter of the official classes is a setting here, with its default, or a table names the replacement."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pocketmq.client import AdminClient, InvalidSetting, Producer, PullConsumer, PushConsumer, Requester
from pocketmq.client.producing.transaction import TransactionProducer
from pocketmq.client.pulling.lite_pull_consumer import LitePullConsumer
from pocketmq.client.settings.client_settings import ClientSettings
from pocketmq.client.settings.consumer_settings import LitePullConsumerSettings, PushConsumerSettings
from pocketmq.client.settings.java_setters import ALIASES, ONLY_OF_PRODUCERS, REPLACEMENTS, snake_case
from pocketmq.client.settings.producer_settings import ProducerSettings

ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent.parent / "vectors" / "setters.tsv")
    .read_text(encoding="utf-8")
    .splitlines()
]
SETTINGS: dict[str, type[ClientSettings]] = {
    "ClientConfig": ClientSettings,
    "DefaultMQProducer": ProducerSettings,
    "TransactionMQProducer": ProducerSettings,
    "DefaultMQPushConsumer": PushConsumerSettings,
    "DefaultLitePullConsumer": LitePullConsumerSettings,
}
CLIENTS: dict[str, Callable[..., object]] = {
    "ClientConfig": lambda **options: AdminClient(**options),
    "DefaultMQProducer": lambda **options: Producer("g", **options),
    "TransactionMQProducer": lambda **options: TransactionProducer("g", print, **options),
    "DefaultMQPushConsumer": lambda **options: PushConsumer("g", **options),
    "DefaultLitePullConsumer": lambda **options: LitePullConsumer("g", **options),
}
ARGUMENTS = {("DefaultMQPushConsumer", "offset_store")}
"""No settings, but arguments of the same name."""
OTHER_DEFAULTS = {
    "language": "PYTHON",
    "topics": (),
    "send_latency_fault_enable": None,
    "await_termination_millis_when_shutdown": 5_000,
}
OTHER_IN_4_9 = {"latency_max", "not_available_duration"}
"""Settings whose default 5.x changed: ours is the new one."""


def setting(setter: str) -> str:
    return snake_case(setter.removeprefix("set"))


def as_java_prints(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else str(value)


def refused(make: Callable[..., object], **options: Any) -> str:
    with pytest.raises(InvalidSetting) as caught:
        make(**options)
    return str(caught.value)


def test_both_versions_and_all_classes_are_recorded():
    recorded = {(version, kind) for version, kind, *_ in ROWS}
    assert recorded == set(itertools.product(("4.9.8", "5.5.0"), SETTINGS))


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("version", ["4.9.8", "5.5.0"])
def test_each_setter_is_a_setting_or_has_a_named_replacement(version: str, kind: str):
    settings = SETTINGS[kind]()
    for setter, default in ((row[2], row[4]) for row in ROWS if row[:2] == [version, kind]):
        name = setting(setter)
        if name in settings.__struct_fields__:
            assert name in ONLY_OF_PRODUCERS or name not in REPLACEMENTS
            ours = getattr(settings, name)
            if name in OTHER_DEFAULTS:
                assert ours == OTHER_DEFAULTS[name]
            elif default not in "*-" and not (version == "4.9.8" and name in OTHER_IN_4_9):
                assert as_java_prints(ours) == default, name
        elif (kind, name) not in ARGUMENTS:
            for spelled in (name, setter, name.title().replace("_", "")):
                assert REPLACEMENTS[name] in refused(CLIENTS[kind], **{spelled: 1})


def test_the_table_has_only_setters():
    setters = {setting(row[2]) for row in ROWS}
    assert set(REPLACEMENTS) - setters == {"rpc_hook"}  # an argument of the constructors


def test_other_words_are_not_settings_themselves_and_name_settings_that_exist():
    fields = {name for kind in SETTINGS.values() for name in kind.__struct_fields__}
    assert set(ALIASES.values()) <= fields
    assert not set(ALIASES) & (fields - {"topics"})
    assert not set(ALIASES) & set(REPLACEMENTS)


@pytest.mark.parametrize(
    ("make", "name", "hint"),
    [
        (lambda **options: Producer("g", **options), "sendMsgTimeout", "use send_msg_timeout"),
        (lambda **options: Producer("g", **options), "setUseTLS", "use use_tls"),
        (lambda **options: Requester("g", **options), "send_msg_timeuot", "did you mean send_msg_timeout?"),
        (lambda **options: PullConsumer("g", **options), "namesrvAddr", "use namesrv_addr"),
        (lambda **options: PushConsumer("g", **options), "messageListener", "for a MessageListenerOrderly"),
        (lambda **options: PushConsumer("g", **options), "colour", "has no setting colour"),
        (
            lambda **options: Producer("g", **options),
            "nameserver",
            "has no setting nameserver: use namesrv_addr",
        ),
        (lambda **options: Producer("g", **options), "bootstrap_servers", "use namesrv_addr"),
        (lambda **options: Producer("g", **options), "timeout", "use send_msg_timeout"),
        (lambda **options: PushConsumer("g", **options), "topic", "use subscription"),
        (lambda **options: Producer("g", **options), "topic", "did you mean topics?"),
        (lambda **options: PushConsumer("g", **options), "auto_offset_reset", "or start=datetime(...)"),
        (
            lambda **options: PushConsumer("g", **options),
            "concurrency",
            "consume_thread_max for more than 20",
        ),
    ],
)
def test_errors_for_java_names_and_typos_name_the_right_setting(
    make: Callable[..., object], name: str, hint: str
):
    assert refused(make, **{name: 1}).endswith(hint)
