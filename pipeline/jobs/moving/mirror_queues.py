"""Which queue of the target takes the copies of which queue of the source; topics that the target lacks are created."""

import asyncio
import zlib
from collections.abc import Iterable, Sequence

import msgspec
from pocketmq.client.access import Access
from pocketmq.client.errors import ClientError
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.flags import PERM_WRITE

from ...errors import OptionError, PipelineError, SourceUnreachable, TopicMissing
from ...tables.brokers.broker_client import BrokerClient
from ...tables.brokers.reachable import ANSWER_MS, admin_client, master_addresses, suggestion
from ...tables.planning.positions import Queue

AGAIN_MS = 2_000


class Side(msgspec.Struct, frozen=True):
    """One of the two clusters."""

    namesrv_addr: str
    access: Access


class QueuePairs:
    """The queues of the topics, each with its target. A pair stays as it is once it is made."""

    def __init__(self, source: BrokerClient, target: BrokerClient, target_side: Side) -> None:
        self._source = source
        self._target = target
        self._target_side = target_side
        self._topics: dict[str, str] = {}
        self.pairs: dict[Queue, Queue] = {}

    def find(self, topics: dict[str, str], answer_ms: int = ANSWER_MS) -> None:
        """Find the queues of the topics, and create topics that the target lacks. `topics` is source -> target.

        `OptionError` for a topic that the source does not have, `SourceUnreachable` for a side that does not answer.
        """
        self._topics = topics
        for topic, target_topic in topics.items():
            try:
                queues = self._source.queues(topic, answer_ms)
            except TopicMissing as error:
                problem = f"{error.problem}{suggestion(self._source, [topic])}"
                raise TopicMissing(error.option, problem) from error
            new = [queue for queue in queues if queue not in self.pairs]
            if new:
                targets = self._targets(target_topic, max(queue.queue_id for queue in queues) + 1, answer_ms)
                self.pairs |= {queue: target_of(queue, targets) for queue in new}

    def find_new(self) -> None:
        """Find queues that were added, and those of a broker that was away."""
        try:
            self.find(self._topics, AGAIN_MS)
        except (TopicMissing, SourceUnreachable):
            pass  # no broker has a topic at the moment: the next round asks again

    def _targets(self, topic: str, queues: int, answer_ms: int) -> Sequence[Queue]:
        try:
            return self._writable(topic, answer_ms)
        except TopicMissing:
            if topic in {target.topic for target in self.pairs.values()}:
                raise  # it existed: its broker is away
            asyncio.run(_create(self._target_side, topic, queues))
            return self._writable(topic, answer_ms)

    def _writable(self, topic: str, answer_ms: int) -> Sequence[Queue]:
        """The queues that can be written to, and that consumers read. `OptionError` if the topic has none."""
        readable = self._target.queues(topic, answer_ms)
        route = self._target.run(self._target.route(topic))
        writable = {Queue(topic, queue.broker_name, queue.queue_id) for queue in route.queues}
        if found := [queue for queue in readable if queue in writable]:
            return found
        if any(data.perm & PERM_WRITE for data in route.data.queue_datas):
            raise SourceUnreachable(f"topic {topic} of the target has no master in its route")
        raise OptionError(
            f"topic {topic} of the target", "can only be read: its permission must include writing"
        )


def target_of(queue: Queue, targets: Iterable[Queue]) -> Queue:
    """The queue of the other side that takes the copies of a queue, so that their order is kept.

    The same broker name and id, else the same id on the broker that the names choose. The choice depends neither on
    other queues of the source nor, unless it is the chosen one, on a broker of the target that is away.
    """
    there = list(targets)
    for each in there:
        if (each.broker_name, each.queue_id) == (queue.broker_name, queue.queue_id):
            return each
    same_id = [each for each in there if each.queue_id == queue.queue_id]
    return max(same_id or there, key=lambda each: (zlib.crc32(f"{queue} {each}".encode()), each))


async def _create(side: Side, topic: str, queues: int) -> None:
    """Create a topic on every master. `PipelineError` if a broker refuses."""
    config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
    try:
        async with admin_client(side.namesrv_addr, side.access) as admin:
            for address in await master_addresses(admin, side.access):
                await admin.update_topic(config, address=address)
    except ClientError as error:
        raise PipelineError(f"topic {topic} cannot be created at {side.namesrv_addr}: {error}") from error
