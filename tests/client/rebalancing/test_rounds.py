"""How a push consumer's queues begin a round, and what they need for it: locks, queues to pop."""

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.client import MessageModel, MessageQueue
from pocketmq.client.delivery.listeners import ListenerCall, ListenerInvoker
from pocketmq.client.errors import AllocationFailed
from pocketmq.client.instance.instance import ClientInstance
from pocketmq.client.push.push_queues import PushQueues
from pocketmq.client.rebalancing.flow_control import PullControl

from client_vectors import consumer_context

CLUSTERING, BROADCASTING = MessageModel.CLUSTERING, MessageModel.BROADCASTING
RETRY = "%RETRY%g"


def queues(*ids: int, topic: str = "t") -> set[MessageQueue]:
    return {MessageQueue(topic, "b", queue_id) for queue_id in ids}


class Rounds(PushQueues):
    """The only member of its group unless `members` says otherwise; notes the queues that a round decides for."""

    decided: set[MessageQueue] | None = None
    members: Sequence[str] = ()

    async def _members(self, topic: str) -> list[str]:
        return list(self.members or [self._instance.client_id])

    def know(self, topic: str, known: Iterable[MessageQueue] | None) -> None:
        route: Any = None if known is None else SimpleNamespace(read_queues=lambda: [*known])
        self._instance.routes._routes[topic] = route

    async def queues_changed(self, topic: str, known: set[MessageQueue], assigned: set[MessageQueue]) -> None:
        self.decided = assigned

    async def add(self, topic: str, target: Any, *rest: Any, changed: bool) -> None:
        self.decided = target


@pytest.fixture
def make(instance: ClientInstance) -> Callable[..., Rounds]:
    def make(*, orderly: bool = False, **settings: Any) -> Rounds:
        context = consumer_context(instance, **settings)
        invoker = ListenerInvoker(context, ListenerCall(lambda message: None, takes_batch=False, threads=1))
        callbacks: Any = dict.fromkeys(("on_assigned", "on_revoked", "on_reconnect"))
        return Rounds(context, invoker, PullControl(context.settings), orderly=orderly, **callbacks)

    return make


async def test_only_ordered_queues_of_a_cluster_are_locked(make: Callable[..., Rounds]) -> None:
    assert make(orderly=True).locks is not None
    assert make(orderly=True, message_model=BROADCASTING).locks is None
    assert make().locks is None


@pytest.mark.parametrize(
    ("topic", "model", "known", "decided"),
    [
        ("t", BROADCASTING, None, set()),
        ("t", BROADCASTING, set(), set()),
        ("t", BROADCASTING, queues(0, 1), queues(0, 1)),
        ("t", CLUSTERING, None, set()),
        ("t", CLUSTERING, set(), set()),
        ("t", CLUSTERING, queues(0), queues(0)),
        (RETRY, CLUSTERING, None, None),
        (RETRY, CLUSTERING, set(), None),
        (RETRY, CLUSTERING, queues(0, topic=RETRY), queues(0, topic=RETRY)),
    ],
)
async def test_a_round_without_queues_reports_them_gone_but_for_the_retry_topic(
    make: Callable[..., Rounds],
    topic: str,
    model: MessageModel,
    known: set[MessageQueue] | None,
    decided: set[MessageQueue] | None,
) -> None:
    rounds = make(message_model=model)
    rounds.know(topic, known)
    assert await rounds.round_of(topic) == (not known)
    assert rounds.decided == decided


@pytest.mark.parametrize("order", list(permutations(["", "C1", "C2"])))
async def test_members_agree_for_any_order_of_queues_and_members(
    make: Callable[..., Rounds], order: tuple[str, ...]
) -> None:
    rounds = make()
    rounds.members = [name or rounds._instance.client_id for name in order]
    for known in (range(8), range(7, -1, -1)):
        rounds.know("t", [MessageQueue("t", "b", queue_id) for queue_id in known])
        await rounds.round_of("t")
        assert rounds.decided == queues(0, 1, 2)


async def test_a_member_the_broker_does_not_list_gets_nothing(make: Callable[..., Rounds]) -> None:
    rounds = make()
    rounds.members = ["C1"]
    rounds.know("t", queues(0, 1))
    assert await rounds.round_of("t")
    assert rounds.decided == set()


async def test_a_failing_strategy_decides_nothing(make: Callable[..., Rounds]) -> None:
    class Failing:
        name = "FAILING"

        def allocate(self, *arguments: object) -> list[MessageQueue]:
            raise AllocationFailed("no")

    rounds = make(allocate_message_queue_strategy=Failing())
    rounds.know("t", queues(0))
    assert not await rounds.round_of("t")
    assert rounds.decided is None


async def test_retry_messages_of_pop_are_read_only_by_pulling(make: Callable[..., Rounds]) -> None:
    rounds = make(client_rebalance=False)
    read = rounds._subscriptions
    for pulled, popped, topics in (
        (queues(0), queues(), ["%RETRY%g_t"]),
        (queues(0), queues(1), ["%RETRY%g_t"]),
        (queues(), queues(), ["%RETRY%g_t"]),
        (queues(), queues(0), []),
    ):
        rounds._read_pop_retries("t", pulled, popped)
        assert list(read) == topics
    rounds._read_pop_retries(RETRY, queues(0), queues())
    assert not read
