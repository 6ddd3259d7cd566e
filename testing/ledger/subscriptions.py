"""What each group wants of each topic, as its heartbeats, pulls and pops say."""

from typing import Final, cast

from pocketmq.protocol.bodies.client import TAG, HeartbeatData, MessageModel
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.rpc_numbers import FIRST_RPC
from pocketmq.protocol.wire.command import Command

from ..requests.logged_request import LogEntry
from .reading import POPS, PULLS

PAIRS: Final = 10_000
"""Pairs of a topic and a group that are remembered."""
_OWN_SUBSCRIPTION: Final = 4
"""The bit of a pull's sysFlag that says it has a subscription of its own."""

Subscription = tuple[str, str]
"""Type and expression."""


class Subscriptions:
    """Those of all requests that were read."""

    def __init__(self) -> None:
        self.by_pair: dict[tuple[str, str], set[Subscription]] = {}
        """By topic and group; an empty set wants all."""
        self.broadcasting: set[str] = set()

    def clear(self) -> None:
        self.by_pair.clear()
        self.broadcasting.clear()

    def know(self, topic: str, group: str) -> set[Subscription] | None:
        """What is known of a pair, which is remembered from now on; None without a name or a place for it."""
        known = self.by_pair.get((topic, group))
        if known is None and topic and group and len(self.by_pair) < PAIRS:
            known = self.by_pair[topic, group] = set()
        return known

    def read(self, kept: LogEntry) -> None:
        """A request that reached the broker."""
        command = cast(Command, kept.request)
        if command.code >= FIRST_RPC:
            self._read_call(kept)
            return
        if command.code == HeartBeat.code:
            self._read_heartbeat(command)
            return
        fields = command.fields or {}
        expression = None
        if command.code in PULLS and fields.get("sysFlag", "").isdigit():
            if int(fields["sysFlag"]) & _OWN_SUBSCRIPTION:
                expression = fields.get("expressionType") or TAG, fields.get("subscription", "")
        elif command.code in POPS and fields.get("exp"):
            expression = fields.get("expType") or TAG, fields["exp"]
        elif command.code not in POPS:
            return
        known = self.know(fields.get("topic", ""), fields.get("consumerGroup", ""))
        if known is not None and expression is not None and len(known) < PAIRS:
            known.add(expression)

    def _read_call(self, kept: LogEntry) -> None:
        from .rpc_reading import subscribed

        found = subscribed(kept)
        known = None if found is None else self.know(*found[:2])
        if found is not None and known is not None and len(known) < PAIRS:
            known.add(found[2])

    def _read_heartbeat(self, command: Command) -> None:
        try:
            heartbeat = HeartbeatData.decode(bytes(command.body or b""))
        except ProtocolError:  # the broker refused it
            return
        for consumer in heartbeat.consumer_data_set:
            group = consumer.group_name or ""
            if consumer.message_model == MessageModel.BROADCASTING and len(self.broadcasting) < PAIRS:
                self.broadcasting.add(group)
            for data in consumer.subscription_data_set:
                known = self.know(data.topic or "", group)
                if known is not None and len(known) < PAIRS:
                    known.add((data.expression_type or TAG, data.sub_string or ""))
