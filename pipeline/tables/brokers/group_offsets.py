"""Commits the progress of one query as the offsets of a consumer group, for lag tools.

A group's offsets have one writer. The consumers of a group write them too, so a group with live members is refused,
unless the user asks for that. Mirrors what mqadmin's resets and the official console check by hand.
"""

import logging
from collections.abc import Collection, Iterable

import msgspec
from pocketmq.client.errors import RequestRefused
from pocketmq.protocol.requests.membership import GetConsumerListByGroup
from pocketmq.protocol.wire.response_codes import ResponseCode

from ...errors import GroupInUse
from ..planning.positions import Offsets, Queue
from .broker_client import BrokerClient

_log = logging.getLogger("pocketmq.pipeline")

LISTED_MEMBERS = 3
NO_MEMBERS = "no consumer for this group"
"""What brokers answer for a group without members."""


def live_members(
    client: BrokerClient, group: str, queues: Iterable[Queue], retry_timeout_ms: int
) -> list[str]:
    """The client ids of a group's consumers, as the brokers of these queues know them."""

    async def ask(queue: Queue, fresh: bool) -> list[str]:
        connection = await client.broker(queue.topic, queue.broker_name, fresh=fresh)
        try:
            reply = await connection.call(GetConsumerListByGroup(consumer_group=group))
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.SYSTEM_ERROR and NO_MEMBERS in str(refusal):
                return []
            raise  # such as no permission, for which 4.9 has the same code: nobody knows whether there are members
        return reply.consumer_id_list

    of_broker = {queue.broker_name: queue for queue in queues}
    found = client.ask_each(f"members of {group},", of_broker.values(), ask, retry_timeout_ms)
    return sorted({member for members in found.values() for member in members})


class GroupWriter(msgspec.Struct, frozen=True):
    """The one writer of a group's offsets, for one query."""

    client: BrokerClient
    group: str
    timeout_ms: int
    shares_group: bool = False
    """Write although the group has live members."""

    def check(self, queues: Iterable[Queue]) -> None:
        """`GroupInUse` if consumers of the group are connected, unless that was asked for."""
        if self.shares_group:
            return
        members = live_members(self.client, self.group, queues, self.timeout_ms)
        if members:
            named = ", ".join(members[:LISTED_MEMBERS]) + (" ..." if len(members) > LISTED_MEMBERS else "")
            raise GroupInUse(
                f"group {self.group}",
                f"has {len(members)} live members ({named}), which commit its offsets: "
                "name a group of the query's own, or set commitOffsets=force",
            )

    def commit(self, offsets: Offsets, *, only_forward: bool = False, exempt: Collection[Queue] = ()) -> None:
        """Commit offsets: the next messages to read. `GroupInUse` as `check`; `PipelineError` if a broker refuses.

        With `only_forward`, an offset that is behind the committed one is left out, but for the queues in `exempt`.
        """
        self.check(offsets)
        if only_forward:
            stored = self.client.committed(self.group, offsets, self.timeout_ms)
            offsets = {
                queue: offset
                for queue, offset in offsets.items()
                if queue in exempt or stored[queue] is None or offset > (stored[queue] or 0)
            }
        if offsets:
            self.client.commit(self.group, offsets, self.timeout_ms)
