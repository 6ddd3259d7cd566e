"""The list of keys: it agrees with what official brokers answer, and with our fields.

`official_settings/` holds what official 4.9.7 and 5.5.0 servers answered to 26 and 319.
"""

import logging
import re
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from pocketmq.broker.config import keys as config_keys
from pocketmq.broker.config.broker_config import BrokerConfig, EndpointConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.protocol.text.java_properties import parse_properties
from pocketmq.store import StoreConfig

ROOT = Path(__file__).resolve().parents[3]
OFFICIAL = Path(__file__).with_name("official_settings")
LINES = [("49", 4), ("55", 5)]


def official(name: str) -> dict[str, str]:
    text = (OFFICIAL / name).read_text(encoding="utf-8")
    return {entry.key: entry.value for entry in parse_properties(text)}


@pytest.mark.parametrize(("line", "emulate"), LINES)
@pytest.mark.parametrize(("program", "kind"), [("broker", BrokerConfig), ("namesrv", NameServerConfig)])
def test_answer_has_the_official_keys_in_order(program: str, kind: Any, line: str, emulate: int) -> None:
    expected = official(f"{program}_{line}.properties")
    text = config_keys.official_text(kind(), is_5=emulate == 5)
    answered = [row.partition("=")[0] for row in text.splitlines()]
    assert answered == sorted(expected)


DEFAULTS_OF_OUR_OWN = {
    "accessMessageInMemoryMaxRatio": 30,
    "bindAddress": "127.0.0.1",
    "brokerIP1": "127.0.0.1",
    "brokerIP2": "127.0.0.1",
    "brokerName": "broker-a",
    "commitLogRecoverMaxNum": None,
    "configStorePath": "",
    "grpcShutdownTimeSeconds": 2,
    "kvConfigPath": "",
    "memorySizeBytes": None,
    "storePathCommitLog": None,
    "storePathRootDir": "pocketmq-store",
    "writeBufferHighWaterMark": 4_194_304,
}
"""Each with its reason in config.py or store/config.py."""


@pytest.mark.parametrize(("program", "kind"), [("broker", BrokerConfig), ("namesrv", NameServerConfig)])
def test_other_defaults_are_the_official_ones(program: config_keys.Program, kind: Any) -> None:
    differing = {
        name: config_keys.get(kind(), name)
        for name in config_keys.fields(program)
        if config_keys.write_value(config_keys.get(kind(), name)) != config_keys.keys(program)[name].default
    }
    assert differing == {name: value for name, value in DEFAULTS_OF_OUR_OWN.items() if name in differing}
    assert all(name in differing for name in DEFAULTS_OF_OUR_OWN if name in config_keys.fields(program))


def test_every_setting_is_in_the_list() -> None:
    kept_aside = {"store", "endpoint", "not_applied", "conf_file", "version", "is_temporary"}
    for program, kinds in (
        ("broker", (BrokerConfig, StoreConfig, EndpointConfig)),
        ("namesrv", (NameServerConfig,)),
    ):
        known = {
            config_keys.snake_case(name) for name in config_keys.keys(cast(config_keys.Program, program))
        }
        for kind in kinds:
            fields = {field.name for field in msgspec.structs.fields(kind)}
            assert fields - known - kept_aside == set()


def fields_of(program: Any) -> dict[str, config_keys.Field]:
    return config_keys.fields(program)


def test_every_honoured_setting_is_read_somewhere() -> None:
    own = {"name_server_config.py", "keys.py", "loading.py"}
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("broker", "store", "grpc_endpoint")
        for path in (ROOT / folder).rglob("*.py")
        if folder != "broker" or path.name not in own
    )
    fields = {field.name for program in ("broker", "namesrv") for field in fields_of(program).values()}
    # Looking ahead only, so that `self.config.store.name` is three readings: of self, of config, of its store.
    read = set(re.findall(r"(?=\b(?:_?config(?:\.store)?|_?endpoint|self)\.(\w+))", sources))
    assert sorted(fields - read) == []


def test_every_key_has_a_verdict_and_a_reason() -> None:
    programs: tuple[config_keys.Program, ...] = ("broker", "namesrv")
    silent = [
        (program, key.name)
        for program in programs
        for key in config_keys.keys(program).values()
        if not key.reason
    ]
    assert silent == []
    assert len(config_keys.keys("broker")) > 500


def test_defaults_in_the_list_are_values_of_their_kind() -> None:
    kinds = {"int": int, "long": int, "double": (int, float), "boolean": bool, "text": str}
    wrong = []
    for key in config_keys.keys("broker").values():
        if key.default and key.name not in ("emulate", "writeBufferHighWaterMark"):
            value = config_keys.read_value(key, key.default)
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            if not isinstance(value, kinds[key.kind]) or (
                shown != key.default.strip() and key.kind != "double"
            ):
                wrong.append((key.name, key.kind, key.default, value))
    assert wrong == []


def test_nothing_is_read_from_disk_where_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedded use and tests make configs without the list of keys."""
    monkeypatch.setattr(config_keys, "keys", None)
    assert BrokerConfig().listen_port == 10911
    assert logging.getLogger("pocketmq.config").level == logging.NOTSET


def test_secrets_are_hidden() -> None:
    given = {"initAuthenticationUser": "{...}", "tls.server.keyPassword": "p", "fileReservedTime": "7"}
    keys = config_keys.keys("broker")
    assert {name: config_keys.without_secret(keys[name], value) for name, value in given.items()} == {
        "initAuthenticationUser": "(hidden)",
        "tls.server.keyPassword": "(hidden)",
        "fileReservedTime": "7",
    }
