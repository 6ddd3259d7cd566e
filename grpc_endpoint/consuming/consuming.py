"""The part of the endpoint that serves consumers: receive, acknowledge, renew, give up."""

from pocketmq.broker.broker import Broker
from pocketmq.broker.time.periodic import Periodic, PeriodicActions

from ..clients.clients import Clients
from ..clients.peer import GrpcPeer
from ..producing.routes import Routes
from .ack_batch import AckBatch
from .renewal import Renewal


class Consuming:
    """`start` and `stop` mirror each other. `clients` and `routes` are the endpoint's own."""

    def __init__(self, broker: Broker, clients: Clients, routes: Routes) -> None:
        self.broker = broker
        self.clients = clients
        self.routes = routes
        self.config = clients.config
        self.renewal = Renewal(broker, self.is_member)
        self.acks = AckBatch(broker.popping.revive_log)
        self._periodic_actions = PeriodicActions(broker.state.timers)
        clients.when_gone.append(self._client_gone)
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

    def is_member(self, client_id: str, group: str) -> bool:
        """Whether a client is in a group now."""
        peer, members = self.clients.find(client_id), self.broker.membership.consumers.get(group)
        return peer is not None and members is not None and peer in members.connections

    def _client_gone(self, peer: GrpcPeer) -> None:
        self.renewal.client_left(peer.client_id)
