"""Settings of an embedded server: keywords with the names of broker.conf's keys, on top of defaults for tests.

    EmbeddedServer(defaultTopicQueueNums=4, emulate="4.9", autoCreateTopicEnable=False)

A temporary store has small files that are not forced to disk. A kept store has the official file sizes, so the store
of an official broker can be opened. Stricter than `pocketmq serve` in one thing: an unknown key is an error, not a
warning. What the keys mean is in `pocketmq.broker.config.broker_config`.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pocketmq.broker.config import keys as config_keys
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.loading import Setting, apply, load_broker, load_name_server, read_settings
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.errors import StartError

from .after_death import remove_after_death

Value = str | int | float | bool
"""The value of a key: its text in broker.conf, or the Python value."""

_HOUR_MS: Final = 3_600_000
TEMPORARY: Final[Mapping[str, Value]] = {
    "mappedFileSizeCommitLog": 16 << 20,
    "mappedFileSizeConsumeQueue": 400_000,
    "maxHashSlotNum": 10_000,
    "maxIndexNum": 40_000,
    # These files are never read after a crash, so nothing waits for the disk.
    "flushIntervalCommitLog": _HOUR_MS,
    "flushIntervalConsumeQueue": _HOUR_MS,
    "flushConsumerOffsetInterval": _HOUR_MS,
    "flushDelayOffsetInterval": _HOUR_MS,
}
"""Defaults of a temporary store. One log file holds a message of the official maximum size."""
_ORIGIN: Final = "settings"
_BY_ARGUMENT: Final = {"storePathRootDir": "store"}


def broker_config(
    settings: Mapping[str, Value], *, conf: Path | None, store: Path, is_temporary: bool
) -> BrokerConfig:
    """Defaults, then the file, then the keywords. Raises `StartError`: one line with key, value and origin.

    The file is read and never written: a setting changed over the wire lasts until the server stops.
    """
    for key in settings:
        _check(key)
    defaults = {**(TEMPORARY if is_temporary else {}), "listenPort": 0}
    given = [
        *_settings(defaults),
        *read_settings(conf, ()),
        *_settings(settings),
        Setting("storePathRootDir", str(store), _ORIGIN),
    ]
    config = load_broker(None, (), given)
    config.store.is_temporary = is_temporary
    return config


def name_server_config(
    settings: Mapping[str, Value], *, conf: Path | None, store: Path, is_temporary: bool, port: int
) -> NameServerConfig:
    """The keys that only the name server knows, from the same file and keywords. `StartError` as above."""
    config = load_name_server(broker_conf_file=conf)
    brokers = config_keys.keys("broker")
    for setting in _settings(settings):
        if setting.key not in brokers:
            apply(config, setting)
    config.listen_port = port
    if not is_temporary:
        config.kv_config_path = config.kv_config_path or str(store / "namesrv" / "kvConfig.json")
    return config


def _settings(values: Mapping[str, Value]) -> Iterator[Setting]:
    for key, value in values.items():
        yield Setting(key, str(value).lower() if isinstance(value, bool) else str(value), _ORIGIN)


def _check(key: str) -> None:
    if key in _BY_ARGUMENT:
        raise StartError(f"{_ORIGIN}: {key} must be given as the argument {_BY_ARGUMENT[key]}")
    if key not in config_keys.keys("broker") and key not in config_keys.keys("namesrv"):
        raise StartError(f"{_ORIGIN}: unknown key {key}{config_keys.did_you_mean(key)}")


IN_MEMORY: Final = Path("/dev/shm")
IN_MEMORY_BYTES: Final = 512 << 20
"""A temporary store is kept in memory only if that much space is free. Containers often have 64 MB: too little."""


def temporary_folder() -> Path:
    """Make an empty folder of our own. `StartError` if that is not possible."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="pocketmq-", dir=_memory_folder()))
    except OSError as error:
        raise StartError(f"cannot make a temporary store: {error}") from error
    remove_after_death(folder)
    return folder


def _memory_folder() -> Path | None:
    """The folder that Linux keeps in memory, if it has room: deleting a test's queues there does not wait for a busy
    disk. None for the usual place, also if the environment names one."""
    if any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")):
        return None
    try:
        room = os.statvfs(IN_MEMORY)
    except (OSError, AttributeError):  # no such folder, or Windows
        return None
    has_room = room.f_bavail * room.f_frsize >= IN_MEMORY_BYTES
    return IN_MEMORY if has_room and os.access(IN_MEMORY, os.W_OK) else None
