"""The part of the endpoint that serves producers, and routes to everybody."""

from pocketmq.broker.broker import Broker
from pocketmq.broker.sending.decision import Decisions

from ..clients.clients import Clients
from .routes import Routes


class Producing:
    """What its handlers use, as attributes: a send is the hottest call."""

    def __init__(self, broker: Broker, clients: Clients, routes: Routes) -> None:
        self.clients = clients
        self.config = clients.config
        self.routes = routes
        self.clock = broker.clock
        self.topics = broker.topics
        self.broker_config = broker.config
        self.sending = broker.sending
        self.decisions = Decisions()
        self.delays = broker.delays
        self.transactions = broker.transactions
        self.random = broker.state.random
        self.unique_ids = broker.state.unique_ids
