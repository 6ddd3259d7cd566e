"""The part of the endpoint that serves consumers: receive, acknowledge, renew, give up.

The acks of one pass of a connection are stored together, then the calls are answered.

    requests of a pass -> add(call, entries, outcomes) ... -> store() at its end -> one append -> durable -> replies

An outcome is the status of an entry, or the ack that must be stored before the entry is acknowledged. Acks of messages
that were received together become one record, as when a client acknowledges them in one request of the remoting
protocol. Owned by the event loop.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final

from pocketmq.broker.broker import Broker
from pocketmq.broker.pop.popping import Popping
from pocketmq.broker.pop.revive_log import AckedMessage
from pocketmq.broker.time.periodic import Periodic, PeriodicActions

from ..calls.rpc_call import RpcCall
from ..clients.clients import Clients
from ..conversion.names import checked_group, checked_topic
from ..messages import (
    OK,
    AckMessageEntry,
    AckMessageResponse,
    AckMessageResultEntry,
    Code,
    Status,
)
from .delivery import Delivery
from .receipt_handle import parse_handle
from .renewal import Renewal

_log = logging.getLogger("pocketmq.grpc")

NOT_ACKNOWLEDGED: Final = Status(code=Code.INTERNAL_SERVER_ERROR, message="ack failed: status is abnormal")

_ACKNOWLEDGED: Final = AckMessageResponse(status=OK, entries=[AckMessageResultEntry(status=OK)])

Outcome = Status | AckedMessage


class AckBatch:
    """`store` must follow before the event loop goes on."""

    def __init__(self, popping: Popping) -> None:
        self._log, self._durable_log = popping.revive_log, popping.durable_log
        self._gathered: list[tuple[RpcCall, Sequence[AckMessageEntry], Sequence[Outcome]]] = []

    def add(self, call: RpcCall, entries: Sequence[AckMessageEntry], outcomes: Sequence[Outcome]) -> None:
        """Answer this call when its acks are stored and durable."""
        self._gathered.append((call, entries, outcomes))

    def store(self) -> None:
        """Store the acks, and answer the calls once they are durable."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        acks = [one for _, _, outcomes in gathered for one in outcomes if isinstance(one, tuple)]
        found = self._log.put_acks(acks)
        refused = [refusal for refusal in found if refusal is not None]
        if refused:
            _log.info("%d acks are refused, the first: %s", len(refused), refused[0])

        def answer_all() -> None:
            refusals = iter(found)
            for call, entries, outcomes in gathered:
                statuses = [
                    (NOT_ACKNOWLEDGED if next(refusals) else OK) if isinstance(one, tuple) else one
                    for one in outcomes
                ]
                call.answer(reply_of(entries, statuses))

        self._durable_log.run_when_durable(answer_all, len(gathered))


def reply_of(entries: Sequence[AckMessageEntry], statuses: list[Status]) -> AckMessageResponse:
    """The reply with the status of each entry."""
    reply = AckMessageResponse()
    if statuses == [OK]:  # nearly always: comparing finds it the same object
        reply.CopyFrom(_ACKNOWLEDGED)
        (entry,), (result,) = entries, reply.entries
        result.message_id, result.receipt_handle = entry.message_id, entry.receipt_handle
        return reply
    codes = {status.code for status in statuses}
    code = Code(codes.pop() if len(codes) == 1 else Code.MULTIPLE_RESULTS)
    reply.status.code, reply.status.message = code, code.name
    for entry, status in zip(entries, statuses, strict=True):
        result = reply.entries.add()
        result.status.CopyFrom(status)
        result.message_id, result.receipt_handle = entry.message_id, entry.receipt_handle
    return reply


class Consuming:
    """`start` and `stop` mirror each other. `clients` are the endpoint's own."""

    def __init__(self, broker: Broker, clients: Clients) -> None:
        self.broker = broker
        self.clients = clients
        self.config = clients.config
        self.renewal = Renewal(broker, self.is_member)
        self.durable_log = broker.popping.durable_log
        self.acks = AckBatch(broker.popping)
        self._periodic_actions = PeriodicActions(broker.state.timers)
        clients.when_gone.append(lambda peer: self.renewal.client_left(peer.client_id))
        broker.popping.when_rewound.append(self.renewal.forget)

    def start(self) -> None:
        """Start the scans of the renewal."""
        self._periodic_actions.start(
            [
                Periodic(
                    "renewal of messages of gRPC clients",
                    self.config.renew_schedule_period_millis / 1000,
                    self.renewal.scan,
                    next_due=self.renewal.next_due,
                )
            ]
        )

    def stop(self) -> None:
        """Give back what clients hold; call it before the broker closes its store."""
        self._periodic_actions.stop()
        self.renewal.stop()
        if self.renewal.forget in self.broker.popping.when_rewound:
            self.broker.popping.when_rewound.remove(self.renewal.forget)

    def checked_names(self, call: RpcCall, request: Any) -> tuple[str, str]:
        """Topic and group of a request that may be made: its answer waits for the disk, and nothing has changed yet.
        Raises `RpcRefused`, or `Refusal` while too many answers wait."""
        self.clients.check(call, request)
        names = checked_topic(request.topic, self.broker.topics), checked_group(request.group)
        self.durable_log.check_room()
        return names

    def take(self, call: RpcCall, group: str, topic: str, entry: Any) -> Delivery:
        """What `entry` names by its message id and receipt handle; it is not renewed any more. Raises `RpcRefused`."""
        sent = Delivery(self.broker, group, topic, parse_handle(entry.receipt_handle))
        return self.renewal.take(call.client_id, entry.message_id, sent)

    def is_member(self, client_id: str, group: str) -> bool:
        """Whether a client is in a group now."""
        peer, members = self.clients.find(client_id), self.broker.membership.consumers.get(group)
        return peer is not None and members is not None and peer in members.connections
