"""The name server's own settings over the wire: 318 changes them, 319 tells them.

Bodies are Java properties text. What the keys mean is in `config/keys.py`; which of them may not be changed is
decided here. Mirrors the configuration half of `DefaultRequestProcessor`, and `Configuration`.
"""

import logging
from pathlib import Path
from typing import Final

from pocketmq.protocol.requests.name_server import GetNamesrvConfig, UpdateNamesrvConfig
from pocketmq.protocol.text.java_properties import (
    PropertiesError,
    decode_text,
    parse_properties,
    set_properties,
)
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store.errors import StoreError
from pocketmq.store.files.json_file import JsonFile

from ..config import keys as config_keys
from ..errors import BrokerError
from ..network.dispatch import NAME_SERVER, Answer, Call
from .name_server import NameServer

_log = logging.getLogger("pocketmq.name_server")

FORBIDDEN_4: Final = frozenset({"kvConfigPath", "configStorePath"})
FORBIDDEN_5: Final = frozenset({"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})
"""Besides those that configBlackList names."""
AT_START_ONLY: Final = frozenset({"listenPort"})
"""Taken and told by 319, but without effect before the next start."""


@NAME_SERVER.handles(UpdateNamesrvConfig)
def update_namesrv_config(name_server: NameServer, request: UpdateNamesrvConfig, call: Call) -> None:
    """Change what is given; unknown keys and values that cannot be read are passed over, as officially."""
    if not call.body:
        return
    try:
        given = {entry.key: entry.value for entry in parse_properties(decode_text(call.body))}
    except PropertiesError as error:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "string2Properties error") from error
    _check_allowed(name_server, given)
    changed = {key: value for key, value in given.items() if _change(name_server, key, value)}
    _log.info("settings changed by %s: %s", call.connection.peer, ", ".join(changed) or "none")
    _keep(name_server, changed)


@NAME_SERVER.handles(GetNamesrvConfig)
def get_namesrv_config(name_server: NameServer, request: GetNamesrvConfig) -> Answer:
    return Answer(body=config_keys.official_text(name_server.config, name_server.emulate).encode())


def _check_allowed(name_server: NameServer, given: dict[str, str]) -> None:
    if name_server.emulate < 5:
        if FORBIDDEN_4 & given.keys():
            raise BrokerError(ResponseCode.NO_PERMISSION, "Can not update config path")
        return
    if (FORBIDDEN_5 | set(name_server.config.config_black_list.split(";"))) & given.keys():
        raise BrokerError(ResponseCode.NO_PERMISSION, "Can not update config in black list.")


def _change(name_server: NameServer, name: str, text: str) -> bool:
    config, key = name_server.config, config_keys.keys("namesrv").get(name)
    if key is None:
        return False
    if key.verdict != "honoured":
        config.others[name] = text.strip()
        return True
    try:
        value = config_keys.read_value(key, text)
    except ValueError as error:
        _log.warning("%s=%s is a bad value: %s", name, text, error)
        return False
    if name in AT_START_ONLY:
        config.others[name] = text.strip()
    else:
        config_keys.put(config, name, value)
    return True


def _keep(name_server: NameServer, changed: dict[str, str]) -> None:
    """Write them into the file of settings, if there is one; its comments stay."""
    if not changed or not name_server.config.config_store_path:
        return
    path = Path(name_server.config.config_store_path)
    try:
        text = decode_text(path.read_bytes()) if path.exists() else ""
        JsonFile(path).save(set_properties(text, changed).encode())
    except (OSError, StoreError, PropertiesError) as error:
        _log.error("cannot write %s: %s", path, error)
