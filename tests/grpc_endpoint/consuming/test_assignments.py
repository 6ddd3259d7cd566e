"""QueryAssignment: what a push consumer receives from."""

from pocketmq.grpc_endpoint.messages import Code, Permission, QueryAssignmentRequest, Resource
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig

from grpc_consumers import Asked, Consumers


def assignments(consumers: Consumers, topic: str = "orders", group: str = "g") -> Asked:
    return consumers.ask(QueryAssignmentRequest(topic=Resource(name=topic), group=Resource(name=group)))


def assigned(asked: Asked) -> list[tuple[int, Permission, str, int]]:
    queues = [one.message_queue for one in asked.reply.assignments]
    return [(queue.id, queue.permission, queue.broker.name, queue.broker.id) for queue in queues]


async def test_a_group_receives_from_any_queue_of_the_broker(consumers: Consumers) -> None:
    consumers.fill(topic="wide", queues=3)
    asked = assignments(consumers, "wide", "unknown")
    assert asked.status == (Code.OK, "OK")
    assert assigned(asked) == [(-1, Permission.READ_WRITE, "broker-a", 0)]
    [queue] = [one.message_queue for one in asked.reply.assignments]
    assert queue.topic.name == "wide"
    assert [(one.host, one.port) for one in queue.broker.endpoints.addresses] == [
        (consumers.broker.identity.address.partition(":")[0], 8081)
    ]


async def test_a_group_in_order_receives_from_each_queue(consumers: Consumers) -> None:
    consumers.fill(topic="wide", queues=3)
    consumers.broker.groups.update(SubscriptionGroupConfig(group_name="g", consume_message_orderly=True))
    assert [one[0] for one in assigned(assignments(consumers, "wide"))] == [0, 1, 2]


async def test_assignments_are_refused(consumers: Consumers) -> None:
    consumers.broker.config.auto_create_topic_enable = False
    assert assignments(consumers, "nothing").status[0] == Code.TOPIC_NOT_FOUND
    assert assignments(consumers, "").status[0] == Code.ILLEGAL_TOPIC
    assert assignments(consumers, group=" ").status[0] == Code.ILLEGAL_CONSUMER_GROUP
    consumers.fill(topic="writable", perm=2)
    assert assignments(consumers, "writable").status == (Code.FORBIDDEN, "no readable queue")
    consumers.fill(topic="readable", perm=4)
    assert assigned(assignments(consumers, "readable")) == [(-1, Permission.READ, "broker-a", 0)]
