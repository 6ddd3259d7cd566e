"""Settings of the store: the official MessageStoreConfig keys in snake_case, with the official defaults.

`mappedFileSizeCommitLog` is `mapped_file_size_commit_log`, and so on; sizes are bytes and intervals milliseconds, as
in the official broker. Deviations: `access_message_in_memory_max_ratio` is 30 (official 40),
`commit_log_recover_max_num` has no limit (official 10, which loses queue entries). Keys without an official
counterpart are last. Not here: reading configuration files, which is the broker's.
"""

from pathlib import Path
from typing import Literal

import msgspec

from . import layout
from .errors import StoreError

QUEUE_UNIT_BYTES = 20
DEFAULT_HA_PORT = 10_912
DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
"""The first word is level 1."""
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class StoreConfig(msgspec.Struct, kw_only=True):
    """Read once by `MessageStore.open()`, except for the sizes and ratios that official brokers change at run time
    (max_message_size, the transfer limits, the memory ratio): those are looked up on every use."""

    store_path_root_dir: str
    store_path_commit_log: str | None = None
    """None: `commitlog` below the root."""

    mapped_file_size_commit_log: int = 1_073_741_824
    mapped_file_size_consume_queue: int = 300_000 * QUEUE_UNIT_BYTES
    max_hash_slot_num: int = 5_000_000
    max_index_num: int = 20_000_000
    message_index_enable: bool = True
    message_index_safe: bool = False
    max_msgs_num_batch: int = 64
    default_query_max_num: int = 32
    max_message_size: int = 4_194_304

    broker_role: Literal["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"] = "ASYNC_MASTER"
    flush_disk_type: Literal["ASYNC_FLUSH", "SYNC_FLUSH"] = "ASYNC_FLUSH"
    flush_interval_commit_log: int = 500
    flush_commit_log_least_pages: int = 4
    flush_commit_log_thorough_interval: int = 10_000
    flush_interval_consume_queue: int = 1000
    flush_consume_queue_least_pages: int = 2
    flush_consume_queue_thorough_interval: int = 60_000
    sync_flush_timeout: int = 5000

    ha_listen_port: int = DEFAULT_HA_PORT
    """As long as it is the default: the port behind the listening one, as official start-ups make it."""
    ha_master_address: str | None = None
    """`host:port` of the master's HA port; None: the address that the name servers have."""
    ha_transfer_batch_size: int = 32_768
    ha_send_heartbeat_interval: int = 5000
    ha_housekeeping_interval: int = 20_000
    ha_slave_fallbehind_max: int = 268_435_456
    """4.9: a SYNC_MASTER does not wait for slaves that lack more bytes than this."""
    ha_max_gap_not_in_sync: int = 268_435_456
    """5.x: the same as a number for tools."""
    slave_timeout: int = 3000
    in_sync_replicas: int = 1
    """5.x: brokers that must have a message before a SYNC_MASTER answers, itself included."""

    check_crc_on_recover: bool = True
    commit_log_recover_max_num: int | None = None
    """At most so many log files back, as 5.5.0 does with 10; queues that miss more lose it. None: no limit."""
    enabled_append_prop_crc: bool = False
    force_verify_prop_crc: bool = False
    auto_message_version_on_topic_len: bool = True
    read_uncommitted: bool = False

    max_transfer_bytes_on_message_in_memory: int = 262_144
    max_transfer_count_on_message_in_memory: int = 32
    max_transfer_bytes_on_message_in_disk: int = 65_536
    max_transfer_count_on_message_in_disk: int = 8
    max_filter_message_size: int = 16_000
    travel_cq_file_num_when_get_message: int = 1
    access_message_in_memory_max_ratio: int = 30
    offset_check_in_slave: bool = False

    delete_when: str = "04"
    """Hours of the day, `;` between them, in which expired log files are deleted."""
    file_reserved_time: int = 72
    """Hours since its last write after which a log file is expired."""
    delete_file_batch_max: int = 10
    disk_max_used_space_ratio: int = 75
    """Per cent of the disk; this and the next two are the levels of retention.py."""
    disk_space_clean_forcibly_ratio: int = 85
    disk_space_warning_level_ratio: int = 90
    clean_file_forcibly_enable: bool = True
    clean_resource_interval: int = 10_000

    message_delay_level: str = DEFAULT_DELAY_LEVELS
    flush_delay_offset_interval: int = 10_000
    timer_wheel_enable: bool = True
    timer_precision_ms: int = 1000
    timer_max_delay_sec: int = 259_200
    timer_roll_window_slot: int = 172_800
    timer_congest_num_each_slot: int = 2_147_483_647
    timer_flush_interval_ms: int = 1000
    timer_stop_enqueue: bool = False
    timer_stop_dequeue: bool = False
    append_topic_for_timer_delete_key: bool = False
    mapped_file_size_timer_log: int = 104_857_600
    enable_lmq: bool = False
    enable_multi_dispatch: bool = False
    max_lmq_consume_queue_num: int = 20_000

    emulate: Literal[4, 5] = 5
    """Which official line decides where the two differ in a way a client can see."""
    residency: Literal["distance", "resident", "always-hot"] = "distance"
    """What answers "is this message in memory"; see residency.py."""
    is_temporary: bool = False
    """Deleted when it is closed, and never refuses messages for a disk that is 90 % full. Not a configuration key."""
    memory_size_bytes: int | None = None
    """Total memory to assume; None asks the machine."""

    @property
    def root(self) -> Path:
        return Path(self.store_path_root_dir)

    @property
    def commit_log_dir(self) -> Path:
        return (
            Path(self.store_path_commit_log) if self.store_path_commit_log else self.root / layout.COMMIT_LOG
        )

    @property
    def queue_file_bytes(self) -> int:
        """Size of a queue file: the setting rounded up to whole units, as in the official broker."""
        return -(-self.mapped_file_size_consume_queue // QUEUE_UNIT_BYTES) * QUEUE_UNIT_BYTES

    @property
    def has_light_queues(self) -> bool:
        """Whether records are dispatched to light queues: that needs both settings."""
        return self.enable_lmq and self.enable_multi_dispatch

    def check(self) -> None:
        """Raises StoreError for values no store can be opened with; names the official key."""
        for key, value, least in (
            ("mappedFileSizeCommitLog", self.mapped_file_size_commit_log, 256),
            ("mappedFileSizeConsumeQueue", self.mapped_file_size_consume_queue, 1),
            ("maxHashSlotNum", self.max_hash_slot_num, 1),
            ("maxIndexNum", self.max_index_num, 2),
            ("mappedFileSizeTimerLog", self.mapped_file_size_timer_log, 68),
            ("timerPrecisionMs", self.timer_precision_ms, 1),
        ):
            if not least <= value <= 0x7FFFFFFF:
                raise StoreError(f"{key} must be between {least} and 2147483647, got {value}")
        if self.store_path_commit_log and "," in self.store_path_commit_log:
            raise StoreError("storePathCommitLog with several paths is not supported: give one path")


def parse_delay_levels(text: str) -> dict[int, int]:
    """`1s 5s 1m` to `{1: 1000, 2: 5000, 3: 60000}` (level to ms). Units: s, m, h, d. Raises StoreError."""
    levels: dict[int, int] = {}
    for level, word in enumerate(text.split(), start=1):
        unit_ms = _UNITS_MS.get(word[-1])
        if unit_ms is None or not word[:-1].isdecimal():
            raise StoreError(f"messageDelayLevel {text!r}: {word!r} is no number followed by s, m, h or d")
        levels[level] = int(word[:-1]) * unit_ms
    if not levels:
        raise StoreError("messageDelayLevel holds no level")
    return levels
