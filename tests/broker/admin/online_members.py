"""Groups with online members, for tests of requests that reach consumers or ask for them."""

from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.consumer_groups import Client
from pocketmq.protocol.bodies.client import SubscriptionData
from pocketmq.protocol.message.message_queue import MessageQueue

from broker_fakes import FakeConnection, connect

UNSET = "not set any response code"


def online(
    broker: Broker,
    client_id: str = "c",
    port: int = 4001,
    version: int = 513,
    group: str = "g",
    topic: str = "t",
    expression: str = "*",
) -> FakeConnection:
    connection = connect(broker, port)
    broker.membership.consumers.register(
        group,
        Client(connection, client_id, "JAVA", version, 0),
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=[SubscriptionData(topic=topic, sub_string=expression)],
    )
    connection.notices.clear()
    return connection


def queue(queue_id: int) -> MessageQueue:
    return MessageQueue("t", "broker-a", queue_id)
