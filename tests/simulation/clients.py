"""The programs that clients run: the real producers and consumers, with listeners that keep the books."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

from pocketmq.client import ClientError, ConsumeFromWhere, MessageExt, Producer, PushConsumer

from simulation.books import Books, Place
from simulation.machines import Machine
from simulation.plan import Plan

TOPIC, GROUP = "t-orders", "g-orders"
RETRY_SECONDS = 1.0


class Clients:
    """One program for each machine; a machine that starts again starts its program again."""

    def __init__(self, plan: Plan, machines: dict[str, Machine], books: Books, name_servers: str) -> None:
        self._plan, self._machines, self._books = plan, machines, books
        self._name_servers = name_servers
        self.is_ending = False
        self._stopped = asyncio.Event()
        self._chances = {name: plan.random(f"program {name}") for name in machines}

    def work_of(self, name: str) -> Coroutine[Any, Any, None]:
        machine, chance = self._machines[name], self._chances[name]
        work = self._produce if name in self._plan.producers else self._consume
        return self._until_it_works(work, machine, chance)

    async def _until_it_works(self, work: Any, machine: Machine, chance: Random) -> None:
        """A client that cannot start is started again, as its supervisor would."""
        while True:
            try:
                await work(machine, chance)
                return
            except ClientError:
                await asyncio.sleep(RETRY_SECONDS)

    # -- producing

    async def _produce(self, machine: Machine, chance: Random) -> None:
        options: Any = {"namesrv_addr": self._name_servers, "client_ip": machine.ip}
        async with (
            Producer("p-orders", default_topic_queue_nums=self._plan.queues, **options) as producer,
            asyncio.TaskGroup() as sends,
        ):
            while not self.is_ending:
                await asyncio.sleep(chance.expovariate(1 / self._plan.send_pause))
                key = f"{machine.name}-{len(self._books.tried)}"
                self._books.tried.add(key)
                body = f"{key} ".encode().ljust(chance.choice((20, 20, 300, 3000)), b".")
                sends.create_task(self._send(producer, key, body))

    async def _send(self, producer: Producer, key: str, body: bytes) -> None:
        try:
            result = await producer.send(TOPIC, body, keys=key)
        except ClientError:
            self._books.counts["failed sends"] += 1
        else:
            self._books.acknowledged(key, result)

    # -- consuming

    async def _consume(self, machine: Machine, chance: Random) -> None:
        async def listen(message: MessageExt) -> None:
            await asyncio.sleep(chance.random() * 0.02)
            self._books.returned(GROUP, message)
            if chance.random() < self._plan.share_failing:
                raise RuntimeError("the listener fails")
            self._books.listened(GROUP, message)

        async with PushConsumer(
            GROUP,
            listen,
            subscription={TOPIC: "*"},
            namesrv_addr=self._name_servers,
            client_ip=machine.ip,
            poll_name_server_interval=1_000,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        ):
            await self._stopped.wait()

    # -- the end

    def unfinished(self, records: dict[Place, list[Any]]) -> list[str]:
        return self._books.unconsumed(GROUP, TOPIC, records)

    async def stop(self) -> None:
        """Every client ends cleanly."""
        self._stopped.set()
        lives = [self._machines[name].life for name in (*self._plan.producers, *self._plan.consumers)]
        for life in lives:
            while life is not None and life.tasks:  # noqa: ASYNC110 - it takes no time
                await asyncio.sleep(0.1)
