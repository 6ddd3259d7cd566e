"""When rounds of rebalancing happen: the rule as a table, and the service that follows it."""

import asyncio

import pytest
from pocketmq.client.instance import rebalance_service
from pocketmq.client.instance.groups import GroupProducer, GroupTable
from pocketmq.client.instance.rebalance_service import RebalanceService, early_round_in_ms, next_round_in_ms

from waiting import until


def test_rounds_happen_every_20_s_and_every_second_while_unbalanced():
    assert next_round_in_ms(balanced=True) == 20_000
    assert next_round_in_ms(balanced=False) == 1_000


@pytest.mark.parametrize(
    ("now_ms", "last_ms", "wait_ms"),
    [(5_000, 4_000, 0), (5_000, 4_001, 1), (5_000, 5_000, 1_000), (9_000, 4_000, 0), (5_000, 9_000, 1_000)],
)
def test_a_round_begins_a_second_after_the_last_also_if_the_clock_jumps_back(
    now_ms: int, last_ms: int, wait_ms: int
):
    assert early_round_in_ms(now_ms, last_ms) == wait_ms


class Consumer:
    """Counts its rounds; each leaves it as balanced as `balanced` says."""

    group = "g"

    def __init__(self) -> None:
        self.rounds = 0
        self.balanced = True
        self.raises = False

    async def rebalance(self) -> bool:
        self.rounds += 1
        if self.raises:
            raise ValueError("a round that fails")
        return self.balanced


@pytest.mark.parametrize("raises", [False, True])
async def test_an_unbalanced_consumer_is_asked_again_and_a_balanced_one_waits(
    raises: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service follows `next_round_in_ms` and `early_round_in_ms`."""
    waits: list[bool] = []

    def next_round(*, balanced: bool) -> int:
        waits.append(balanced)
        return 1 if not balanced else 60_000

    monkeypatch.setattr(rebalance_service, "next_round_in_ms", next_round)
    monkeypatch.setattr(rebalance_service, "early_round_in_ms", lambda now_ms, last_round_ms: 0)
    consumer, groups = Consumer(), GroupTable()
    groups.add_consumer(consumer)  # type: ignore[arg-type]
    groups.add_producer(GroupProducer("p"))
    service = RebalanceService(groups)
    running = asyncio.create_task(service.run())
    consumer.balanced, consumer.raises = False, raises
    service.rebalance_now()
    await until(lambda: consumer.rounds >= 3)
    consumer.balanced, consumer.raises = True, False
    await until(lambda: len(waits) > 4 and waits[-1])
    settled = consumer.rounds
    service.rebalance_now()
    await until(lambda: consumer.rounds == settled + 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
