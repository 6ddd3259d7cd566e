"""Registers the broker at its name servers: addresses, topics, heartbeats.

    at start, every 10..60 s      103 with all topics, to every name server (322 first unless forceRegister)
    a topic is created or changes 103 with the changed topics only, at once
    a name server was lost        103 with all topics when it is back: tried every 1..10 s
    enableSlaveActingMaster       a heartbeat every second: 322 one-way, or 904 where all name servers are 5.x
    at stop                       104

Changes of topics are numbered, and each name server gets those that it was not sent. A large table is not sent again
while a name server has its data version, whatever forceRegister says. Mirrors `BrokerController.registerBrokerAll` and
`BrokerOuterAPI`; owned by the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from itertools import takewhile
from typing import Any, Final, TypeVar

import msgspec
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.registration import RegisterBrokerBody, TopicConfigAndMappingSerializeWrapper
from pocketmq.protocol.bodies.routes import KVTable
from pocketmq.protocol.bodies.topic_config import TopicConfig, TopicConfigSerializeWrapper
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.flags import PERM_READ, PERM_WRITE
from pocketmq.protocol.message.record import body_crc
from pocketmq.protocol.requests.name_server import (
    BrokerHeartbeat,
    QueryDataVersion,
    RegisterBroker,
    RegisterBrokerReply,
    UnregisterBroker,
)
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.schema import Request

from ..config.broker_config import BrokerConfig
from ..errors import PeerError, Refusal
from ..state.broker_state import BrokerState
from .name_server_link import Connect, NameServerLink

_log = logging.getLogger("pocketmq.cluster")

ReplyT = TypeVar("ReplyT")
Topics = dict[str, TopicConfig]

FIRST_PERIOD_SECONDS: Final = 10.0
MIN_PERIOD_SECONDS: Final = 10.0
MAX_PERIOD_SECONDS: Final = 60.0
WATCH_SECONDS: Final = 0.5
"""How often lost name servers are checked."""
FIRST_HEARTBEAT_SECONDS: Final = 1.0
UNREGISTER_TIMEOUT_SECONDS: Final = 3.0
LARGE_TABLE: Final = 2000
"""Topics whose registration is built in another thread, and not repeated without need."""
MAX_TOPICS: Final = 50_000
"""Topics of one registration, about 8 MiB: name servers read no frame of more than 16 MiB."""


class Registration:
    """`start` and `stop` mirror each other; before `start` nothing is sent.

    On a slave, `master_address` and `master_ha_address` are the master's addresses that a name server answered last.
    """

    def __init__(self, state: BrokerState, connect: Connect) -> None:
        self._state = state
        self._connect = connect
        self._links: dict[str, NameServerLink] = {}
        self._changes: dict[str, int] = {}
        """Topics with the numbers of their last changes, in the order of these."""
        self._last_change = 0
        self._is_running = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._round: asyncio.Task[None] | None = None
        self.master_address: str | None = None
        self.master_ha_address: str | None = None

    async def start(self) -> None:
        """Register at all name servers; when it returns, each one that answers has this broker in its routes."""
        self._is_running = True
        await self.register_all(force=True)
        self._after("period", FIRST_PERIOD_SECONDS, self._register_periodically)
        self._after("watch", WATCH_SECONDS, self._watch)
        if self._state.config.enable_slave_acting_master and self._state.config.is_5:
            self._after("heartbeat", FIRST_HEARTBEAT_SECONDS, self._beat)

    async def stop(self) -> None:
        """Unregister at all name servers that answer, and close the connections to them."""
        self._is_running = False
        for timer in self._timers.values():
            timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._unregister_from(link) for link in self._links.values() if link.is_open))
        for link in self._links.values():
            link.close()
        self._links.clear()

    async def abandon(self) -> None:
        """Stop without a word to the name servers, as a killed process does."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        await self.stop()

    # -- all topics

    async def register_all(self, *, force: bool = True) -> None:
        """Send all topics to every name server; without `force`, only if one of them lacks this data version."""
        self._follow_settings()
        links = list(self._links.values())
        if not force:
            answers = await asyncio.gather(*(self._is_behind(link) for link in links))
            if not any(answers):
                return
        await asyncio.gather(*(self._register_at(link) for link in links))

    async def ask(self, request: Request[ReplyT]) -> ReplyT:
        """The reply of the first name server that answers. Raises `Refusal` if it refuses or `ProtocolError` if its
        reply cannot be read, and `PeerError` if none answers."""
        failure = PeerError("no name server is configured")
        for link in self._links.values():
            try:
                _, reply = await link.call(request, timeout_seconds=self._timeout_seconds)
            except PeerError as error:
                failure = error
            else:
                return reply
        raise failure

    async def register_permission(self) -> None:
        """brokerPermission has changed: register all topics with a new data version."""
        topics = self._state.topics
        topics.data_version = topics.data_version.next_version(self._state.clock.now_ms())
        topics.dirty = True
        await self.register_all(force=True)

    async def _register_at(self, link: NameServerLink) -> None:
        """Send all topics to one name server; a failure is logged, and a timer tries again."""
        async with link.lock:
            await self._register_locked(link)
        self._send_soon(link)  # the changes made meanwhile

    async def _register_locked(self, link: NameServerLink) -> None:
        topics, number = dict(self._state.topics.topics), self._last_change
        link.sending = number
        try:
            for part in _parts(topics):
                await self._send(link, part)
            link.known = number
        except PeerError:
            pass  # the link has logged it
        except (Refusal, ProtocolError) as error:
            link.known = None
            _log.warning("name server %s refused our registration: %s", link.address, error)
        finally:
            link.sending = None

    async def _is_behind(self, link: NameServerLink) -> bool:
        """Whether a name server lacks this data version of the topics; if it does not answer, True."""
        version = self._state.topics.data_version
        try:
            command, reply = await link.call(
                _version_query(self._state), fastjson.dumps(version), timeout_seconds=self._timeout_seconds
            )
            if reply.changed or not command.body:
                return reply.changed
            seen = fastjson.decode(command.body, DataVersion)
        except (PeerError, Refusal, ProtocolError):
            return True
        if not self._state.config.is_5:
            return (seen.timestamp, seen.counter) != (version.timestamp, version.counter)
        return seen != version

    # -- changes

    def topics_changed(self) -> None:
        """Topics were created or changed: send them in the next loop iteration, several changes together.

        A lost name server gets all topics when it is back.
        """
        for name in self._state.topics.take_changed():
            self._last_change += 1
            self._changes.pop(name, None)
            self._changes[name] = self._last_change
        numbers = [number for link in self._links.values() for number in (link.known, link.sending)]
        sent_everywhere = min((number for number in numbers if number is not None), default=self._last_change)
        while self._changes and next(iter(self._changes.values())) <= sent_everywhere:
            del self._changes[next(iter(self._changes))]
        for link in self._links.values():
            self._send_soon(link)

    def _topics_since(self, number: int) -> Topics:
        names = list(takewhile(lambda name: self._changes[name] > number, reversed(self._changes)))
        topics = self._state.topics.topics
        return {name: topics[name] for name in reversed(names) if name in topics}

    async def wait_until_sent(self) -> None:
        """Wait until the name servers that answer have the changes so far."""
        changes = [link.change for link in self._links.values() if link.change is not None and link.is_open]
        if changes:
            await asyncio.wait(changes)

    def _send_soon(self, link: NameServerLink) -> None:
        if self._is_running and link.is_open and (link.change is None or link.change.done()):
            link.change = self._begin(self._send_changed(link), f"changed topics to {link.address}")

    async def _send_changed(self, link: NameServerLink) -> None:
        await asyncio.sleep(0)  # later changes of this iteration are sent too
        while True:
            async with link.lock:
                if not link.is_open or link.known is None:
                    return  # it gets all topics when it is back
                changed, number = self._topics_since(link.known), self._last_change
                if not changed:
                    link.known = number
                    return
                try:
                    await self._send(link, changed)
                    link.known = number
                except PeerError:
                    return
                except (Refusal, ProtocolError):
                    # 5.x refuses the changes of a broker that it has removed meanwhile.
                    await self._register_locked(link)

    # -- requests

    async def _send(self, link: NameServerLink, topics: Topics) -> None:
        version = self._state.topics.data_version
        if len(topics) > LARGE_TABLE:
            request, body = await asyncio.to_thread(_registration, self._state, topics, version)
        else:
            request, body = _registration(self._state, topics, version)
        command, reply = await link.call(request, body, timeout_seconds=self._timeout_seconds)
        self._apply_answer(reply, KVTable.decode(command.body) if command.body else None)

    def _apply_answer(self, reply: RegisterBrokerReply, ordered: KVTable | None) -> None:
        # A name server that does not know the master must not make the slave forget it.
        if reply.master_addr is not None:
            self.master_address = reply.master_addr
        if reply.ha_server_addr is not None:
            self.master_ha_address = reply.ha_server_addr
        if ordered is not None:
            self._state.topics.mark_ordered(ordered.table)

    async def _unregister_from(self, link: NameServerLink) -> None:
        try:
            request = UnregisterBroker(**_names(self._state), broker_id=self._state.config.broker_id)
            await link.call(request, timeout_seconds=UNREGISTER_TIMEOUT_SECONDS)
        except (PeerError, Refusal, ProtocolError) as error:
            _log.warning("cannot unregister from name server %s: %s", link.address, error)

    # -- timers

    def _register_periodically(self) -> None:
        config = self._state.config
        if self._round is None or self._round.done():
            force = config.force_register and len(self._state.topics.topics) <= LARGE_TABLE
            self._round = self._begin(self.register_all(force=force), "registration")
        seconds = config.register_name_server_period / 1000
        bounded = max(MIN_PERIOD_SECONDS, min(seconds, MAX_PERIOD_SECONDS))
        self._after("period", bounded, self._register_periodically)

    def _watch(self) -> None:
        for link in self._links.values():
            if link.is_due and not link.lock.locked():
                self._begin(self._register_at(link), f"registration at {link.address}")
        self._after("watch", WATCH_SECONDS, self._watch)

    def _beat(self) -> None:
        """Send a heartbeat: 322 by default, because 4.x name servers do not know 904."""
        config = self._state.config
        self._after("heartbeat", max(config.broker_heartbeat_interval, 100) / 1000, self._beat)
        for link in self._links.values():
            if config.compatible_with_old_name_srv:
                link.notify(_version_query(self._state), fastjson.dumps(self._state.topics.data_version))
            else:
                link.notify(BrokerHeartbeat(**_names(self._state)))

    @property
    def name_servers(self) -> str:
        """The name servers of this broker, joined by `;`: the one in this process, then those of namesrvAddr."""
        text = f"{self._state.identity.own_name_server};{self._state.config.namesrv_addr}"
        return ";".join(dict.fromkeys(part.strip() for part in text.split(";") if part.strip()))

    def _follow_settings(self) -> None:
        """Add and remove links after a change of namesrvAddr."""
        wanted = [address for address in self.name_servers.split(";") if address]
        for address in [address for address in self._links if address not in wanted]:
            self._links.pop(address).close()
        for address in wanted:
            if address not in self._links:
                self._links[address] = NameServerLink(self._connect, address)

    @property
    def _timeout_seconds(self) -> float:
        return self._state.config.register_broker_timeout_mills / 1000

    def _after(self, name: str, seconds: float, action: Callable[[], None]) -> None:
        if self._is_running:
            self._timers[name] = asyncio.get_running_loop().call_later(seconds, action)

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(_log_errors(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _log_errors(work: Coroutine[Any, Any, None], name: str) -> None:
    try:
        await work
    except Exception:
        _log.exception("%s failed", name)


# -- the requests and the topics in them


def _parts(topics: Topics) -> Iterator[Topics]:
    """The topics of each registration: all of them, or a part each of a table too large for a frame."""
    if len(topics) <= MAX_TOPICS:
        yield topics
        return
    names = list(topics)
    starts = list(range(0, len(names) - 1, MAX_TOPICS))  # a name server reads a single topic as a change
    for start, end in zip(starts, [*starts[1:], len(names)], strict=True):
        yield {name: topics[name] for name in names[start:end]}


def _registration(state: BrokerState, topics: Topics, version: DataVersion) -> tuple[RegisterBroker, bytes]:
    """Request 103 and its body with these topics, which are of this version of the table."""
    config = state.config
    table = {name: _limit_permission(config, topic_config) for name, topic_config in topics.items()}
    if config.is_5:
        wrapper = TopicConfigAndMappingSerializeWrapper(topic_config_table=table, data_version=version)
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper).encode()
    else:
        old = TopicConfigSerializeWrapper(topic_config_table=table, data_version=version)
        body = fastjson.dumps({"filterServerList": [], "topicConfigSerializeWrapper": old})
    acts = config.enable_slave_acting_master
    request = RegisterBroker(
        **_names(state),
        ha_server_addr=state.identity.ha_address,
        broker_id=config.broker_id,
        heartbeat_timeout_millis=config.broker_not_active_timeout_millis if acts and config.is_5 else None,
        enable_acting_master=acts if config.is_5 else None,
        body_crc32=body_crc(body),
    )
    return request, body


def _limit_permission(config: BrokerConfig, topic_config: TopicConfig) -> TopicConfig:
    """A topic with its permission limited by brokerPermission: 5.x removes the missing bits, 4.x uses brokerPermission
    instead of the topic's own."""
    permission = config.broker_permission
    if permission & PERM_READ and permission & PERM_WRITE:
        return topic_config
    perm = permission if not config.is_5 else topic_config.perm & permission
    return msgspec.structs.replace(topic_config, perm=perm)


def _version_query(state: BrokerState) -> QueryDataVersion:
    """Request 322; its body is the data version of the topics."""
    return QueryDataVersion(**_names(state), broker_id=state.config.broker_id)


def _names(state: BrokerState) -> dict[str, Any]:
    return {
        "cluster_name": state.config.broker_cluster_name,
        "broker_name": state.config.broker_name,
        "broker_addr": state.identity.address,
    }
