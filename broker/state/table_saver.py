"""Makes and writes the texts of changed tables in one thread, so that sends never wait for the disk.

`save_soon` collects the changes of some milliseconds; `save` writes now. An answer that promises a change waits until
it is written (`wait_until_saved`, `call_when_saved`), and is a refusal if the disk refuses it. What cannot be written,
on a full disk for example, is tried again. Without `in_background` each change is written at once, in the caller: for
tests.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import StoreError

from ..errors import Refusal
from ..tables.json_table import JsonTable, TextOf

_log = logging.getLogger("pocketmq.state")

SAVE_DELAY_SECONDS: Final = 0.01
"""Changes of a table within this time are saved together, and so are those made while it is being written."""
RETRY_SECONDS: Final = 5.0
"""A table that could not be written is written again after this time."""
REST_SECONDS: Final = 0.0001
"""After each piece of a text, so that the event loop gets the interpreter: `sleep(0)` would often take it back."""

UNSAVED_REMARK: Final = "the change holds until the server stops, and is written once the disk accepts it"

Callback = Callable[[], None]
OnSaved = Callable[[bool], None]
"""Called with False if the disk has refused the changes."""
ResultT = TypeVar("ResultT")


class TableSaver:
    """Saves tables until `stop`; it has no `start`."""

    def __init__(self, *, in_background: bool = True) -> None:
        self._in_background = in_background
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="pocketmq-json")
        self.unsaved: set[JsonTable] = set()
        """Tables with changes, announced by `save_soon`, that are not on disk yet."""
        self._saving: dict[JsonTable, asyncio.TimerHandle] = {}
        self._waiting: dict[JsonTable, list[OnSaved]] = {}
        self._writing: dict[JsonTable, list[OnSaved]] = {}
        self._changed_again: set[JsonTable] = set()
        """Tables that are saved once more when the write that is under way ends."""
        self._retries: dict[JsonTable, asyncio.TimerHandle] = {}
        self._is_stopped = False

    def stop(self) -> None:
        """Wait for the file being written. Later changes are written by `JsonTable.persist` only."""
        self._is_stopped = True
        for timer in (*self._saving.values(), *self._retries.values()):
            timer.cancel()
        self._saving.clear()
        self._retries.clear()
        self._writer.shutdown()
        for callbacks in self._waiting.values():
            _run(callbacks, is_on_disk=True)  # `BrokerState.close` writes the tables once more
        self._waiting.clear()

    # -- tables

    def save_soon(self, table: JsonTable) -> None:
        """Save a changed table together with the changes of the next milliseconds."""
        if self._is_stopped or table in self._saving:
            return
        if not self._in_background:
            self._save(table)
            return
        self.unsaved.add(table)
        loop = asyncio.get_running_loop()
        self._saving[table] = loop.call_later(SAVE_DELAY_SECONDS, self._save_due, self._saving, table)

    def save(self, table: JsonTable) -> None:
        """Save a table now if it has changed; for tables with a save interval of their own."""
        if not self._is_stopped:
            self._save(table)

    def write(self, what: str, action: Callback) -> None:
        """Run another action that writes to disk in the same thread; a failure is logged with `what`."""
        if self._is_stopped:
            return
        if self._in_background:
            self._submit(lambda: _attempt(what, action))
        else:
            _attempt(what, action)

    async def write_and_wait(self, what: str, action: Callback) -> bool:
        """As `write`, and wait for its end; False if it failed."""
        if self._is_stopped or not self._in_background:
            return _attempt(what, action)
        return await asyncio.wrap_future(self._submit(lambda: _attempt(what, action)))

    def call_when_saved(self, table: JsonTable, callback: OnSaved) -> None:
        """Call back once the changes made so far are on disk or refused by it; at once if none is pending."""
        if table in self._saving or table in self._changed_again:
            self._waiting.setdefault(table, []).append(callback)
        elif table in self._writing:
            self._writing[table].append(callback)
        else:
            callback(table not in self._retries)

    async def wait_until_saved(self, table: JsonTable) -> None:
        """Wait until the changes made so far are on disk. Raises `Refusal` if the disk refuses them: a kill would undo
        what is answered with success."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def settle(is_on_disk: bool) -> None:
            if not done.done():
                done.set_result(is_on_disk)

        self.call_when_saved(table, settle)
        if not await done:
            raise Refusal(
                ResponseCode.SYSTEM_ERROR, f"the disk refuses {table.file.path.name}: {UNSAVED_REMARK}"
            )

    def _save_due(self, timers: dict[JsonTable, asyncio.TimerHandle], table: JsonTable) -> None:
        timers.pop(table, None)
        self._save(table)

    def _save(self, table: JsonTable) -> None:
        if table in self._writing:  # its next text has these changes and those that follow
            self._changed_again.add(table)
            return
        callbacks = self._waiting.pop(table, [])
        text_of = table.snapshot()
        if text_of is None:
            self._settle(table)
            _run(callbacks, is_on_disk=table not in self._retries)
            return
        if not self._in_background:
            _write(table, text_of)
            return
        loop = asyncio.get_running_loop()
        self._writing[table] = callbacks

        def finish(is_on_disk: bool) -> None:
            del self._writing[table]
            self._settle(table)
            if is_on_disk and (retry := self._retries.pop(table, None)) is not None:
                retry.cancel()
            if table in self._changed_again:
                self._changed_again.discard(table)
                if not self._is_stopped:
                    self._save(table)
            elif not is_on_disk and not self._is_stopped and table not in self._retries:
                self._retries[table] = loop.call_later(RETRY_SECONDS, self._save_due, self._retries, table)
            _run(callbacks, is_on_disk=is_on_disk)

        def write() -> None:
            loop.call_soon_threadsafe(finish, _write(table, lambda: _with_rests(text_of())))

        self._submit(write)

    def _submit(self, action: Callable[[], ResultT]) -> Future[ResultT]:
        """Run it in the writing thread, or here if there is none: a server that nobody stops is stopped by the end of
        the interpreter, which ends such threads first."""
        try:
            return self._writer.submit(action)
        except RuntimeError:
            self._writer.shutdown()  # what it accepted is written first
            done: Future[ResultT] = Future()
            done.set_result(action())
            return done

    def _settle(self, table: JsonTable) -> None:
        if table not in self._saving and table not in self._writing and table not in self._changed_again:
            self.unsaved.discard(table)


def _run(callbacks: list[OnSaved], *, is_on_disk: bool) -> None:
    for callback in callbacks:
        callback(is_on_disk)


def _attempt(what: str, action: Callback) -> bool:
    """Run an action that writes; False if it fails, which is logged: answers wait for its end, whatever happens."""
    try:
        action()
    except (OSError, StoreError) as error:
        _log.error("cannot write %s: %s", what, error)
        return False
    except Exception:
        _log.exception("cannot write %s", what)
        return False
    return True


def _write(table: JsonTable, text_of: TextOf) -> bool:
    is_on_disk = _attempt(str(table.file.path), lambda: table.file.save(text_of()))
    if not is_on_disk:
        table.dirty = True
    return is_on_disk


def _with_rests(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        time.sleep(REST_SECONDS)
