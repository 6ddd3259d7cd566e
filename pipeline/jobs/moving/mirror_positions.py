"""Where a mirror is in each queue: in memory while it runs, and as offsets of its group in both clusters.

In the source the offset is the next message to copy. In the target it is one past the last copy, so that the next run
knows that it must look for copies whose acknowledgement it did not get. A broker that is away gets its offsets later. A
master that returns gets those that only its slave has.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from pocketmq.protocol.requests.topic import QueryTopicConsumeByWho

from ...errors import PipelineError, SourceUnreachable
from ...tables.brokers.broker_client import BrokerClient
from ...tables.planning.positions import Offsets, Queue
from ...tables.planning.ranges import QueueBounds

_log = logging.getLogger("pocketmq.pipeline")

SOURCE, TARGET = "source", "target"
SIDES: Final = (SOURCE, TARGET)
COMMIT_MS: Final = 2_000


class SideUnreachable(Exception):
    """A broker of one side does not answer."""

    def __init__(self, side: str, error: PipelineError) -> None:
        super().__init__(str(error))
        self.side = side
        self.error = error


@contextmanager
def asking(side: str) -> Iterator[None]:
    """`SideUnreachable` if a broker of this side does not answer; a refusal says which side it is from."""
    try:
        yield
    except PipelineError as error:
        if isinstance(error, SourceUnreachable) or isinstance(error.__cause__, SourceUnreachable):
            raise SideUnreachable(side, error) from error
        raise PipelineError(f"the {side}: {error}") from error


class MirrorPositions:
    """The positions of one mirror."""

    def __init__(self, source: BrokerClient, target: BrokerClient, group: str) -> None:
        self._clients = source, target
        self._group = group
        self._next: Offsets = {}
        self._reached: dict[Queue, int | None] = {}
        self._learned: tuple[dict[Queue, int | None], dict[Queue, int | None]] = ({}, {})
        """The committed offsets of queues that were asked for together."""
        self._uncommitted: tuple[Offsets, Offsets] = ({}, {})
        self._for_master: Offsets = {}
        """Offsets of the source that were committed at a slave."""
        self._new_places: dict[tuple[str, str], bool] = {}
        """Topic and broker of the source: whether the mirror has no position there. Known for one round."""
        self._is_told_of_target = False

    def learn(self, pairs: Mapping[Queue, Queue]) -> None:
        """Ask for what is committed of new queues and their targets, of all of them at once. What is not answered is
        asked again by the methods below, which say what is wrong."""
        self._new_places.clear()
        new = [queue for queue in pairs if queue not in self._next]
        new_targets = [queue for queue in set(pairs.values()) if queue not in self._reached]
        for client, learned, queues in zip(self._clients, self._learned, (new, new_targets), strict=True):
            learned.clear()
            if len(queues) > 1:
                with suppress(PipelineError):
                    learned |= client.committed(self._group, queues, COMMIT_MS)

    def next_of(self, queue: Queue, held: QueueBounds, *, starts_at_end: bool, is_first_run: bool) -> int:
        """The next message to copy. Read from the source once.

        `SourceUnreachable` if its broker does not answer, or if it is a slave that does not know and cannot be right.
        """
        if queue not in self._next:
            if queue in self._learned[0]:
                committed = self._learned[0][queue]
            else:
                committed = self._clients[0].committed(self._group, [queue], COMMIT_MS)[queue]
            if starts_at_end and not committed:
                starts_at_end = self._is_new_to(queue.topic, queue.broker_name)
                committed = None if starts_at_end else committed  # 4.9 brokers say 0 for an unknown group
            if committed is None:
                if held.is_of_slave and (starts_at_end or held.low > 0 or not is_first_run):
                    raise SourceUnreachable(
                        f"{queue} has no master in its route, and its slave does not know the mirror's position"
                    )
                committed = held.high if starts_at_end else held.low
                self._uncommitted[0][queue] = committed
            self._next[queue] = committed
        return self._next[queue]

    def _is_new_to(self, topic: str, broker_name: str) -> bool:
        """Whether no queue of the topic has a position on the broker. A queue without one was added later, if others
        have some, and is copied from its start."""

        async def ask(queue: Queue, fresh: bool) -> bool:
            connection = await self._clients[0].broker(topic, broker_name, fresh=fresh)
            return self._group not in (await connection.call(QueryTopicConsumeByWho(topic=topic))).group_list

        place = topic, broker_name
        if place not in self._new_places:
            any_queue = Queue(topic, broker_name, 0)
            try:
                found = self._clients[0].ask_each("groups of", [any_queue], ask, COMMIT_MS)
            except SourceUnreachable:
                raise
            except PipelineError:  # no right to ask
                found = {any_queue: True}
            self._new_places[place] = found[any_queue]
        return self._new_places[place]

    def waiting(self, queue: Queue, held: QueueBounds) -> int:
        """Messages of a queue that are not yet copied; 0 if its position is not known."""
        return max(held.high - self._next.get(queue, held.high), 0)

    def warn_target_not_committable(self, error: PipelineError) -> None:
        """A mirror may have no more than the right to send: then it repeats what was in flight when it was killed."""
        if not self._is_told_of_target:
            self._is_told_of_target = True
            _log.warning(
                "the target: %s; a mirror that is killed will send again what it had in flight", error
            )

    def reached_in(self, target: Queue) -> int | None:
        """One past the last known copy; None if no run has committed it. `SourceUnreachable` as above."""
        if target in self._learned[1]:
            self._reached.setdefault(target, self._learned[1][target])
        if target not in self._reached:
            self._clients[1].bounds([target], COMMIT_MS)  # a wrong key is an error, no right to commit is not
            try:
                self._reached[target] = self._clients[1].committed(self._group, [target], COMMIT_MS)[target]
            except SourceUnreachable:
                raise
            except PipelineError as error:
                self.warn_target_not_committable(error)
                self._reached[target] = None
        return self._reached[target]

    def advance(self, queue: Queue, following: int, target: Queue | None = None, reached: int = 0) -> None:
        """Everything before `following` is copied, and in the target everything before `reached` is known."""
        self._next[queue] = self._uncommitted[0][queue] = following
        if target is not None:
            self._reached[target] = self._uncommitted[1][target] = reached

    @property
    def has_uncommitted(self) -> bool:
        """Whether `commit` has something to do."""
        return any(self._uncommitted)

    def commit(self, away: Collection[tuple[str, str]] = (), slaves: Collection[str] = ()) -> None:
        """Commit what is new. What a broker does not take now is committed by a later call, also what belongs to one
        of `away`, (side, broker name), which are not asked. `slaves` are brokers of the source without a master."""
        for queue in [queue for queue in self._for_master if queue.broker_name not in slaves]:
            self._uncommitted[0].setdefault(queue, self._for_master.pop(queue))
        for number, (side, client) in enumerate(zip(SIDES, self._clients, strict=True)):
            waiting = self._uncommitted[number]
            for broker_name in {queue.broker_name for queue in waiting}:
                if (side, broker_name) in away:
                    continue
                part = {
                    queue: offset for queue, offset in waiting.items() if queue.broker_name == broker_name
                }
                try:
                    client.commit(self._group, part, COMMIT_MS)
                except SourceUnreachable:
                    continue
                except PipelineError as error:
                    if number == 0:
                        raise PipelineError(f"the {side}: {error}") from error
                    self.warn_target_not_committable(error)
                for queue in part:
                    del waiting[queue]
                if number == 0 and broker_name in slaves:
                    self._for_master |= part
