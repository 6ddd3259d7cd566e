"""ServerView: what `rocketmq` and `rocketmq_noproc` have in common. Topics, groups, messages, views and waits.

All of it goes through a source (`views/`), so the same calls work on the embedded server and over the wire.
"""

import asyncio
import itertools
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import dlq_topic
from pocketmq.protocol.requests.send import SendMessageReply

from .errors import WouldBlockError, WrongValueError
from .state.load import (
    DEFAULT_QUEUES,
    Load,
    LoadedMessage,
    LoadFunction,
    LoadSource,
    groups_of,
    keys_text,
    read_loads,
    send_request,
    topic_of,
)
from .views.values import FirstPosition, Listing, Member, StoredMessage, under_origin_topic
from .views.waits import (
    WAIT_SECONDS,
    AsyncWaits,
    ResultT,
    Source,
    all_consumed,
    idle,
    members_there,
    messages_there,
)

_TIMES: Final = (names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS, names.TIMER_DELIVER_MS)
"""Properties that time a message; beside a delay level the broker drops them."""


class ServerView:
    """Names with one prefix, on one server. Every method may be called from any thread.

    The waits refuse to run inside an event loop, because they would block it: `aio` has them as coroutines.
    """

    def __init__(self, source: Source, prefix: str = "") -> None:
        self._source = source
        self.prefix = prefix
        self.aio: Final = AsyncWaits(source)
        """The waits for coroutines: `await rocketmq.aio.wait_consumed(...)`."""
        self._turn = itertools.count()

    # -- names

    def topic(
        self,
        name: str = "topic",
        *,
        queues: int = DEFAULT_QUEUES,
        order: bool = False,
        attributes: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic (UPDATE_AND_CREATE_TOPIC) with as many read as write queues; returns its full name.

        `attributes` as they are stored, e.g. `{"message.type": "FIFO"}`. An existing topic is replaced.
        """
        return self.make_topic(self.prefix + name, queues=queues, order=order, attributes=attributes)

    def group(self, name: str = "group") -> str:
        """Create a consumer group with the default settings, and its retry topic; returns its full name. Also usable
        as a producer group."""
        return self.make_group(self.prefix + name)

    def make_topic(
        self,
        full_name: str,
        *,
        queues: int = DEFAULT_QUEUES,
        order: bool = False,
        attributes: Mapping[str, str] | None = None,
    ) -> str:
        """As `topic`, with the name as it is. `TestingError` for a name or a number that is not allowed."""
        content = {"queues": queues, "order": order, "attributes": attributes}
        config = topic_of(full_name, content, "topic", emulate=self._source.emulate)
        self._source.run(self._source.load(Load(topics=(config,))))
        return full_name

    def make_group(self, full_name: str) -> str:
        """As `group`, with the name as it is."""
        self._source.run(self._source.load(Load(groups=groups_of((full_name,), ""))))
        return full_name

    # -- messages in

    def send(
        self,
        topic: str,
        body: bytes | str,
        *,
        tags: str = "",
        keys: str | Iterable[str] = "",
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        delay_level: int = 0,
    ) -> SendMessageReply:
        """Send one message over TCP; returns where it is stored. Queues are used round robin.

        `keys` is a list, or a text with blanks between them. The topic is created if the broker allows it. `Refusal`
        with code and remark if the broker refuses.
        """
        timed = [name for name in properties or () if name in _TIMES]
        if delay_level and timed:
            raise WrongValueError(f"give either delay_level or {timed[0]}: a message has one delay", _TIMES)
        source = self._source
        queue_nums, unique_id = source.run(source.before_send(topic))
        message = LoadedMessage(
            topic=topic,
            body=body.encode() if isinstance(body, str) else body,
            tags=tags,
            keys=keys_text(keys, "keys"),
            queue_id=queue_id,
            properties=dict(properties or {}),
            delay_level=delay_level,
        )
        request = send_request(message, f"{self.prefix}test", next(self._turn) % queue_nums, unique_id)
        return source.run(source.send(request, message.body))

    def load(self, *sources: LoadSource | LoadFunction) -> None:
        """Make the topics, groups and messages of files (YAML) or dicts, or call functions with this object. Names are
        those on the wire. `LoadError`, one line, before anything is made if a source is wrong."""
        for step in read_loads(sources):
            if isinstance(step, Load):
                self._source.run(self._source.load(step))
            else:
                step(self)

    # -- views

    def messages(self, topic: str) -> list[StoredMessage]:
        """Every message of a topic, oldest first; an empty list if the topic does not exist."""
        return self._source.run(self._source.messages(topic))

    def offsets(self, topic: str, group: str) -> dict[int, int]:
        """Committed offset by queue id: the offset of the next message the group will read."""
        return self._source.run(self._source.offsets(topic, group))

    def lag(self, topic: str, group: str) -> int:
        """How many messages of the topic the group has not committed or, if it pops, not acknowledged; all, if it never
        read."""
        return self._source.run(self._lag(topic, group))

    async def _lag(self, topic: str, group: str) -> int:
        offsets = await self._source.offsets(topic, group)
        ends = await self._source.queue_ends(topic)
        unread = sum(
            max(end - max(offsets.get(queue_id, 0), first), 0) for queue_id, (first, end) in ends.items()
        )
        return unread + (await self._source.unacknowledged(topic, group) or 0)

    def members(self, group: str) -> Listing[Member]:
        """The connected consumers of a group in the order in which they joined; empty if there are none."""
        return Listing(self._source.run(self._source.members(group)))

    def subscriptions(self, group: str) -> dict[str, str]:
        """Topic to expression, as the last heartbeat of a member said; empty without members."""
        return self._source.run(self._source.subscriptions(group))

    def dead_letters(self, group: str) -> Listing[StoredMessage]:
        """Messages that a group gave up, oldest first, under the topic they were sent to."""
        found = self._source.run(self._source.messages(dlq_topic(group)))
        return Listing(map(under_origin_topic, found))

    def explain(self, group: str, topic: str) -> Listing[FirstPosition]:
        """Where the group starts to read each queue of a topic, and which rule decides. `TestingError` for an unknown
        topic."""
        return Listing(self._source.run(self._source.explain(group, topic)))

    # -- waits

    def wait_messages(
        self, topic: str, count: int, *, timeout_seconds: float = WAIT_SECONDS
    ) -> list[StoredMessage]:
        """Wait until a topic has at least `count` messages; returns all of them. `MessagesMissingError` otherwise."""
        return self._wait("wait_messages", messages_there(self._source, topic, count, timeout_seconds))

    def wait_consumed(self, topic: str, group: str, *, timeout_seconds: float = WAIT_SECONDS) -> None:
        """Wait until a group has consumed every message of a topic that it wants. `MessagesMissingError` otherwise,
        also if the topic or the group does not exist by then.

        The members are asked themselves (307), because clients commit only some seconds later. What is popped is
        consumed once it is acknowledged.
        """
        self._wait("wait_consumed", all_consumed(self._source, topic, group, timeout_seconds))

    def wait_members(
        self, group: str, count: int = 1, *, timeout_seconds: float = WAIT_SECONDS
    ) -> list[Member]:
        """Wait until a group has exactly `count` members; returns them. `MessagesMissingError` otherwise."""
        return self._wait("wait_members", members_there(self._source, group, count, timeout_seconds))

    def wait_idle(self, group: str, *, timeout_seconds: float = WAIT_SECONDS) -> None:
        """Wait until a group has nothing left to consume on any topic that it subscribes to, and its members hold no
        message. `MessagesMissingError` otherwise."""
        self._wait("wait_idle", idle(self._source, group, timeout_seconds))

    def _wait(self, name: str, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._source.run(work)
        work.close()
        raise WouldBlockError(
            f"{name} would block the running event loop: await rocketmq.aio.{name}(...), or "
            f"await asyncio.to_thread(rocketmq.{name}, ...)"
        )
