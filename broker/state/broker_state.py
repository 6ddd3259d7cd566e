"""The state that all parts of a broker share: settings, clock, store, tables, statistics, addresses.

The constructor sets every attribute; `open` reads the files, `close` writes them. `broker.py` builds the parts of the
other rooms from this object. Owned by the event loop's thread.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.flags import PERM_INHERIT
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, SYSTEM_PREFIX
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.text import fastjson
from pocketmq.store import Clock, MessageStore, StoreError, layout
from pocketmq.store.files.json_file import MAX_FILE_BYTES
from pocketmq.store.lookup.dispatch import IsAwaited, OnArrivals
from pocketmq.store.retention import Retention

from ..config.broker_config import BrokerConfig
from ..errors import StartError
from ..figures import Statistics
from ..tables.delay_table import DelayTable
from ..tables.group_table import GroupTable
from ..tables.json_table import JsonTable
from ..tables.offset_table import LmqOffsetTable, OffsetTable
from ..tables.topic_table import TopicTable
from ..time.periodic import Periodic
from ..time.slices import MAX_REPORTS
from ..time.timers import Timers
from .table_saver import TableSaver

_log = logging.getLogger("pocketmq.state")

SAMPLE_SECONDS = 1.0


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses that a running broker has bound; they may differ from the settings."""

    address: str
    """`host:port` for clients (brokerIP1 and the listening port)."""
    store_host: bytes
    """The same address in the form of stored messages: IP and port."""
    ha_address: str
    """`host:port` for slaves (brokerIP2 and the HA port)."""
    own_name_server: str = ""
    """`host:port` of the name server in this process; empty if it has none."""
    boot_time_ms: int


class BrokerState:
    """The part of `BrokerController` that the other parts of a broker are built on."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        identity: Identity,
        *,
        on_arrivals: OnArrivals,
        is_awaited: IsAwaited,
        on_topics_changed: Callable[[], None],
        timers: Timers | None = None,
        writes_in_background: bool = True,
        seed: int | None = None,
    ) -> None:
        """`on_arrivals` and `is_awaited` are passed to the store; `on_topics_changed` is called after
        topics are created, changed or deleted. Without `writes_in_background` no thread writes: for tests. With a
        `seed` every random choice repeats, unique ids too but for their time.
        """
        loop = asyncio.get_running_loop()
        self.config = config
        self.clock = clock
        self.identity = identity
        self.timers = timers or Timers(clock)
        """Whatever the broker does later, except saving and waits on disks and peers."""
        self.reports = asyncio.Semaphore(MAX_REPORTS)
        """Held by each handler that makes a report in slices."""
        self.random = Random(seed)
        """For every random choice of the broker."""
        self._seed = seed
        self.settings_version = DataVersion(timestamp=identity.boot_time_ms)
        """The data version of the settings, which change by request (25)."""
        self.tables = TableSaver(in_background=writes_in_background)
        folder = config.store.root / layout.CONFIG
        self.folder = folder
        self._on_topics_changed = on_topics_changed
        self.topics = TopicTable(folder, clock.now_ms, config)
        self.topics.on_change = self._topics_changed
        self.groups = GroupTable(folder, clock.now_ms, config)
        self.groups.on_change = partial(self.tables.save_soon, self.groups)
        self.offsets = (LmqOffsetTable if config.store.enable_lmq else OffsetTable)(folder, clock.now_ms)
        self.delays = DelayTable(folder, clock.now_ms, config.store.message_delay_level)
        self.store = MessageStore(
            config.store,
            clock,
            on_arrivals=on_arrivals,
            is_awaited=is_awaited,
            call_soon=loop.call_soon_threadsafe,
            flush_in_background=writes_in_background,
        )
        self.offsets.file.before_replace = self._force_log
        self.retention = Retention(config.store, self.store, clock)
        self.statistics = Statistics(config, clock, self.store, self.topics, self.groups)
        ip = pack_host(config.broker_ip1, 0)[:-4]
        process, number = os.getpid(), id(self)
        if seed is not None:
            process, number = self.random.getrandbits(16), self.random.getrandbits(32)
        self.unique_ids = UniqueIdMaker(ip, process, number, clock.now_ms)
        """For messages sent without UNIQ_KEY."""
        self.is_open = False
        self.own_tables: tuple[JsonTable, ...] = (self.topics, self.groups, self.offsets, self.delays)

    def reseed(self) -> None:
        """Begin the random choices again, if they have a seed."""
        if self._seed is not None:
            self.random.seed(self._seed)

    def open(self) -> None:
        """Open the store and read the tables. Raises `StoreError` if the store is damaged or locked, `StartError` if it
        belongs to another broker."""
        _refuse_other_brokers_store(self.config.store.root, self.config.broker_name)
        self.store.open()
        self.is_open = True
        for table in self.own_tables:
            table.load()

    def close(self) -> None:
        """Write the tables and close the store, if it is open."""
        if self.is_open:
            self.is_open = False
            persist(self.own_tables)
            self.store.close()

    def abandon(self) -> None:
        """Close the store as a killed process does: nothing is written."""
        if self.is_open:
            self.is_open = False
            self.store.abandon()

    def periodic(self) -> Iterator[Periodic]:
        config, retention = self.config, self.retention
        sample = self.statistics.sample
        yield Periodic("statistics", SAMPLE_SECONDS, sample, next_due=lambda: None, samples_gaps=True)
        yield Periodic(
            "offsets",
            lambda: config.flush_consumer_offset_interval / 1000,
            lambda: self.tables.save(self.offsets),
        )
        yield Periodic(
            "delays",
            lambda: config.store.flush_delay_offset_interval / 1000,
            lambda: self.tables.save(self.delays),
        )
        yield Periodic(
            "retention",
            lambda: config.store.clean_resource_interval / 1000,
            retention.run,
            next_due=retention.next_due,
            also_in_real_time=True,
        )

    def _force_log(self) -> None:
        """Before new offsets take the place of the former ones: a pop moves the offset, and only its checkpoint, which
        was appended before, brings the messages again. A power loss must not keep the offset alone."""
        self.store.force_log(self.store.log_end)

    def _topics_changed(self) -> None:
        self._on_topics_changed()
        self.tables.save_soon(self.topics)


def persist(tables: tuple[JsonTable, ...]) -> None:
    """Write all tables when the broker stops, even if writing one of them fails."""
    for table in tables:
        try:
            table.persist()
        except StoreError as error:
            _log.error("cannot save a table: %s", error)


def _refuse_other_brokers_store(root: Path, broker_name: str) -> None:
    """Raises `StartError` that names the owner, before anything in the store is changed.

    Each broker has a topic with its own name: one queue, and the permission to inherit. A store that has such a topic,
    but not one with our name, belongs to another broker. Under our name, its topics would get a second set of queues in
    routes. An unreadable table passes: loading it later repairs or refuses it.
    """
    try:
        table = fastjson.loads((root / layout.CONFIG / layout.TOPICS).read_bytes(), max_bytes=MAX_FILE_BYTES)
    except (OSError, BodyError):
        return
    topics = table.get("topicConfigTable") if isinstance(table, dict) else None
    if not isinstance(topics, dict) or broker_name in topics:
        return
    owners = sorted(name for name, config in topics.items() if _is_broker_topic(name, config))
    if owners:
        raise StartError(
            f"store {root} belongs to broker {' or '.join(owners)}, not {broker_name}: "
            f"set brokerName={owners[0]}, or use another store"
        )


def _is_broker_topic(name: object, config: Any) -> bool:
    if not isinstance(name, str) or not isinstance(config, dict):
        return False
    if name == AUTO_CREATE_TOPIC or name.startswith(SYSTEM_PREFIX):
        return False
    perm = config.get("perm")
    queues = config.get("readQueueNums"), config.get("writeQueueNums")
    return isinstance(perm, int) and bool(perm & PERM_INHERIT) and queues == (1, 1)
