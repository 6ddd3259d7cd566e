"""From broker.conf, namesrv.conf and `key=value` words to typed settings, and what to say about keys that do nothing.

A bad value of a key we honour stops the start with one line that names key, value and place; officially it would be
passed over and the default used. Unknown keys and unsupported ones are one warning each. What the keys mean is in
`keys.py`.
"""

import logging
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.text.java_properties import PropertiesError, decode_text, parse_properties

from ..errors import StartError
from . import keys as config_keys
from .broker_config import DEFAULT_STORE_DIR, BrokerConfig, NameServerConfig
from .keys import Key, Program

_log = logging.getLogger("pocketmq.config")

MASTER_ID: Final = 0
EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")


class Setting(msgspec.Struct, frozen=True):
    """One key as given, and where (`broker.conf:12`, `--set`)."""

    key: str
    value: str
    place: str


def load_broker(
    conf_file: str | Path | None, sets: Sequence[str], options: Sequence[Setting] = ()
) -> BrokerConfig:
    """See `config.load`; `options` are what words of the command line other than --set say, and win."""
    config = BrokerConfig(conf_file=None if conf_file is None else Path(conf_file))
    given = [*read_settings(conf_file, sets), *options]
    given = [*_tls_settings(given, config.tls_config_file), *given]
    for setting in given:
        if setting.key in config_keys.keys("broker"):
            apply(config, setting)
        elif setting.key not in config_keys.keys("namesrv"):
            _log.warning("%s", _unknown(setting))
    _follow_emulation(config, given)
    _check(config, given)
    return config


def _tls_settings(given: Sequence[Setting], usual_file: str) -> Iterator[Setting]:
    """What the file of tls.config.file says; the usual one may be missing."""
    named = [setting.value for setting in given if setting.key == "tls.config.file"]
    path = named[-1] if named else usual_file
    if not named and not Path(path).exists():
        return
    known = config_keys.keys("broker")
    for setting in read_settings(path, ()):
        if setting.key.startswith("tls.") and setting.key in known:
            yield setting


def load_name_server(
    conf_file: str | Path | None, sets: Sequence[str], broker_conf_file: str | Path | None
) -> NameServerConfig:
    """See `config.load_name_server`."""
    config = NameServerConfig()
    own, brokers = config_keys.keys("namesrv"), config_keys.keys("broker")
    for setting in read_settings(broker_conf_file, ()):
        if setting.key in own and setting.key not in brokers:
            apply(config, setting)
    for setting in read_settings(conf_file, ()):
        if setting.key in own:
            apply(config, setting)
        else:
            _log.warning("%s", _unknown(setting))
    for setting in read_settings(None, sets):
        if setting.key in own and setting.key not in brokers:
            apply(config, setting)
    return config


def read_settings(conf_file: str | Path | None, sets: Sequence[str]) -> Iterator[Setting]:
    """Every key in order; the last of equal ones counts."""
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
            raise StartError(f"--set {word}: it is key=value")
        yield Setting(key.strip(), value, "--set")


def apply(config: BrokerConfig | NameServerConfig, setting: Setting) -> None:
    """Give a known key its value. Raises `StartError` for a bad value of a key we honour."""
    program: Program = "broker" if isinstance(config, BrokerConfig) else "namesrv"
    key = config_keys.keys(program)[setting.key]
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
    config.others[key.name] = config_keys.write_value(value) or ""
    if key.verdict == "unsupported" and _asks_for_it(key, setting.value):
        _log.warning("%s: %s=%s has no effect: %s", setting.place, key.name, setting.value, key.reason)


def _asks_for_it(key: Key, text: str) -> bool:
    """False for the default: it says that the user does not want what we do not have."""
    return text.strip().lower() not in (
        (key.default or "").lower(),
        (key.default_4 or key.default or "").lower(),
    )


def _follow_emulation(config: BrokerConfig, given: Sequence[Setting]) -> None:
    """Defaults that differ in the 4.9 line."""
    if config.emulate != 4:
        return
    set_by_user = {setting.key for setting in given}
    for key in config_keys.keys("broker").values():
        if key.verdict == "honoured" and key.default_4 is not None and key.name not in set_by_user:
            config_keys.put(config, key.name, config_keys.read_value(key, key.default_4))


def _check(config: BrokerConfig, given: Sequence[Setting]) -> None:
    """What official brokers check at their start."""
    last = {setting.key: setting for setting in given}
    if "namesrvAddr" in last:
        check_addresses(config.namesrv_addr, last["namesrvAddr"].place)
    for key, name in (("brokerName", config.broker_name), ("brokerClusterName", config.broker_cluster_name)):
        if not name or name.isspace():
            raise _bad(last[key], "it is empty")
    if config.store.broker_role != "SLAVE":
        config.broker_id = MASTER_ID
    elif config.broker_id <= MASTER_ID:
        setting = last.get("brokerId", last["brokerRole"])
        raise _bad(Setting("brokerId", str(config.broker_id), setting.place), "a slave's is greater than 0")
    if not config.write_buffer_high_water_mark:  # official files say 0 for "as Netty thinks best"
        config.write_buffer_high_water_mark = BrokerConfig().write_buffer_high_water_mark
    if not config.store.store_path_root_dir:
        config.store.store_path_root_dir = DEFAULT_STORE_DIR
    _settle_addresses(config, last)


def _settle_addresses(config: BrokerConfig, last: dict[str, Setting]) -> None:
    """Names become numbers, and clients are told where the server listens unless brokerIP1 says otherwise."""
    for name in ("bindAddress", "brokerIP1", "brokerIP2"):
        if name in last:
            try:
                address = _numeric(config_keys.get(config, name))
            except OSError as error:
                raise _bad(last[name], "it is an address of this machine") from error
            config_keys.put(config, name, address)
    if "brokerIP1" not in last or config.broker_ip1 in EVERY_ADDRESS:  # no address to tell anyone
        config.broker_ip1 = own_address() if config.bind_address in EVERY_ADDRESS else config.bind_address
    elif config.bind_address.startswith("127.") and not config.broker_ip1.startswith("127."):
        _log.warning(
            "clients are told brokerIP1=%s, but the server listens on %s only: give --host 0.0.0.0",
            config.broker_ip1,
            config.bind_address,
        )
    if "brokerIP2" not in last or config.broker_ip2 in EVERY_ADDRESS:
        config.broker_ip2 = config.broker_ip1


def _numeric(host: str) -> str:
    """The IP address of a host; raises OSError where there is none."""
    if host in EVERY_ADDRESS:
        return host
    try:
        pack_host(host, 0)
    except ValueError:
        return socket.gethostbyname(host)
    return host


def own_address() -> str:
    """The address this machine has in the network, or the loopback one; nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # reserved for documentation: only the route is looked up
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address


def check_addresses(text: str, place: str) -> None:
    """`StartError` unless the text is `host:port;host:port`."""
    for address in filter(None, text.split(";")):
        host, colon, port = address.strip().rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            raise _bad(Setting("namesrvAddr", text, place), "it is host:port;host:port")


def _bad(setting: Setting, reason: str) -> StartError:
    return StartError(f"{setting.place}: {setting.key}={setting.value} is a bad value: {reason}")


def _unknown(setting: Setting) -> str:
    near = config_keys.nearest(setting.key)
    hint = "" if near is None else f", did you mean {near}?"
    return f"{setting.place}: unknown key {setting.key} is ignored{hint}"
