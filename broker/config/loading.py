"""Reads broker.conf, namesrv.conf and `key=value` words into typed settings.

    load_broker(conf_file, sets) -> BrokerConfig          load_name_server(...) -> NameServerConfig

A bad value of an honoured key stops the start with one line that names key, value and origin; the official broker
would silently use the default. An unknown key and an unsupported one are one warning each.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from pocketmq.protocol.text.java_properties import PropertiesError, decode_text, parse_properties

from ..errors import StartError
from . import keys as config_keys
from .addresses import EVERY_ADDRESS, numeric_address, own_address
from .broker_config import DEFAULT_STORE_DIR, MASTER_ID, BrokerConfig
from .keys import Config
from .name_server_config import NameServerConfig

_log = logging.getLogger("pocketmq.config")


class Setting(msgspec.Struct, frozen=True):
    """A key, its text, and the origin of both (`broker.conf:12`, `--set`)."""

    key: str
    value: str
    origin: str


def load_broker(
    conf_file: str | Path | None = None, sets: Sequence[str] = (), options: Sequence[Setting] = ()
) -> BrokerConfig:
    """The broker's settings from broker.conf, from `key=value` words, and from other options of the command line;
    later ones win. Logs its warnings.

    Raises `StartError`, one line with key, value and origin, for a file that cannot be read, a word without `=`, and a
    bad value of an honoured key.
    """
    config = BrokerConfig(conf_file=None if conf_file is None else Path(conf_file))
    settings = [*read_settings(conf_file, sets), *options]
    settings = [*_tls_settings(settings, config.tls_config_file), *settings]
    for setting in settings:
        if setting.key in config_keys.keys("broker"):
            apply(config, setting)
        elif setting.key not in config_keys.keys("namesrv"):
            _warn_unknown(setting)
    _follow_emulation(config, settings)
    _check(config, settings)
    return config


def refuse_broken_start(former: str, changed: str, path: Path) -> None:
    """Raise `StartError` if a broker would start with the former text of a file, but not with the changed one. Of a
    name server's file each value is checked alone, by `keys.py`."""
    known = config_keys.keys("broker")

    def check(text: str) -> None:
        # Only what can stop a start: a load warns of the other keys, and the admin's log would repeat it.
        entries = (entry for entry in parse_properties(text) if entry.key in known)
        options = [Setting(entry.key, entry.value, f"{path}:{entry.line}") for entry in entries]
        load_broker(options=[setting for setting in options if known[setting.key].verdict == "honoured"])

    try:
        check(former)
    except StartError:
        return  # it is completed by the command line
    check(changed)


def _tls_settings(settings: Sequence[Setting], default_file: str) -> Iterator[Setting]:
    """The TLS keys in the file that tls.config.file names; only the default file may be missing."""
    named = [setting.value for setting in settings if setting.key == "tls.config.file"]
    path = named[-1] if named else default_file
    if not named and not Path(path).exists():
        return
    known = config_keys.keys("broker")
    for setting in read_settings(path, ()):
        if setting.key.startswith("tls.") and setting.key in known:
            yield setting


def load_name_server(
    conf_file: str | Path | None = None,
    sets: Sequence[str] = (),
    *,
    broker_conf_file: str | Path | None = None,
) -> NameServerConfig:
    """The name server's settings from namesrv.conf. From broker.conf and `sets` it takes the keys that the broker does
    not have. Raises `StartError` as `load_broker` does."""
    config = NameServerConfig()
    own = config_keys.keys("namesrv").keys()
    not_the_brokers = own - config_keys.keys("broker").keys()
    sources = ((broker_conf_file, (), not_the_brokers), (conf_file, (), own), (None, sets, not_the_brokers))
    for file, words, wanted in sources:
        for setting in read_settings(file, words):
            if setting.key in wanted:
                apply(config, setting)
            elif wanted is own:
                _warn_unknown(setting)
    return config


def read_settings(conf_file: str | Path | None, sets: Sequence[str]) -> Iterator[Setting]:
    """Every key in the order read; the last of equal ones counts."""
    if conf_file is not None:
        try:
            text = decode_text(Path(conf_file).read_bytes())
            entries = parse_properties(text)
        except OSError as error:
            raise StartError(f"cannot read {conf_file}: {error.strerror}") from error
        except PropertiesError as error:
            raise StartError(f"{conf_file}: {error}") from error
        for entry in entries:
            yield Setting(entry.key, entry.value, f"{conf_file}:{entry.line}")
    for word in sets:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise StartError(f"--set must have the form KEY=VALUE, got {word!r}")
        yield Setting(key.strip(), value, "--set")


def apply(config: Config, setting: Setting) -> None:
    """Set a known key. Raises `StartError` for a bad value of an honoured key."""
    key = config_keys.keys(config_keys.program_of(config))[setting.key]
    try:
        value = config_keys.read_value(key, setting.value)
    except ValueError as error:
        if key.verdict == "honoured":
            raise _bad(setting, str(error)) from error
        _log.warning("%s", _bad(setting, str(error)))
        return
    if key.verdict == "honoured":
        config_keys.put(config, key.name, value)
        return
    config.not_applied[key.name] = config_keys.write_value(value) or ""
    defaults = {(text or "").lower() for text in (key.default, key.default_4 or key.default)}
    if key.verdict == "unsupported" and setting.value.strip().lower() not in defaults:
        _log.warning("%s: %s=%s has no effect: %s", setting.origin, key.name, setting.value, key.reason)


def _follow_emulation(config: BrokerConfig, settings: Sequence[Setting]) -> None:
    """Applies the defaults that differ in the 4.9 line."""
    if config.is_5:
        return
    set_by_user = {setting.key for setting in settings}
    for key in config_keys.keys("broker").values():
        if key.verdict == "honoured" and key.default_4 is not None and key.name not in set_by_user:
            config_keys.put(config, key.name, config_keys.read_value(key, key.default_4))


def _check(config: BrokerConfig, settings: Sequence[Setting]) -> None:
    """What official brokers check at their start."""
    last = {setting.key: setting for setting in settings}
    for key, name in (("brokerName", config.broker_name), ("brokerClusterName", config.broker_cluster_name)):
        if not name or name.isspace():
            raise _bad(last[key], "must not be empty")
    if not config.is_slave:
        config.broker_id = MASTER_ID
    elif config.broker_id <= MASTER_ID:
        origin = last.get("brokerId", last["brokerRole"]).origin
        raise _bad(Setting("brokerId", str(config.broker_id), origin), "must be greater than 0 for a slave")
    if not config.write_buffer_high_water_mark:  # official files say 0 for "as Netty thinks best"
        config.write_buffer_high_water_mark = BrokerConfig().write_buffer_high_water_mark
    if not config.store.store_path_root_dir:
        config.store.store_path_root_dir = DEFAULT_STORE_DIR
    if config.endpoint.grpc_server_port is not None and not config.is_5:
        port = last["grpcServerPort"]
        raise StartError(f"{port.origin}: {port.key} needs emulate=5: the 4.9 line has no gRPC clients")
    if config.endpoint.metric_collector_mode == "on" and not config.endpoint.metric_collector_address:
        mode = last["metricCollectorMode"]
        raise StartError(f"{mode.origin}: {mode.key}=on needs metricCollectorAddress=HOST:PORT")
    _settle_addresses(config, last)


def _settle_addresses(config: BrokerConfig, last: dict[str, Setting]) -> None:
    """Resolves host names; without brokerIP1 clients get the address the server listens on."""
    for name in ("bindAddress", "brokerIP1", "brokerIP2"):
        if name in last:
            try:
                address = numeric_address(config_keys.get(config, name))
            except OSError as error:
                raise _bad(last[name], "must be an IP address or a host name with one") from error
            config_keys.put(config, name, address)
    if "brokerIP1" not in last or config.broker_ip1 in EVERY_ADDRESS:
        config.broker_ip1 = own_address() if config.bind_address in EVERY_ADDRESS else config.bind_address
    elif config.bind_address.startswith("127.") and not config.broker_ip1.startswith("127."):
        _log.warning(
            "clients will connect to brokerIP1=%s, but the server listens on %s only: add --host 0.0.0.0",
            config.broker_ip1,
            config.bind_address,
        )
    if "brokerIP2" not in last or config.broker_ip2 in EVERY_ADDRESS:
        config.broker_ip2 = config.broker_ip1


def _bad(setting: Setting, rule: str) -> StartError:
    return StartError(f"{setting.origin}: {setting.key} {rule}, got {setting.value!r}")


def _warn_unknown(setting: Setting) -> None:
    hint = config_keys.did_you_mean(setting.key)
    _log.warning("%s: unknown key %s is ignored%s", setting.origin, setting.key, hint)
