"""Settings changed by request: the common part of 25 (broker) and 318 (name server).

    body -> read_changes -> refuse_changes (the black list) -> apply_changes -> write_changes (the file)

As in the official servers, unknown keys and bad values are skipped but the answer is SUCCESS; the log names them. A key
with the trait `restart` appears in 26 and 319 and is written to the file, but takes effect at the next start. Mirrors
`Configuration`.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from pocketmq.protocol.text.java_properties import (
    PropertiesError,
    decode_text,
    parse_properties,
    set_properties,
)
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import StoreError
from pocketmq.store.files.json_file import JsonFile

from ..errors import Refusal
from . import keys as config_keys
from .broker_config import BrokerConfig
from .keys import Config

_log = logging.getLogger("pocketmq.config")


def read_changes(body: RawBody) -> dict[str, str]:
    """Properties text as keys and values."""
    try:
        return {entry.key: entry.value for entry in parse_properties(decode_text(body))}
    except PropertiesError as error:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "string2Properties error") from error


def refuse_changes(config: Config, requested: dict[str, str], *, is_5: bool) -> None:
    """Raise `Refusal` if one of these keys cannot be changed by request, such as the name of a file that the server
    writes. A broker of the 4.9 line refuses none; `apply_changes` skips them there."""
    if not is_5 and isinstance(config, BrokerConfig):
        return
    refusing = {"refused", "refused-by-5"} if is_5 else {"refused"}
    known = config_keys.keys(config_keys.program_of(config)).values()
    refused = {key.name for key in known if key.traits & refusing}
    if is_5:
        refused |= set(config.config_black_list.split(";"))
    if refused & requested.keys():
        remark = "Can not update config in black list." if is_5 else "Can not update config path"
        raise Refusal(ResponseCode.NO_PERMISSION, remark)


def apply_changes(config: Config, requested: dict[str, str], peer: str) -> dict[str, str]:
    """Set every key that can be set, and return these keys."""
    accepted = {name: text for name, text in requested.items() if _apply(config, name, text)}
    if accepted:
        keys = config_keys.keys(config_keys.program_of(config))
        shown = {name: config_keys.without_secret(keys[name], text) for name, text in accepted.items()}
        _log.info("%s changed %s", peer, shown)
    return accepted


def _apply(config: Config, name: str, text: str) -> bool:
    key = config_keys.keys(config_keys.program_of(config)).get(name)
    if key is None:
        _log.warning("unknown key %s is ignored%s", name, config_keys.did_you_mean(name))
        return False
    if "refused" in key.traits:
        _log.warning("%s cannot be changed by request: ignored", name)
        return False
    try:
        value = config_keys.read_value(key, text)
    except ValueError as error:
        _log.warning("%s %s, got %r: ignored", name, error, text)
        return False
    if key.verdict != "honoured" or "restart" in key.traits:
        config.others[name] = config_keys.write_value(value) or ""
    else:
        config_keys.put(config, name, value)
    return True


def waiting_for_restart(config: Config, names: Iterable[str]) -> list[str]:
    """The keys among `names` that take effect at the next start."""
    keys = config_keys.keys(config_keys.program_of(config))
    return sorted(name for name in names if "restart" in keys[name].traits)


def write_changes(path: Path | None, accepted: dict[str, str]) -> None:
    """Write changed keys to the file of settings, if the server has one. Comments stay; the former content becomes
    `<name>.bak`. The official servers write the whole file anew, without its comments."""
    if path is None or not accepted:
        return
    try:
        text = decode_text(path.read_bytes()) if path.exists() else ""
        JsonFile(path).save(set_properties(text, accepted).encode())
    except (OSError, PropertiesError, StoreError) as error:
        _log.error("cannot write changed settings to %s: %s", path, error)
