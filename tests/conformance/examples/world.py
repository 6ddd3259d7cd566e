"""One server, the examples of one client version, and what has been sent there so far.

Examples use fixed topics and groups, so a world has a server of its own. `open` sends to it and starts every
consumer at once: they run side by side while the tests check them one by one. A test's expectation is what the
producers' send results say, not what the broker reports later.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from conformance.examples.printed import Received, Sent, received, sent
from conformance.examples.stage import Act, Stage
from conformance.examples.stored import Stored, stored
from conformance.servers import remoting
from conformance.servers.raw_client import RawClient, pull_fields
from conformance.servers.server import BROKER_PORT, Server

PULL_MESSAGE = 11
QUERY_CONSUMER_OFFSET = 14
UPDATE_CONSUMER_OFFSET = 15
GET_MAX_OFFSET = 30
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200
SUCCESS = 0

QUEUES = range(4)  # a client's default for topics that the broker creates for it
ONEWAY_COUNT = 100
# Retries of a consumer start at the third level: short ones save minutes, on either side.
BROKER_CONF = {"messageDelayLevel": "1s 1s 1s 1s 1s 1s 1s 1s 1s 1s"}

# Readers of all of TopicTest, and the groups that the examples give them.
QUICKSTART, PUSH = "quickstart.Consumer", "simple.PushConsumer"
LITE_SUBSCRIBE, PULL_SCHEDULE = "simple.LitePullConsumerSubscribe", "simple.PullScheduleService"
BROADCAST_ONE, BROADCAST_TWO = "broadcast.PushConsumer one", "broadcast.PushConsumer two"
# Readers of less than that.
TAG_FILTER, ORDERLY = "filter.TagFilterConsumer", "ordermessage.Consumer"
LITE_ASSIGN = "simple.LitePullConsumerAssign"
ORDERS, FAILING = "operation.Consumer of orders", "operation.Consumer failing"
GROUPS = {
    QUICKSTART: "please_rename_unique_group_name_4",
    PUSH: "CID_JODIE_1",
    LITE_SUBSCRIBE: "lite_pull_consumer_test",
    PULL_SCHEDULE: "GroupName1",
    BROADCAST_ONE: "please_rename_unique_group_name_1",
    BROADCAST_TWO: "please_rename_unique_group_name_1",
    TAG_FILTER: "please_rename_unique_group_name",
    LITE_ASSIGN: "please_rename_unique_group_name",
    ORDERLY: "please_rename_unique_group_name_3",
    ORDERS: "readers_of_orders",
    FAILING: "failing_half",
}
ORDERS_TOPIC = "TopicTestjjj"  # ordermessage.Producer's; ordermessage.Consumer reads TopicTest all the same

Place = tuple[int, int]
"""Queue and offset in it."""


T = TypeVar("T")


class World:
    """See the top of the file. `client` is "4.9" (examples 4.7.0, client 4.9.8) or "5.5"."""

    def __init__(self, server: Server, client: str, java_opts: Sequence[str]) -> None:
        self.server = server
        self.client = client
        self.stage = Stage(server.programs, client, server.home / "stage", java_opts)
        self.sends_oneway = client == "5.5"  # examples 4.7.0 have no simple.OnewayProducer
        self.topic_test: dict[Place, str] = {}  # unique key of each message acknowledged there
        self.send_results: dict[str, list[Sent]] = {}  # each producer's send results
        self.acts: dict[str, Act] = {}
        self.orderly_start: dict[
            int, int
        ] = {}  # offsets committed for the orderly consumer before it started

    def open(self) -> None:
        """Send, then start the consumers; into an empty broker.

        The topic exists beforehand: a producer that creates it gets another route when its next look at the name server
        comes, and begins its turns through the queues anew, so that one may get a message more than the others.
        """
        with RawClient(self.server) as raw:
            raw.update_topic("TopicTest", len(QUEUES))
        for name in (
            "quickstart.Producer",
            "simple.Producer",
            "filter.TagFilterProducer",
            "ordermessage.Producer",
        ):
            self.send(name)
        if self.sends_oneway:
            wanted = len(self.topic_test) + ONEWAY_COUNT
            self.stage.play("simple.OnewayProducer")
            self.wait_until_equal(lambda: sum(self.sizes("TopicTest").values()), wanted)
        self.send_some("TopicFailing", count=4)
        self.start(BROADCAST_ONE, instance="one")
        self.start(BROADCAST_TWO, instance="two")
        for name in (QUICKSTART, PUSH, LITE_SUBSCRIBE, PULL_SCHEDULE, TAG_FILTER):
            self.start(name)
        # The example names its client instance by the millisecond: two of one millisecond would share it.
        self.start_operation(ORDERS, ORDERS_TOPIC, fail_half=False).wait_for("Consumer Started")
        self.start_operation(FAILING, "TopicFailing", fail_half=True)
        # The orderly example suspends its queue for 3 s every so often: it gets the last few messages only.
        self.orderly_start = self.sizes("TopicTest")
        group = GROUPS[ORDERLY]
        self.ask(UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=json.dumps({"groupName": group}).encode())
        for queue, offset in self.orderly_start.items():
            self.ask(
                UPDATE_CONSUMER_OFFSET,
                consumerGroup=group,
                topic="TopicTest",
                queueId=queue,
                commitOffset=offset,
            )
        self.start(ORDERLY)
        self.send_some("TopicTest", count=40)

    # --- the stage

    def send(self, name: str, *args: str) -> list[Sent]:
        """Run a producer to its end; its send results."""
        answers = self.send_results[name] = sent(self.stage.run(name.split()[0], *args))
        for answer in answers:
            if answer.topic == "TopicTest":
                self.topic_test[answer.queue, answer.offset] = answer.ids[0]
        return answers

    def send_some(self, topic: str, count: int) -> list[Sent]:
        words = ("-g", "operators", "-t", topic, "-a", "TagA", "-k", "key", "-c", str(count))
        return self.send(f"operation.Producer for {topic}", *words)

    def start(self, name: str, *args: str, instance: str | None = None) -> Act:
        act = self.acts[name] = self.stage.play(name.split()[0], *args, instance=instance)
        return act

    def start_operation(self, name: str, topic: str, *, fail_half: bool) -> Act:
        return self.start(name, "-g", GROUPS[name], "-t", topic, "-s", "*", "-f", str(fail_half).lower())

    def stop(self, name: str) -> list[Received]:
        """Shut a consumer down; all it printed. It commits one-way: the broker may store that a little later."""
        return received(self.acts[name].stop(GROUPS[name]))

    def wait_for_messages(self, name: str, count: int) -> list[Received]:
        """What a consumer printed, once it has printed at least that many messages."""
        return received(self.acts[name].wait_for("UNIQ_KEY=", count))

    @property
    def pulls_lite(self) -> bool:
        """Whether the broker knows the request with which this client's lite pull consumer pulls."""
        return self.client == "4.9" or self.server.emulates == "5.5"

    @property
    def topic_test_count(self) -> int:
        return len(self.topic_test) + (ONEWAY_COUNT if self.sends_oneway else 0)

    # --- the broker

    def ask(self, code: int, body: bytes = b"", **fields: Any) -> remoting.Reply:
        """One request that must succeed."""
        reply = self.server.call(code, body=body, **fields)
        assert reply.code == SUCCESS, f"{code} {fields}: {reply.code} {reply.remark}"
        return reply

    def sizes(self, topic: str, queues: Iterable[int] = QUEUES) -> dict[int, int]:
        """Max offset of each queue; 0 for a missing queue."""
        replies = {queue: self.ask(GET_MAX_OFFSET, topic=topic, queueId=queue) for queue in queues}
        return {queue: int(reply.fields["offset"]) for queue, reply in replies.items()}

    def committed(self, name: str, topic: str, queues: Iterable[int] = QUEUES) -> dict[int, int]:
        """The offset that the broker has stored for a consumer's group; -1 if it has none."""
        offsets = {}
        for queue in queues:
            reply = self.server.call(
                QUERY_CONSUMER_OFFSET, consumerGroup=GROUPS[name], topic=topic, queueId=queue
            )
            offsets[queue] = int(reply.fields["offset"]) if reply.code == SUCCESS else -1
        return offsets

    def pull(self, topic: str, queue: int, offset: int, count: int = 32) -> list[Stored]:
        """Messages from that offset on, as many as one pull returns; [] if there are none."""
        fields = pull_fields("inspectors", topic, queue, queueOffset=offset, maxMsgNums=count)
        reply = self.server.call(PULL_MESSAGE, BROKER_PORT, b"", 0, **fields)
        return list(stored(reply.body)) if reply.code == SUCCESS else []

    def pull_all(self, topic: str) -> list[Stored]:
        """Every message of a topic, queue by queue."""
        found: list[Stored] = []
        for queue in QUEUES:
            offset = 0
            while some := self.pull(topic, queue, offset):
                found += some
                offset = some[-1].offset + 1
        return found

    @staticmethod
    def wait_until_equal(ask: Callable[[], T], expected: T, timeout: float = 30.0) -> None:
        """Returns when the answer is the expected one; clients commit every 5 s, for the first time after 10 s."""
        deadline = time.monotonic() + timeout
        while (found := ask()) != expected:
            assert time.monotonic() < deadline, f"still {found}, not {expected}, after {timeout:g} s"
            time.sleep(0.1)
