"""The official Python client; the words and the lines of every language's program are listed in `clients.py`.

    python talk.py ENDPOINT plain|tls USER PASSWORD PREFIX STEP...

With `here` as ENDPOINT the broker runs in this process too, beside the client's own gRPC library.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

SECONDS = 60
FAILURES = 3
"""After so many failed receives a consumer gives up. One may fail: this client does not wait for its settings."""


class Checker(TransactionChecker):  # type: ignore[misc]  # the package has no types
    def check(self, message: Any) -> Any:
        return TransactionResolution.COMMIT


class Listener(MessageListener):  # type: ignore[misc]
    """Notes each delivery as body and attempt. The message `refused` fails the first time, or `always`."""

    def __init__(self, refused: str = "", *, always: bool = False, says: str = "") -> None:
        self.seen: list[tuple[str, int]] = []
        self._refused = refused
        self._always = always
        self._says = says
        self._lock = threading.Lock()

    def consume(self, message: Any) -> Any:
        body = message.body.decode()
        with self._lock:
            is_first = body not in [seen for seen, _ in self.seen]
            self.seen.append((body, message.delivery_attempt))
            if self._says:
                words = (message.tag, ",".join(sorted(message.keys)), message.properties.get("a"))
                print(self._says, body, message.delivery_attempt, *words, flush=True)
        is_refused = body == self._refused and (is_first or self._always)
        return ConsumeResult.FAILURE if is_refused else ConsumeResult.SUCCESS


class Talk:
    def __init__(self, endpoint: str, transport: str, user: str, password: str, prefix: str) -> None:
        credentials = Credentials() if user == "-" else Credentials(user, password)
        self._config = ClientConfiguration(endpoint, credentials)
        self._is_tls = transport == "tls"
        self._prefix = prefix

    def name(self, word: str) -> str:
        return f"{self._prefix}_{word}"

    @contextlib.contextmanager
    def producer(self, topic: str) -> Any:
        producer = Producer(self._config, (topic,), checker=Checker(), tls_enable=self._is_tls)
        producer.startup()
        try:
            yield producer
        finally:
            producer.shutdown()

    def message(self, topic: str, body: str, **more: Any) -> Any:
        message = Message()
        message.topic, message.body, message.tag, message.keys = topic, body.encode(), "A", f"k{body}"
        message.add_property("a", body)
        for key, value in more.items():
            setattr(message, key, value)
        return message

    def send(self, topic: str, *bodies: str, **more: Any) -> None:
        with self.producer(topic) as producer:
            for body in bodies:
                producer.send(self.message(topic, body, **more))

    def receive(self, topic: str, group: str, count: int, refused: str = "") -> list[str]:
        """The bodies as they arrive; the refused one is hidden for ten seconds the first time."""
        consumer = SimpleConsumer(
            self._config, self.name(group), {topic: FilterExpression()}, 5, tls_enable=self._is_tls
        )
        consumer.startup()
        bodies: list[str] = []
        failures = 0
        end = time.time() + SECONDS
        try:
            while len(bodies) < count and time.time() < end:
                try:
                    messages = consumer.receive(4, 20)
                except Exception:
                    failures += 1
                    if failures == FAILURES:
                        raise
                    time.sleep(1)
                    continue
                for message in messages:
                    body = message.body.decode()
                    if body == refused and message.delivery_attempt == 1:
                        consumer.change_invisible_duration(message, 10)
                        continue
                    assert message.properties["a"] == body
                    consumer.ack(message)
                    bodies.append(body)
        finally:
            consumer.shutdown()
        return bodies

    def pushed(self, topic: str, group: str, listener: Listener, count: int) -> None:
        consumer = PushConsumer(
            self._config,
            self.name(group),
            listener,
            {topic: FilterExpression()},
            tls_enable=self._is_tls,
        )
        consumer.startup()
        end = time.time() + SECONDS
        while len(listener.seen) < count and time.time() < end:
            time.sleep(0.1)
        consumer.shutdown()

    # -- the steps

    def step_send(self) -> list[str]:
        bodies = [f"m{number}" for number in range(10)]
        self.send(self.name("Normal"), *bodies)
        return bodies

    def step_simple(self) -> list[str]:
        return sorted(self.receive(self.name("Normal"), "simple", 10, refused="m3"))

    def step_push(self) -> list[str]:
        listener = Listener("m5")
        self.pushed(self.name("Normal"), "push", listener, 11)
        return sorted(f"{body}/{attempt}" for body, attempt in listener.seen)

    def step_fifo(self) -> list[str]:
        self.send(self.name("Fifo"), *(f"f{number}" for number in range(6)), message_group="one")
        return self.receive(self.name("Fifo"), "fifo", 6)

    def step_order(self) -> list[str]:
        self.send(self.name("Order"), *(f"f{number}" for number in range(6)), message_group="one")
        listener = Listener("f3")
        self.pushed(self.name("Order"), "order", listener, 7)
        return [body for body, _ in listener.seen]

    def step_transaction(self) -> list[str]:
        topic = self.name("Trans")
        with self.producer(topic) as producer:
            dropped = producer.begin_transaction()
            producer.send(self.message(topic, "dropped"), dropped)
            dropped.rollback()
            kept = producer.begin_transaction()
            producer.send(self.message(topic, "committed"), kept)
            kept.commit()
            return self.receive(topic, "trans", 1)

    def step_check(self) -> list[str]:
        topic = self.name("Trans")
        with self.producer(topic) as producer:
            producer.send(self.message(topic, "forgotten"), producer.begin_transaction())
            return self.receive(topic, "trans", 1)

    def step_delay(self) -> list[str]:
        start = time.time()
        self.send(self.name("Delay"), "d", delivery_timestamp=int(start) + 5)
        bodies = self.receive(self.name("Delay"), "delay", 1)
        return [*bodies, "late" if time.time() - start > 2.9 else "early"]

    def step_recall(self) -> list[str]:
        topic = self.name("Delay")
        due = int(time.time()) + 6
        with self.producer(topic) as producer:
            receipt = producer.send(self.message(topic, "recalled", delivery_timestamp=due))
            producer.send(self.message(topic, "kept", delivery_timestamp=due + 1))
            same = producer.recall_message(topic, receipt.recall_handle) == receipt.message_id
        return ["same" if same else "other", *self.receive(topic, "delay", 1)]

    def step_dead(self) -> list[str]:
        self.send(self.name("Bad"), "bad")
        self.pushed(self.name("Bad"), "bad", Listener("bad", always=True, says="TRIED"), sys.maxsize)
        return []

    def step_deadfifo(self) -> list[str]:
        self.send(self.name("BadFifo"), "bad", message_group="one")
        self.pushed(self.name("BadFifo"), "badfifo", Listener("bad", always=True, says="TRIED"), sys.maxsize)
        return []

    def step_member(self) -> list[str]:
        self.pushed(self.name("Normal"), "member", Listener(says="GOT"), sys.maxsize)
        return []

    def run(self, step: str) -> None:
        do: Callable[[], list[str]] = getattr(self, f"step_{step}")
        try:
            print(step.upper(), *do(), flush=True)
        except Exception as error:
            print(step.upper(), "refused", " ".join(str(error).split()), flush=True)


def prepared_server(stack: contextlib.ExitStack) -> Any:
    from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
    from pocketmq.protocol.bodies.topic_config import TopicConfig
    from pocketmq.testing import EmbeddedServer

    server = stack.enter_context(EmbeddedServer(grpc_port=0))
    assert server.requests.count() == 0  # the log begins at its first use
    for name, kind in (("Normal", "NORMAL"), ("Fifo", "FIFO"), ("Order", "FIFO"), ("Trans", "TRANSACTION")):
        topic = TopicConfig(topic_name=f"here_{name}", attributes={"+message.type": kind})
        server.call(server.broker.topics.update, topic)
    for name in ("fifo", "order"):
        group = SubscriptionGroupConfig(group_name=f"here_{name}", consume_message_orderly=True)
        server.call(server.broker.groups.update, group)
    return server


def main(endpoint: str, transport: str, user: str, password: str, prefix: str, *steps: str) -> None:
    with contextlib.ExitStack() as stack:
        if endpoint == "here":
            server = prepared_server(stack)
            endpoint = server.grpc_endpoint
        talk = Talk(endpoint, transport, user, password, prefix)
        for step in steps:
            talk.run(step)
        if prefix == "here":
            print("LOGGED", server.requests.count(code="SendMessage") > 0)
    print("DONE", flush=True)


main(*sys.argv[1:])
