"""Settings changed by request: the common part of 25 (broker) and 318 (name server).

    body -> read_changes -> refuse_changes (the black list) -> apply_changes -> write_changes (the file, in a thread)

As in the official servers, unknown keys and bad values are skipped but the answer is SUCCESS; the log names them. Any
text but `true` makes a boolean key false, as there. A key with the trait `restart` appears in 26 and 319 and is written
to the file, but takes effect at the next start. Values that a start refuses together, such as a slave without a number,
hold until the broker stops and are not written; the official broker writes them and does not start again. Mirrors
`Configuration`.
"""

import logging
from pathlib import Path
from typing import Final

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

from ..errors import Refusal, StartError
from . import keys as config_keys
from .broker_config import BrokerConfig
from .keys import Config, Key
from .loading import refuse_broken_start

_log = logging.getLogger("pocketmq.config")


MAX_BYTES: Final = 64 * 1024
"""Of a body: twice the text of all keys with their values. To read as much takes about 20 ms."""
_NAMED_KEYS: Final = 3
"""Ignored keys that the log names: the search for a similar name takes a millisecond."""


def read_changes(body: RawBody) -> dict[str, str]:
    """Properties text as keys and values. Refuses a text beyond `MAX_BYTES`, which the official servers read."""
    if len(body) > MAX_BYTES:
        remark = f"settings of {len(body)} bytes; the limit is {MAX_BYTES}"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
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
    """Set every key that can be set, and return these keys. The log names the first ones of the others."""
    keys = config_keys.keys(config_keys.program_of(config))
    accepted: dict[str, str] = {}
    ignored: list[str] = []
    for name, text in requested.items():
        key = keys.get(name)
        if key is not None and key.kind == "boolean":
            text = "true" if text.lower() == "true" else "false"
        reason = _apply(config, key, text)
        if reason is None:
            accepted[name] = text
        elif len(ignored) < _NAMED_KEYS:
            hint = config_keys.did_you_mean(name) if name not in keys else ""
            ignored.append(f"{name[:80]} {reason}{hint}")
    left = len(requested) - len(accepted) - len(ignored)
    if ignored:
        others = f", and {left} others" if left else ""
        _log.warning("settings of %s are ignored: %s%s", peer, "; ".join(ignored), others)
    if accepted:
        shown = {name: config_keys.without_secret(keys[name], text) for name, text in accepted.items()}
        _log.info("%s changed %s", peer, shown)
    return accepted


def _apply(config: Config, key: Key | None, text: str) -> str | None:
    """Set a key; returns why it cannot be set."""
    if key is None:
        return "is an unknown key"
    if "refused" in key.traits:
        return "cannot be changed by request"
    try:
        value = config_keys.read_value(key, text)
    except ValueError as error:
        return f"{error}, got {text[:40]!r}"
    if key.verdict != "honoured" or "restart" in key.traits:
        config.not_applied[key.name] = config_keys.write_value(value) or ""
    else:
        config_keys.put(config, key.name, value)
    return None


def write_changes(path: Path | None, accepted: dict[str, str]) -> None:
    """Write changed keys to the file of settings, if the server has one. Comments stay; the former content becomes
    `<name>.bak`. The official servers write the whole file anew, without its comments."""
    if path is None or not accepted:
        return
    try:
        former = decode_text(path.read_bytes()) if path.exists() else ""
        text = set_properties(former, accepted)
        refuse_broken_start(former, text, path)
        JsonFile(path.resolve()).save(text.encode())
    except (OSError, PropertiesError, StoreError, StartError) as error:
        _log.error("cannot write changed settings to %s: %s", path, error)
