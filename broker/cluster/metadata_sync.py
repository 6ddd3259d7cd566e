"""Copies what a slave needs from its master beside the log: topics, groups, offsets, modes, the state of the timer.

    21    topics, by pages     replaced if their data version differs
    43    consumer offsets     merged; the master's offsets win
    45    delay offsets        replaced
    60    timer checkpoint     how far the master has delivered timed messages (5.x)
    61    timer counts         replaced if their data version differs (5.x)
    201   groups, by pages     replaced if their data version differs
    402   request modes        which groups pop and which pull, replaced (5.x)

The first round runs 3 s after the start, then one every 10 s, as in the 4.9 line. (An official 5.5.0 slave runs one a
minute and skips the first, so for a minute it has messages of topics it does not know.) If a part fails, it is logged
and the other parts are still copied; the next round tries again. Mirrors SlaveSynchronize. `replication_slave.py`
copies the log.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Final, TypeVar

from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig, SubscriptionGroupWrapper
from pocketmq.protocol.bodies.topic_config import TopicConfig, TopicConfigSerializeWrapper
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.requests.group import GetAllSubscriptionGroupConfig
from pocketmq.protocol.requests.pop import GetAllMessageRequestMode
from pocketmq.protocol.requests.replication import (
    GetAllConsumerOffset,
    GetAllDelayOffset,
    GetTimerCheckPoint,
    GetTimerMetrics,
)
from pocketmq.protocol.requests.topic import GetAllTopicConfig
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import Request
from pocketmq.store.files.json_file import MAX_FILE_BYTES
from pocketmq.store.timer.timer_checkpoint import decode_timer_checkpoint

from ..delayed.timer import MessageTimer
from ..errors import PeerError, Refusal
from ..membership.request_modes import RequestModes
from ..network.connection import Connection
from ..state.broker_state import BrokerState
from ..time.slices import in_slices
from .name_server_link import Connect
from .registration import Registration

_log = logging.getLogger("pocketmq.cluster")

FIRST_SECONDS: Final = 3.0
PERIOD_SECONDS: Final = 10.0
CALL_TIMEOUT_SECONDS: Final = 3.0
PAGE_SIZE: Final = 2000
MAX_PAGES: Final = 1000
MERGED_AT_ONCE: Final = 500

ReplyT = TypeVar("ReplyT")


class MetadataSync:
    """`start` and `stop` mirror each other; a master does nothing. `sync` is one round, for tests and 906."""

    def __init__(
        self,
        state: BrokerState,
        registration: Registration,
        timer: MessageTimer,
        request_modes: RequestModes,
        connect: Connect,
    ) -> None:
        self._state = state
        self._registration = registration
        self._message_timer = timer
        self._modes = request_modes
        self._connect = connect
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._connected_to = ""
        self.given_address: str | None = None
        """The master's address set by 906; without it the name servers' answer is used."""

    @property
    def master_address(self) -> str | None:
        return self.given_address or self._registration.master_address

    def start(self) -> None:
        if self._state.config.is_slave:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="metadata sync")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _run(self) -> None:
        await asyncio.sleep(FIRST_SECONDS)
        while True:
            try:
                done = await self.sync()
            except Exception:
                _log.exception("cannot copy the tables of the master")
                done = False
            await asyncio.sleep(PERIOD_SECONDS if done else FIRST_SECONDS)

    async def sync(self) -> bool:
        """One round; True if everything was copied."""
        address = self.master_address
        if address is None or address == self._state.identity.address:
            return False
        done = True
        parts: tuple[Callable[[str], Awaitable[None]], ...] = (
            self._topics,
            self._consumer_offsets,
            self._delay_offsets,
            self._groups,
            self._request_modes,
            self._timer,
            self._timer_counts,
        )
        for part in parts:
            try:
                await part(address)
            except (PeerError, Refusal, ProtocolError) as error:
                _log.warning("cannot copy %s from %s: %s", part.__name__.strip("_"), address, error)
                done = False
        return done

    # -- the parts

    async def _topics(self, address: str) -> None:
        async def page(start: int, version: str | None) -> _Page[TopicConfig]:
            request = GetAllTopicConfig(topic_seq=start, data_version=version, max_topic_num=PAGE_SIZE)
            command, reply = await self._call(address, request)
            body = fastjson.decode(_body(command), TopicConfigSerializeWrapper, max_bytes=MAX_FILE_BYTES)
            return body.topic_config_table, body.data_version, reply.total_topic_num

        topics, version = await _all_pages(page)
        table = self._state.topics
        if version != table.data_version:
            table.replace_all(topics, version)
            self._state.tables.save_soon(table)
            self._registration.topics_changed()
            _log.info("%d topics copied from %s", len(topics), address)

    async def _groups(self, address: str) -> None:
        async def page(start: int, version: str | None) -> _Page[SubscriptionGroupConfig]:
            request = GetAllSubscriptionGroupConfig(
                group_seq=start, data_version=version, max_group_num=PAGE_SIZE
            )
            command, reply = await self._call(address, request)
            body = fastjson.decode(_body(command), SubscriptionGroupWrapper, max_bytes=MAX_FILE_BYTES)
            return body.subscription_group_table, body.data_version, reply.total_group_num

        groups, version = await _all_pages(page)
        table = self._state.groups
        if version != table.data_version:
            table.replace_all(groups, version)
            self._state.tables.save_soon(table)
            _log.info("%d groups copied from %s", len(groups), address)

    async def _consumer_offsets(self, address: str) -> None:
        _, copied = await self._call(address, GetAllConsumerOffset())
        offsets = self._state.offsets
        version = copied.data_version or offsets.data_version
        entries = iter(copied.offset_table.items())
        parts = iter(lambda: dict(islice(entries, MERGED_AT_ONCE)), {})
        async for part in in_slices(parts):
            offsets.merge(part, version)
        offsets.merge({}, version)

    async def _delay_offsets(self, address: str) -> None:
        command, _ = await self._call(address, GetAllDelayOffset())
        self._state.delays.replace_all(_body(command))

    async def _timer(self, address: str) -> None:
        if self._state.config.is_5 and self._state.config.store.timer_wheel_enable:
            _, checkpoint = await self._call(address, GetTimerCheckPoint())
            self._message_timer.follow(decode_timer_checkpoint(checkpoint))

    async def _timer_counts(self, address: str) -> None:
        if self._state.config.is_5 and self._state.config.store.timer_wheel_enable:
            command, _ = await self._call(address, GetTimerMetrics())
            metrics = self._message_timer.metrics
            if metrics.replace_all(_body(command)):
                self._state.tables.save_soon(metrics)

    async def _request_modes(self, address: str) -> None:
        if self._state.config.is_5:
            _, body = await self._call(address, GetAllMessageRequestMode())
            if self._modes.replace_all(body.message_request_mode_map):
                self._state.tables.save_soon(self._modes)

    # -- the connection

    async def _call(self, address: str, request: Request[ReplyT]) -> tuple[Command, ReplyT]:
        connection = self._connection
        if connection is None or connection.closed or self._connected_to != address:
            if connection is not None:
                connection.close()
            self._connection = connection = await self._connect(address)
            self._connected_to = address
        return await connection.call(request, timeout_seconds=CALL_TIMEOUT_SECONDS)


_Config = TypeVar("_Config")
_Page = tuple[dict[str, _Config], DataVersion, int | None]
"""Some rows of a table by name, the table's version, and the number of all rows if the master answers it."""


async def _all_pages(
    page: Callable[[int, str | None], Awaitable[_Page[_Config]]],
) -> tuple[dict[str, _Config], DataVersion]:
    """A whole table. `page(start, version)` requests a part; `version` is the JSON of the previous part's version."""
    found: dict[str, _Config] = {}
    version: DataVersion | None = None
    for _ in range(MAX_PAGES):
        version_text = fastjson.dumps(version).decode() if version is not None else None
        part, newest, total = await page(len(found), version_text)
        if newest != version:
            found.clear()  # the table changed between two pages: the master starts over
        version = newest
        before = len(found)
        found.update(part)
        if total is None or len(found) >= total or len(found) == before:
            break
    assert version is not None, "the loop has read a first page"
    return found, version


def _body(command: Command) -> bytes:
    return bytes(command.body or b"")
