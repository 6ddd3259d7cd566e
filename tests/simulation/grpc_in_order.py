"""A gRPC consumer of a group that consumes in order: it works on the messages of a queue one after another."""

import asyncio
from collections.abc import Sequence
from typing import Final

from pocketmq.grpc_endpoint import messages as m

from simulation.grpc_consumer import INVISIBLE_MS, RENEWED_MS, GrpcConsumer, Received
from simulation.grpc_program import PAUSE_SECONDS, ServerAt
from simulation.receipts import Place

IN_ORDER: Final = "g-grpc-ordered"
"""The group; a broker finds it in its table."""


class GrpcOrderedConsumer(GrpcConsumer):
    """A member. The next message begins when the one before it is acknowledged."""

    def _got(self, broker_name: str, server: ServerAt, messages: list[Received]) -> None:
        """A receive brings messages of several queues, whichever queue it names."""
        for queue_id in dict.fromkeys(one.queue_id for one in messages):
            place = broker_name, self._topic, queue_id
            self._got_from(place, server, [one for one in messages if one.queue_id == queue_id])

    def _got_from(self, place: Place, server: ServerAt, messages: list[Received]) -> None:
        first, offsets = messages[0], [one.offset for one in messages]
        if offsets != list(range(first.offset, first.offset + len(offsets))):
            self.books.violated(f"{self._name} got {offsets} of {place} together")
        self.books.is_in_turn(self._name, place, first.offset)
        seconds = (RENEWED_MS if first.is_renewed else INVISIBLE_MS) / 1000
        self.books.receipts.received_in_order(self._name, place, offsets, first.asked_at, seconds, self.life)
        self.spawn(self._work_in_order(place, server, messages))

    async def _work_in_order(self, place: Place, server: ServerAt, messages: Sequence[Received]) -> None:
        for number, one in enumerate(messages):
            await asyncio.sleep(self.chance.random() * 0.05)
            draw = self.chance.random()
            if draw < self.plan.share_failing:
                await self._return(place, server, messages[number:])
                return
            if draw > 0.98 and one.is_renewed:
                self.books.counts["ordered messages held"] += 1
                await asyncio.sleep(RENEWED_MS / 1000 + self.chance.random() * 10)
            if not await self._acknowledge_one(place, server, one):
                await self._return(place, server, messages[number + 1 :])
                return

    async def _acknowledge_one(self, place: Place, server: ServerAt, one: Received) -> bool:
        """Ask until the broker answers; False if it refuses, because the message is too old to be this client's."""
        self.books.counts["ordered messages"] += 1
        self.books.listened(self._name, one.key)
        self.books.handled[self._name, place].add(one.offset)
        self.books.receipts.let_go(self._name, one.key)
        self.books.receipts.ended_in_order(self._name, place, one.offset)
        while not (codes := await self._send_acks(place[0], server, [one])):
            self.books.receipts.may_come_twice(self._name, one.key)
            await asyncio.sleep(PAUSE_SECONDS)
        return codes == [m.Code.OK]

    async def _return(self, place: Place, server: ServerAt, messages: Sequence[Received]) -> None:
        """They come again, in order: soon, or when their time is over. What the server renews has to be given back."""
        self.books.counts["ordered messages given up"] += len(messages)
        for one in messages:
            if one.is_renewed or self.chance.random() < 0.5:
                self.books.receipts.ended_in_order(self._name, place, one.offset)
                await self._hide(server, one, self.chance.randrange(1000, 5000))
            self.books.receipts.let_go(self._name, one.key)
