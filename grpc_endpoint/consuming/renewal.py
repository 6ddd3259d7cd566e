"""Automatic renewal: messages that a push consumer works on stay hidden from others, as long as the client lives.

A receive with auto_renew registers its messages here. Every few seconds a scan hides those again whose invisible time
is almost over, for longer and longer: 1, 3, 5, 10, 30 and 60 minutes. The client keeps its first handle; the newest one
is looked up here when the client acknowledges. A client that leaves its group loses its messages, so that other
members get them at once. Times are those of the broker's clock, which may be virtual. Mirrors
`DefaultReceiptHandleManager`, `ReceiptHandleGroup` and `RenewStrategyPolicy`; owned by the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.group_config import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    GroupRetryPolicy,
)
from pocketmq.store import StoreError

from .delivery import Delivery

_log = logging.getLogger("pocketmq.grpc")

MOST_MESSAGES: Final = 200_000
"""Messages under renewal at once, of all clients; further ones are delivered again when their first time is over."""
_MINUTE_MS: Final = 60_000
RENEWAL_MS: Final = tuple(minutes * _MINUTE_MS for minutes in (1, 3, 5, 10, 30, 60))
"""The invisible time of each renewal; the last one repeats."""
_LARGEST_EXPONENT: Final = 32
_FIRST_RETRY_STEP: Final = 2
"""Where in the list of retry delays the first redelivery is (official nextDelayDuration)."""

TURN_MESSAGES: Final = 200
"""Of a scan, in one turn of the loop: about 10 ms if all are renewed."""

MessageKey = tuple[str, str, str, str, int, int]
"""Group, topic, message id, retry flag, queue and offset."""


class RenewedMessage(msgspec.Struct, eq=False):
    """One message that a client works on."""

    delivered: Delivery
    """The message with its newest handle."""
    reconsume_times: int
    delivered_ms: int
    renewals: int = 0
    failures: int = 0
    """How often in a row the store failed."""


class Renewal:
    """The messages under renewal, by client."""

    def __init__(self, broker: Broker, is_member: Callable[[str, str], bool]) -> None:
        """`is_member` says whether a client is in a group now."""
        self._clock, self._groups = broker.clock, broker.groups
        self._timers = broker.state.timers
        self._config = broker.config.endpoint
        self._is_member = is_member
        self._messages: dict[str, dict[MessageKey, RenewedMessage]] = {}
        """By client id."""
        self._count = 0
        self._turns: Iterator[None] | None = None
        """The rest of a scan that has begun."""
        self._earliest_ms: int | None = None
        """No message is due before; `None` if there is none."""

    def __len__(self) -> int:
        return self._count

    # -- in and out

    def add(self, client_id: str, messages: Iterable[tuple[str, Delivery, int]]) -> None:
        """Renew these from now on: each message id with its delivery and the number of earlier ones."""
        now_ms = self._clock.now_ms()
        for message_id, delivered, reconsume_times in messages:
            if self._count >= MOST_MESSAGES:
                _log.warning("%d messages are renewed already: further ones are not", self._count)
                break
            message, key = RenewedMessage(delivered, reconsume_times, now_ms), _key(message_id, delivered)
            known = self._messages.setdefault(client_id, {})
            self._count += key not in known
            known[key] = message
            self._note_due(message)

    def take(self, client_id: str, message_id: str, delivered: Delivery) -> Delivery:
        """The message with its newest handle, and not renewed any more; as given if it never was renewed."""
        key = _key(message_id, delivered)
        message = self._messages.get(client_id, {}).get(key)
        if message is None:
            return delivered
        self._drop(client_id, key)
        return message.delivered

    def client_left(self, client_id: str) -> None:
        """Give the messages of a client back; of very many, the next scan gives back the rest."""
        for key, message in list(islice(self._messages.get(client_id, {}).items(), TURN_MESSAGES)):
            self._give_back(client_id, key, message)

    def stop(self) -> None:
        """Give all messages back, because the endpoint stops."""
        self._turns = None
        for held in self._held():
            self._give_back(*held)

    def _held(self) -> Iterator[tuple[str, MessageKey, RenewedMessage]]:
        """Each message that its client still holds when its turn comes."""
        for client_id, messages in list(self._messages.items()):
            for key, message in list(messages.items()):
                if messages.get(key) is message:
                    yield client_id, key, message

    def _drop(self, client_id: str, key: MessageKey) -> None:
        messages = self._messages[client_id]
        del messages[key]
        self._count -= 1
        if not messages:
            del self._messages[client_id]

    def forget(self) -> None:
        """Drop everything, because the broker goes back to an earlier state."""
        self._messages.clear()
        self._turns = None
        self._count = 0
        self._earliest_ms = None

    # -- in time

    def next_due(self) -> int | None:
        """From which time on (ms since 1970) a scan may have work."""
        return self._earliest_ms

    def scan(self) -> None:
        """Renew what is due; give back what clients hold that are no members any more. In real time other work has its
        turn between; a scan that is under way when the next is due goes on."""
        if self._turns is None:
            self._earliest_ms = None
            self._turns = self._scan_turns()
            self._go_on()

    def _go_on(self) -> None:
        turns = self._turns
        if turns is None:
            return
        try:
            for _ in turns:
                if not self._timers.is_virtual:
                    asyncio.get_running_loop().call_soon(self._go_on)
                    return
        except Exception:
            self._turns, self._earliest_ms = None, self._clock.now_ms()  # the next scan begins anew
            raise
        self._turns = None

    def _scan_turns(self) -> Iterator[None]:
        for number, (client_id, key, message) in enumerate(self._held(), 1):
            now_ms = self._clock.now_ms()
            if not self._is_member(client_id, message.delivered.group):
                self._give_back(client_id, key, message)
            elif self._due_ms(message) > now_ms or self._renew(message, now_ms):
                self._note_due(message)
            else:
                self._drop(client_id, key)
            if not number % TURN_MESSAGES:
                yield

    def _renew(self, message: RenewedMessage, now_ms: int) -> bool:
        """Hide the message again; False if it is not renewed any more."""
        if message.delivered.handle.is_expired(now_ms):
            return False
        try:
            if now_ms - message.delivered_ms >= self._config.renew_max_time_millis:
                self._hide(message, self._retry_delay_ms(message))
                return False
            is_hidden = self._hide(message, RENEWAL_MS[min(message.renewals, len(RENEWAL_MS) - 1)])
        except StoreError as error:
            message.failures += 1
            _log.warning("%s is not renewed: %s", message.delivered.handle, error)
            return message.failures <= self._config.max_renew_retry_times
        message.renewals += 1
        message.failures = 0
        return is_hidden

    def _hide(self, message: RenewedMessage, invisible_ms: int) -> bool:
        handle = message.delivered.hide(invisible_ms, is_strict=self._config.grpc_strict)
        if handle is None:
            return False
        message.delivered = msgspec.structs.replace(message.delivered, handle=handle)
        return True

    def _give_back(self, client_id: str, key: MessageKey, message: RenewedMessage) -> None:
        """Others get the message soon, or after its time if the store fails."""
        self._drop(client_id, key)
        if message.delivered.handle.is_expired(self._clock.now_ms()):
            return
        try:
            self._hide(message, self._config.invisible_time_millis_when_clear)
        except StoreError as error:
            _log.warning("%s is not given back: %s", message.delivered.handle, error)

    def _due_ms(self, message: RenewedMessage) -> int:
        return message.delivered.handle.receipt.visible_again_ms - self._config.renew_ahead_time_millis

    def _note_due(self, message: RenewedMessage) -> None:
        due_ms = self._due_ms(message)
        if self._earliest_ms is None or due_ms < self._earliest_ms:
            self._earliest_ms = due_ms

    def _retry_delay_ms(self, message: RenewedMessage) -> int:
        config = self._groups.find(message.delivered.group)
        policy = GroupRetryPolicy() if config is None else config.group_retry_policy
        return retry_delay_ms(policy, message.reconsume_times)


def retry_delay_ms(policy: GroupRetryPolicy, reconsume_times: int) -> int:
    """How long a message waits for its next delivery, in ms (official RetryPolicy.nextDelayDuration)."""
    times = max(reconsume_times, 0)
    if policy.type == "EXPONENTIAL":
        grown = policy.exponential_retry_policy or ExponentialRetryPolicy()
        return min(grown.max, grown.initial * int(grown.multiplier ** min(times, _LARGEST_EXPONENT)))
    steps = (policy.customized_retry_policy or CustomizedRetryPolicy()).next
    return steps[min(times + _FIRST_RETRY_STEP, len(steps) - 1)] if steps else 0


def _key(message_id: str, delivered: Delivery) -> MessageKey:
    receipt = delivered.handle.receipt
    return delivered.group, delivered.topic, message_id, receipt.retry_flag, receipt.queue_id, receipt.offset
