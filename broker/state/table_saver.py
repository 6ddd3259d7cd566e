"""What a broker does by itself, and how often: one timer each, all on the event loop.

Files are written by one named thread, so that the disk never holds up a send. A period starts when its action ends;
an action that fails is logged and comes again. Intervals are the official keys' values, read anew each time.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pocketmq.store.errors import StoreError
from pocketmq.store.tables.json_table import JsonTable

from ..broker import Broker
from ..pop.popping import clean

_log = logging.getLogger("pocketmq.rhythm")

EXPIRY_SCAN_SECONDS: Final = 10.0
NOTICE_SECONDS: Final = 15.0
SAMPLE_SECONDS: Final = 1.0
FILTER_SAVE_SECONDS: Final = 10.0
ORDER_SAVE_SECONDS: Final = 10.0
ACL_SECONDS: Final = 0.5
BROADCAST_SECONDS: Final = 5.0
WAITER_SCAN_SECONDS: Final = 5.0
"""How often suspended pulls are looked at with long polling on; shortPollingTimeMills otherwise."""
SAVE_DELAY_SECONDS: Final = 0.01
"""Changes of a table within this time are saved together, and so are those made while it is being written."""


Callback = Callable[[], None]


class Rhythm:
    """Timers of one broker. `start` and `stop` mirror each other; saving works before and after."""

    def __init__(self) -> None:
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="pocketmq-json")
        self.unsaved: set[JsonTable] = set()
        """Tables with changes, announced by `save_soon`, that are not on disk yet."""
        self._saving: dict[JsonTable, asyncio.TimerHandle] = {}
        self._waiting: dict[JsonTable, list[Callback]] = {}
        self._writing: dict[JsonTable, list[Callback]] = {}
        self._is_stopped = False

    def start(self, broker: Broker) -> None:
        """Begin every periodic action."""
        config, now_ms = broker.config, broker.clock.now_ms
        short_poll_seconds = config.short_polling_time_mills / 1000
        scan_seconds = WAITER_SCAN_SECONDS if config.long_polling_enable else short_poll_seconds
        max_offset = broker.store.max_offset
        self._every("waiters", scan_seconds, lambda: broker.waiters.scan(now_ms(), max_offset))
        self._every("statistics", SAMPLE_SECONDS, lambda: _sample(broker))
        self._every("notices", NOTICE_SECONDS, broker.notices.flush)
        self._every("consumers", EXPIRY_SCAN_SECONDS, lambda: broker.consumers.expire(now_ms()))
        self._every("locks", EXPIRY_SCAN_SECONDS, lambda: broker.locks.expire(now_ms()))
        self._every("broadcasts", BROADCAST_SECONDS, lambda: broker.broadcasts.expire(now_ms()))
        self._every("producers", EXPIRY_SCAN_SECONDS, lambda: broker.producers.expire(now_ms()))
        self._every(
            "offsets",
            lambda: config.flush_consumer_offset_interval / 1000,
            lambda: self._save(broker.offsets),
        )
        self._every(
            "delays",
            lambda: config.store.flush_delay_offset_interval / 1000,
            lambda: self._save(broker.delays),
        )
        self._every(
            "open transactions",
            lambda: config.transaction_metric_flush_interval / 1000,
            lambda: self._save(broker.open_transactions),
        )
        self._every("filters", FILTER_SAVE_SECONDS, lambda: self._save(broker.filters))
        self._every("revive", lambda: config.revive_interval / 1000, broker.revive.tick)
        self._every("order", ORDER_SAVE_SECONDS, lambda: _save_order(self, broker))
        if broker.plain_acl is not None:
            self._every("acl", ACL_SECONDS, broker.plain_acl.reload_if_changed)
        self._every("retention", lambda: config.store.clean_resource_interval / 1000, broker.retention.run)

    def stop(self) -> None:
        """End the timers and wait for the file being written."""
        self._is_stopped = True
        for timer in (*self._timers.values(), *self._saving.values()):
            timer.cancel()
        self._timers.clear()
        self._saving.clear()
        self._writer.shutdown()
        for callbacks in self._waiting.values():
            _run(callbacks)  # whoever stops us saves the tables itself
        self._waiting.clear()

    # -- tables

    def save_soon(self, table: JsonTable) -> None:
        """Save a table that changed, together with the changes that follow at once."""
        if self._is_stopped or table in self._saving:
            return
        self.unsaved.add(table)
        loop = asyncio.get_running_loop()
        self._saving[table] = loop.call_later(SAVE_DELAY_SECONDS, self._save_now, table)

    def save(self, table: JsonTable) -> None:
        """Save a table now if it has changed; for one that is saved on a beat of its own."""
        if not self._is_stopped:
            self._save(table)

    def write(self, what: str, action: Callback) -> None:
        """Let the thread that writes tables force something else to disk; a failure is logged with `what`."""
        if not self._is_stopped:
            self._writer.submit(_attempt, what, action)

    def when_saved(self, table: JsonTable, callback: Callback) -> None:
        """Call back when the changes made so far are on disk, or could not be written; at once if they are."""
        if table in self._saving:
            self._waiting.setdefault(table, []).append(callback)
        elif table in self._writing:
            self._writing[table].append(callback)
        else:
            callback()

    async def saved(self, table: JsonTable) -> None:
        """Wait until the changes made so far are on disk."""
        if table not in self.unsaved:
            return
        done = asyncio.Event()
        self.when_saved(table, done.set)
        await done.wait()

    def _save_now(self, table: JsonTable) -> None:
        self._saving.pop(table, None)
        self._save(table)

    def _save(self, table: JsonTable) -> None:
        callbacks = self._waiting.pop(table, [])
        content = table.snapshot()
        if content is None:
            self._settle(table)
            _run(callbacks)
            return
        loop = asyncio.get_running_loop()
        self._writing[table] = (
            callbacks  # writes end in the order they begin: the last one speaks for the table
        )

        def written() -> None:
            if self._writing.get(table) is callbacks:
                del self._writing[table]
            self._settle(table)
            _run(callbacks)

        def write() -> None:
            _write(table, content)
            loop.call_soon_threadsafe(written)

        self._writer.submit(write)

    def _settle(self, table: JsonTable) -> None:
        if table not in self._saving and table not in self._writing:
            self.unsaved.discard(table)

    def _every(self, name: str, seconds: float | Callable[[], float], action: Callable[[], object]) -> None:
        def act() -> None:
            try:
                action()
            except Exception:
                _log.exception("periodic action %s failed", name)
            if not self._is_stopped:
                self._timers[name] = loop.call_later(wait_seconds(), act)

        def wait_seconds() -> float:
            return seconds() if callable(seconds) else seconds

        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(wait_seconds(), act)


def _run(callbacks: list[Callback]) -> None:
    for callback in callbacks:
        callback()


def _save_order(rhythm: Rhythm, broker: Broker) -> None:
    clean(broker)
    rhythm.save(broker.ordered_pops)


def _sample(broker: Broker) -> None:
    now_ms = broker.clock.now_ms()
    broker.statistics.sample(now_ms)
    broker.timed.sample(now_ms)


def _attempt(what: str, action: Callback) -> None:
    try:
        action()
    except (OSError, StoreError) as error:
        _log.error("cannot write %s: %s", what, error)


def _write(table: JsonTable, content: bytes) -> None:
    try:
        table.file.save(content)
    except (OSError, StoreError) as error:
        table.dirty = True
        _log.error("cannot write %s: %s", table.file.path, error)
