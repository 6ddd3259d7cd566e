"""An order service over RocketMQ: orders are placed in transactions, billed with retries, and shipped in order.

The code under test: it knows PocketMQ's client and no test. Names of topics and groups are arguments, as in a service
whose configuration has them.
"""

import json
from collections.abc import Awaitable, Callable

from pocketmq.client import (
    ConsumeFromWhere,
    LocalTransactionState,
    MessageExt,
    PushConsumer,
    RetryLater,
    TransactionProducer,
)

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


class Shop:
    """Places orders. `stock` is its database: articles that are left."""

    def __init__(self, orders: str, stock: dict[str, int]) -> None:
        self._orders = orders
        self._stock = stock
        self._reserved: set[str] = set()
        self._producer = TransactionProducer("shop", self._check)

    async def __aenter__(self) -> "Shop":
        await self._producer.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._producer.shutdown()

    async def place(self, number: str, article: str) -> bool:
        """Whether the article was there. The order is seen by consumers if and only if it was reserved."""

        def reserve(message: object, arg: object) -> LocalTransactionState:
            if self._stock.get(article, 0) == 0:
                return LocalTransactionState.ROLLBACK_MESSAGE
            self._stock[article] -= 1
            self._reserved.add(number)
            return LocalTransactionState.COMMIT_MESSAGE

        body = json.dumps({"number": number, "article": article}).encode()
        await self._producer.send_in_transaction(self._orders, body, reserve, keys=number)
        return number in self._reserved

    def _check(self, message: MessageExt) -> LocalTransactionState:
        """The broker asks, because the verdict of `place` did not reach it."""
        is_reserved = message.keys in self._reserved
        return LocalTransactionState.COMMIT_MESSAGE if is_reserved else LocalTransactionState.ROLLBACK_MESSAGE


def billing(orders: str, group: str, charge: Callable[[str], Awaitable[None]]) -> PushConsumer:
    """Charges each order. An order that cannot be charged is tried twice more, then it is a dead letter."""

    async def on_order(message: MessageExt) -> None:
        try:
            await charge(json.loads(message.body)["number"])
        except ConnectionError as error:
            raise RetryLater(delay_level=4) from error  # again in 30 s

    return PushConsumer(
        group, on_order, subscription={orders: "*"}, max_reconsume_times=2, consume_from_where=FIRST
    )


def shipping(steps: str, group: str, ship: Callable[[str], None]) -> PushConsumer:
    """Follows the steps of each order as they were sent: equal sharding keys are in one queue."""
    return PushConsumer(
        group,
        lambda message: ship(message.body.decode()),
        subscription={steps: "*"},
        orderly=True,
        consume_from_where=FIRST,
    )
