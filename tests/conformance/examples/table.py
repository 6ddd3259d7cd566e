"""Every class with a main in the two example jars: what it prints if it succeeds, or why it is not played.

Jars: 4.7.0 for client 4.9.8, and 5.5.0.
"""

from dataclasses import dataclass

NOT_PLAYED = {
    **dict.fromkeys(
        (f"benchmark.{name}" for name in ("BatchProducer", "Consumer", "Producer", "TransactionProducer")),
        "measures: bench/java_loads.py",
    ),
    "benchmark.timer.TimerConsumer": "measures without end; timed messages are judged by schedule.Timer...",
    "benchmark.timer.TimerProducer": "measures without end; timed messages are judged by schedule.Timer...",
    "simple.AclClient": "has its author's key built in; the same hook signs in test_access.py",
    "simple.PullConsumerTest": "names its author's broker",
    "tracemessage.OpenTracingProducer": "wants a tracer of another project",
    "tracemessage.OpenTracingPushConsumer": "wants a tracer of another project",
    "tracemessage.OpenTracingTransactionProducer": "wants a tracer of another project",
}


@dataclass(frozen=True)
class Row:
    """An example, and what it prints how often if it succeeds."""

    name: str
    pattern: str | None
    count: int = 0
    """0 for a consumer of all that its topic has."""
    clients: tuple[str, ...] = ("4.9", "5.5")
    topic: str = ""
    """A producer sends `count` messages to it."""
    group: str = ""
    """This consumer is stopped, and has then committed all of its topic."""
    words: tuple[str, ...] = ()
    instance: str | None = None

    def __str__(self) -> str:
        return self.name


SENT = r"sendStatus=SEND_OK, msgId="
RECEIVED = r"Receive New Messages: \[MessageExt"
REPLIED = r"request to <RequestTopic> cost: \d+ replyMessage: "
MESSAGE = "UNIQ_KEY="
"""Of every message that is printed."""
NEW = ("5.5",)
ORDERS = "TopicTestjjj"
PRODUCERS = (
    Row("quickstart.Producer", SENT, 1000, topic="TopicTest"),
    Row("simple.Producer", SENT, 128, topic="TopicTest"),
    Row("simple.OnewayProducer", None, 100, NEW, topic="TopicTest"),
    Row("simple.AsyncProducer", r"^\d+ +OK \w+", 100, topic="Jodie_topic_1023"),
    Row("filter.TagFilterProducer", SENT, 60, topic="TagFilterTest"),
    Row("ordermessage.Producer", SENT, 100, topic=ORDERS),
    Row(
        "operation.Producer",
        SENT,
        4,
        topic="TopicFailing",
        words=("-g", "operators", "-t", "TopicFailing", "-a", "TagA", "-k", "key", "-c", "4"),
    ),
    Row("batch.SimpleBatchProducer", None, 3, topic="BatchTest"),
    Row("batch.SplitBatchProducer", None, 100_000, topic="BatchTest"),
)
CONSUMERS = (
    # The 2nd, 4th and 6th delivery fail: four messages need seven, whichever they are.
    Row(
        "operation.Consumer",
        MESSAGE,
        7,
        topic="TopicFailing",
        group="failing_half",
        words=("-g", "failing_half", "-t", "TopicFailing", "-s", "*", "-f", "true"),
    ),
    Row("quickstart.Consumer", MESSAGE, topic="TopicTest", group="please_rename_unique_group_name_4"),
    Row("simple.PushConsumer", MESSAGE, topic="TopicTest", group="CID_JODIE_1"),
    Row("simple.PullScheduleService", "pullStatus=FOUND", 4, topic="TopicTest", group="GroupName1"),
    Row("broadcast.PushConsumer", MESSAGE, topic="TopicTest", instance="one"),
    Row("broadcast.PushConsumer", MESSAGE, topic="TopicTest", instance="two"),
    Row(
        "filter.TagFilterConsumer",
        MESSAGE,
        40,
        topic="TagFilterTest",
        group="please_rename_unique_group_name",
    ),
    # It suspends its queue for 3 s at every fifth message.
    Row("ordermessage.Consumer", MESSAGE, 5),
    Row(
        "operation.Consumer",
        MESSAGE,
        topic=ORDERS,
        group="readers_of_orders",
        words=tuple(f"-g readers_of_orders -t {ORDERS} -s * -f false".split()),
    ),
)
REST = (
    Row("simple.LitePullConsumerSubscribe", MESSAGE, topic="TopicTest", group="lite_pull_consumer_test"),
    # Of two queues, from their tenth message on.
    Row("simple.LitePullConsumerAssign", MESSAGE, 500, group="please_rename_unique_group_name"),
    Row("namespace.ProducerWithNamespace", r"send success, misId is:", 100),
    Row("namespace.PushConsumerWithNamespace", r"MsgId is:\w+, reconsumeTimes is:0$", 100),
    # It stays 20 s at the end of each queue.
    Row("namespace.PullConsumerWithNamespace", r"^Topic is:\w+, msgId is:\w+$", 25),
    Row("tracemessage.TraceProducer", SENT, 128),
    Row("tracemessage.TracePushConsumer", RECEIVED, 128),
    Row("openmessaging.SimplePushConsumer", r"^Consumer startup OK", 1),
    Row("openmessaging.SimpleProducer", r"^Send \w+ message OK", 3),
    # Of three: the last is sent one-way, and its producer shuts down right after it.
    Row("openmessaging.SimplePushConsumer", r"^Received one message: \w+", 2),
    Row("openmessaging.SimplePullConsumer", r"^Received one message: \w+", 1),
    Row("filter.SqlFilterConsumer", r"^Consumer Started", 1),
    Row("filter.SqlFilterProducer", SENT, 10),
    Row("filter.SqlFilterConsumer", RECEIVED, 1),
    Row("transaction.TransactionProducer", "sendStatus=SEND_OK", 10),
    Row("rpc.ResponseConsumer", r"^Consumer Started", 1),
    Row("rpc.RequestProducer", REPLIED, 1),
    Row("rpc.AsyncRequestProducer", REPLIED, 1),
    # Started before them, because it prints how late they are.
    Row("schedule.ScheduledMessageConsumer", "", 0, NEW),
    Row("schedule.ScheduledMessageProducer", SENT, 100, NEW),
    Row("schedule.ScheduledMessageConsumer", r"Receive message\[msgId=\w+ \d+ +ms later\]", 100, NEW),
    Row("schedule.TimerMessageConsumer", "", 0, NEW),
    Row("schedule.TimerMessageProducer", "sendStatus=SEND_OK", 10, NEW),
    Row("schedule.TimerMessageConsumer", r"Receive message\[msgId=\S+ -?\d+ +ms later\]", 10, NEW),
    Row("simple.PopConsumer", RECEIVED, 5, NEW),
    Row("lmq.LMQProducer", SENT, 128, NEW),
    Row("lmq.LMQPushPopConsumer", RECEIVED, 3, NEW),
    Row("lmq.LMQPushConsumer", RECEIVED, 128, NEW),
    Row("lmq.LMQPullConsumer", r"Pull New Messages: MessageExt", 32, NEW),
    Row("simple.LitePullConsumerAssignWithSubExpression", MESSAGE, 100, NEW),
    # That of 4.7.0 reads the topic named after the broker, which is empty.
    Row("simple.PullConsumer", r"pullStatus=NO_NEW_MSG", 1, ("4.9",)),
    Row("simple.TestProducer", r"^MessageExt \[.*topic='TopicTest1'", 1, ("4.9",)),
)
"""Played one after the other, where client and broker are of one line."""
COMMITS = "simple.PullConsumer"
"""That of 5.5.0 prints nothing: it commits what it read of TopicTest."""
