"""The first sends of a producer, many at once: neither the topic's route nor a connection is known yet."""

import asyncio
from collections import Counter

import pytest
from pocketmq.client import Producer
from pocketmq.client.connections import connection
from pocketmq.client.errors import SendFailed, SendTimedOut
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import to_fields

from client_network import (
    BLACK_HOLE,
    REFUSING,
    Answer,
    Network,
    broker,
    name_server,
    passed,
    reply,
    route,
    timed,
)

ROUTE = GetRouteInfoByTopic.code


class Stored:
    """A network of a name server and brokers, and the bodies that each queue of the topic T got, as they arrived."""

    def __init__(self, *addresses: str, queues: int = 4) -> None:
        self.network = Network()
        self.bodies: dict[str, list[int]] = {}
        self.network.hosts["ns:1"] = name_server({"T": route({at: at for at in addresses}, queues)})
        for at in addresses:
            self.network.hosts[at] = broker({SendMessageV2.code: self._store})

    def _store(self, asked: Command) -> Answer:
        fields = asked.fields or {}
        queue = f"{fields['n']} {fields['e']}" if "n" in fields else fields["e"]
        self.bodies.setdefault(queue, []).append(int(asked.body or b""))
        stored = SendMessageReply(msg_id="0" * 32, queue_id=int(fields["e"]), queue_offset=0)
        return reply(to_fields(stored))

    def in_order(self) -> list[int]:
        """Everything that was stored; fails unless each queue got it in the order of the calls."""
        for bodies in self.bodies.values():
            assert bodies == sorted(bodies)
        return sorted(body for bodies in self.bodies.values() for body in bodies)


def producer(**options: int) -> Producer:
    return Producer("p", namesrv_addr="ns:1", client_ip="10.0.0.9", **options)  # type: ignore[arg-type]


def kinds(results: list[object]) -> Counter[str]:
    return Counter(type(result).__name__ for result in results)


@pytest.mark.parametrize("way", ["send_nowait", "send", "send_oneway"])
def test_a_burst_is_stored_in_the_order_of_the_calls_after_one_question(way: str) -> None:
    stored, count = Stored("a:1", "b:1"), 20_000 if way == "send_nowait" else 5_000
    stored.network.delays["ns:1"] = 0.5

    async def scenario() -> None:
        async with producer() as one:
            await asyncio.gather(*[getattr(one, way)("T", b"%d" % number) for number in range(count)])

    stored.network.run(scenario)
    assert stored.in_order() == list(range(count))
    assert stored.network.count(ROUTE) == 1
    assert Counter(stored.network.connects) == {"ns:1": 1, "a:1": 1, "b:1": 1}


def test_a_burst_needs_no_task_for_each_send() -> None:
    async def scenario() -> int:
        async with producer() as one:
            sends = [one.send_nowait("T", b"1") for _ in range(1_000)]
            tasks = len(asyncio.all_tasks())
            await asyncio.gather(*sends)
            return tasks

    assert Stored("a:1").network.run(scenario) < 10


def test_sends_with_a_sharding_key_keep_their_order_among_later_ones() -> None:
    stored = Stored("a:1")

    async def scenario() -> None:
        async with producer() as one:
            sends = [one.send_nowait("T", b"%d" % number, sharding_key="k") for number in range(2_000)]
            while not stored.bodies:  # some have left, others wait still
                await asyncio.sleep(0)
                sends.append(one.send_nowait("T", b"%d" % len(sends), sharding_key="k"))
            await asyncio.gather(*sends)

    stored.network.run(scenario)
    assert len(stored.bodies) == 1
    assert len(stored.in_order()) > 2_000


def test_each_send_keeps_its_own_time_while_the_name_server_is_late() -> None:
    stored = Stored("a:1")
    stored.network.delays["ns:1"] = 2.0

    async def scenario() -> tuple[float, list[object], list[object]]:
        async with producer() as one:
            short = [one.send_nowait("T", b"1", timeout_ms=1_000) for _ in range(100)]
            long = [one.send_nowait("T", b"2") for _ in range(100)]
            seconds, failed = await timed(asyncio.gather(*short, return_exceptions=True))
            return seconds, failed, await asyncio.gather(*long, return_exceptions=True)

    seconds, failed, sent = stored.network.run(scenario)
    assert seconds == pytest.approx(1.0)
    assert kinds(failed) == {"SendTimedOut": 100}
    assert kinds(sent) == {"SendResult": 100}
    assert stored.in_order() == [2] * 100


def test_a_broker_that_never_accepts_keeps_up_only_its_own_sends() -> None:
    stored = Stored("a:1", "b:1", queues=1)
    stored.network.hosts["b:1"] = BLACK_HOLE

    async def scenario() -> list[tuple[float, list[object]]]:
        async with producer() as one:
            to_a, to_b = (
                asyncio.gather(
                    *[
                        one.send_nowait("T", b"1", queue=MessageQueue("T", at, 0), timeout_ms=2_000)
                        for _ in range(5_000)
                    ],
                    return_exceptions=True,
                )
                for at in ("a:1", "b:1")
            )
            return [await timed(passing(to_a)), await timed(passing(to_b))]

    async def passing(sends: "asyncio.Future[list[object]]") -> list[object]:
        return await sends

    (seconds_a, sent), (seconds_b, failed) = stored.network.run(scenario)
    assert (seconds_a, kinds(sent)) == (pytest.approx(0.0), {"SendResult": 5_000})
    assert (seconds_b, kinds(failed)) == (pytest.approx(2.0), {"SendTimedOut": 5_000})


def test_a_burst_to_a_broker_that_refuses_is_repeated_to_the_other_one() -> None:
    stored = Stored("a:1", "b:1")
    stored.network.hosts["b:1"] = REFUSING

    async def scenario() -> None:
        async with producer() as one:
            await asyncio.gather(*[one.send_nowait("T", b"%d" % number) for number in range(2_000)])

    stored.network.run(scenario)
    assert sorted(body for bodies in stored.bodies.values() for body in bodies) == list(range(2_000))


def test_a_future_that_is_cancelled_drops_only_its_send() -> None:
    stored = Stored("a:1")

    async def scenario() -> list[object]:
        async with producer() as one:
            sends = [one.send_nowait("T", b"%d" % number) for number in range(100)]
            for send in sends[::2]:
                send.cancel()
            return await asyncio.gather(*sends, return_exceptions=True)

    assert kinds(stored.network.run(scenario)) == {"CancelledError": 50, "SendResult": 50}
    assert stored.in_order() == list(range(1, 100, 2))


def test_a_topic_without_a_route_gives_each_send_its_own_error() -> None:
    stored = Stored("a:1")

    async def scenario() -> list[SendFailed]:
        async with producer() as one:
            return await asyncio.gather(
                *[one.send_nowait("absent", b"1") for _ in range(1_000)], return_exceptions=True
            )

    failures = stored.network.run(scenario)
    assert {(type(failure), failure.code) for failure in failures} == {(SendFailed, 10005)}
    assert len({id(failure) for failure in failures}) == 1_000
    assert stored.network.count(ROUTE) == 2  # the topic, and its template


def test_a_connection_full_of_requests_makes_a_burst_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_CALLS", 100)
    stored = Stored("a:1")
    stored.network.delays["a:1"] = 0.1

    async def scenario() -> list[object]:
        async with producer() as one:
            return await asyncio.gather(*[one.send_nowait("T", b"%d" % number) for number in range(1_000)])

    assert kinds(stored.network.run(scenario)) == {"SendResult": 1_000}
    assert stored.in_order() == list(range(1_000))


def test_shutdown_waits_for_queued_sends_no_longer_than_their_time() -> None:
    stored = Stored("a:1")
    stored.network.hosts["ns:1"] = BLACK_HOLE

    async def scenario() -> tuple[float, list[object]]:
        one = producer()
        await one.start()
        sends = [one.send_nowait("T", b"1", timeout_ms=500) for _ in range(100)]
        await passed(0.1)
        seconds, _ = await timed(one.shutdown())
        return seconds, [send.exception() for send in sends]

    seconds, failures = stored.network.run(scenario)
    assert seconds == pytest.approx(0.4, abs=0.01)
    assert {type(failure) for failure in failures} == {SendTimedOut}


def test_a_shutdown_that_is_cancelled_ends_queued_sends_at_once() -> None:
    stored = Stored("a:1")
    stored.network.hosts["ns:1"] = BLACK_HOLE

    async def scenario() -> tuple[float, list[object]]:
        one = producer()
        await one.start()
        sends = [one.send_nowait("T", b"1") for _ in range(100)]
        leaving = asyncio.create_task(one.shutdown())
        await passed(0.1)
        leaving.cancel()
        return await timed(asyncio.gather(*sends, return_exceptions=True))

    seconds, failures = stored.network.run(scenario)
    assert seconds == pytest.approx(0.0)
    assert kinds(failures) == {"SendFailed": 100}
