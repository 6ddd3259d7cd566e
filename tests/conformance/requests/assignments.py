"""Which queues the broker gives to each of several members that pop (5.x): a recorded conversation of its own."""

import contextlib
import json
from collections.abc import Iterator
from itertools import product

from conformance.requests.transcripts import Transcript
from conformance.servers.raw_client import RawClient, heartbeat, wait_until
from conformance.servers.remoting import Reply
from conformance.servers.server import Server

TOPICS = {"shared_3": 3, "shared_8": 8}
"""With their numbers of queues."""
MEMBERS = 5
STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "no such")
SHARES = (-1, 0, 1, 2, 3, 4, 9)
"""popShareQueueNum: a member pops its own queues and those of that many members after it."""
QUERY_ASSIGNMENT, SET_MODE = 400, 401


class Assignments(Transcript):
    def play(self, server: Server) -> list[str]:
        with server, contextlib.ExitStack() as connections:
            clients = [connections.enter_context(RawClient(server)) for _ in range(MEMBERS)]
            said: list[str] = []
            for topic, queues in TOPICS.items():
                clients[0].update_topic(topic, queues)
                for present, client in enumerate(clients, 1):
                    assert client.call(34, joined(topic, topic, f"c{present}")).code == 0
                    for strategy, share in product(STRATEGIES, SHARES):
                        said += _shares(clients[0], topic, strategy, share, present)
            return said


def joined(topic: str, group: str, client_id: str) -> bytes:
    """The heartbeat of a member."""
    subscription = {"topic": topic, "subString": "*", "subVersion": 1}
    return heartbeat(client_id, group, subscription, consumeType="CONSUME_POP")


def _shares(client: RawClient, topic: str, strategy: str, share: int, present: int) -> Iterator[str]:
    """The queues assigned to each member, and to an unknown one."""
    mode = {"topic": topic, "consumerGroup": topic, "mode": "POP", "popShareQueueNum": share}
    wait_until(
        lambda: client.call(SET_MODE, json.dumps(mode).encode()).code == 0, "the topic was never created"
    )
    for number in range(1, present + 2):
        ask = {"topic": topic, "consumerGroup": topic, "clientId": f"c{number}", "messageModel": "CLUSTERING"}
        body = json.dumps({**ask, "strategyName": strategy}).encode()

        def answered(body: bytes = body) -> Reply:
            return client.call(QUERY_ASSIGNMENT, body)

        if strategy != "no such":
            wait_until(
                lambda: "messageQueueAssignments" in answered().body.decode(), "the broker never got a route"
            )
        reply = answered()
        found = json.loads(reply.body).get("messageQueueAssignments")
        queues = None if found is None else sorted(one["messageQueue"]["queueId"] for one in found)
        modes = sorted({one["mode"] for one in found or ()})
        yield f"{topic} {strategy} {share} of {present}: c{number} -> {reply.code} {queues} {modes}"
