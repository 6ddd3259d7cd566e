"""Every class with a main in the two example jars: which test or measurement runs it, or why none does.

`ELSEWHERE` names the file, which must name the class; `REST` is played by `test_5_the_rest.py` itself. Jars: 4.7.0 for
client 4.9.8, and 5.5.0.
"""

from dataclasses import dataclass

PRODUCERS, BATCHES = "tests/conformance/examples/world.py", "tests/conformance/examples/test_2_batches.py"
WAITING, RATIO = "tests/conformance/waiting/test_waiting_examples.py", "bench/java_loads.py"

_FILES = {
    BATCHES: (*("batch.SimpleBatchProducer", "batch.SplitBatchProducer"),),
    RATIO: (
        *("benchmark.BatchProducer", "benchmark.Consumer", "benchmark.Producer"),
        *("benchmark.TransactionProducer",),
    ),
    PRODUCERS: (
        *("broadcast.PushConsumer", "filter.TagFilterConsumer", "filter.TagFilterProducer"),
        *("operation.Consumer", "operation.Producer", "ordermessage.Consumer", "ordermessage.Producer"),
        *("quickstart.Consumer", "quickstart.Producer", "simple.LitePullConsumerAssign"),
        *("simple.LitePullConsumerSubscribe", "simple.OnewayProducer", "simple.Producer"),
        *("simple.PullScheduleService", "simple.PushConsumer"),
    ),
    "tests/conformance/requests/test_sql.py": (*("filter.SqlFilterConsumer", "filter.SqlFilterProducer"),),
    "tests/conformance/waiting/test_pop.py": (*("lmq.LMQPushPopConsumer", "simple.PopConsumer"),),
    WAITING: (
        *("rpc.AsyncRequestProducer", "rpc.RequestProducer", "rpc.ResponseConsumer"),
        *("schedule.TimerMessageConsumer", "schedule.TimerMessageProducer"),
        *("transaction.TransactionProducer",),
    ),
    "tests/conformance/examples/test_1_producers.py": (*("simple.AsyncProducer",),),
}
ELSEWHERE = {name: file for file, names in _FILES.items() for name in names}

NOT_PLAYED = {
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
    """An example, and what it prints how often if it succeeds. Producers are listed before their consumers."""

    name: str
    pattern: str
    count: int
    clients: tuple[str, ...] = ("4.9", "5.5")

    def __str__(self) -> str:
        return self.name


SENT = r"sendStatus=SEND_OK, msgId="
RECEIVED = r"Receive New Messages: \[MessageExt"
NEW = ("5.5",)
REST = (
    Row("namespace.ProducerWithNamespace", r"send success, misId is:", 100),
    Row("namespace.PushConsumerWithNamespace", r"MsgId is:\w+, reconsumeTimes is:0$", 100),
    # It stays 20 s at the end of each queue.
    Row("namespace.PullConsumerWithNamespace", r"^Topic is:\w+, msgId is:\w+$", 25),
    Row("tracemessage.TraceProducer", SENT, 128),
    Row("tracemessage.TracePushConsumer", RECEIVED, 128),
    Row("openmessaging.SimplePushConsumer", r"^Consumer startup OK", 1),
    Row("openmessaging.SimpleProducer", r"^Send \w+ message OK", 3),
    Row("openmessaging.SimplePullConsumer", r"^Received one message: \w+", 1),
    Row(
        "schedule.ScheduledMessageConsumer", r"^", 0, NEW
    ),  # started before them, because it prints how late they are
    Row("schedule.ScheduledMessageProducer", SENT, 100, NEW),
    Row("schedule.ScheduledMessageConsumer", r"Receive message\[msgId=\w+ \d+ +ms later\]", 100, NEW),
    Row("lmq.LMQProducer", SENT, 128, NEW),
    Row("lmq.LMQPushConsumer", RECEIVED, 128, NEW),
    Row("lmq.LMQPullConsumer", r"Pull New Messages: MessageExt", 32, NEW),
    Row("simple.LitePullConsumerAssignWithSubExpression", r"UNIQ_KEY=", 100, NEW),
    # That of 4.7.0 reads the topic named after the broker, which is empty.
    Row("simple.PullConsumer", r"pullStatus=NO_NEW_MSG", 1, ("4.9",)),
    Row("simple.TestProducer", r"^MessageExt \[.*topic='TopicTest1'", 1, ("4.9",)),
)
COMMITS = "simple.PullConsumer"
"""That of 5.5.0 prints nothing: it commits what it read of TopicTest."""
