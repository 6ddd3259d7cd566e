"""Names with a namespace prefix: the official texts, and what the user of a client with a namespace sees."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client import LitePullConsumer, MessageQueue, Producer, RetryLater, select_by_hash
from pocketmq.client.values.message import Message, MessageExt
from pocketmq.client.values.namespaces import Namespace, namespace_of_endpoint, without_namespace

from client_vectors import feature_vectors
from client_waits import Seen, consuming, send
from waiting import until


def test_names_are_wrapped_as_by_the_official_client() -> None:
    rows = feature_vectors("wrap")
    assert len(rows) > 50
    for (namespace, name), expected in rows:
        assert Namespace(namespace).wrap(name or "") == expected, (namespace, name)


def test_names_are_unwrapped_as_by_the_official_client() -> None:
    for (namespace, name), expected in feature_vectors("unwrap"):
        assert Namespace(namespace).unwrap(name or "") == expected, (namespace, name)


def test_traces_leave_out_any_namespace() -> None:
    for (name,), expected in feature_vectors("without"):
        assert without_namespace(name or "") == expected, name


def test_an_endpoint_may_name_the_namespace() -> None:
    for (endpoint,), expected in feature_vectors("endpoint"):
        assert namespace_of_endpoint(endpoint) == expected, endpoint
    assert namespace_of_endpoint(None) is None
    producer = Producer("p", namesrv_addr="http://MQ_INST_1_a.localhost:9876")
    assert producer.group == "MQ_INST_1_a%p"


@given(
    st.sampled_from(["", "N", "a-b"]),
    st.sampled_from(["", "%RETRY%", "%DLQ%"]),
    st.from_regex(r"[a-z_]{1,9}\Z"),
)
def test_unwrapping_undoes_wrapping(namespace: str, prefix: str, name: str) -> None:
    space = Namespace(namespace)
    queue = MessageQueue(prefix + name, "b", 1)
    assert space.unwrap(space.wrap(prefix + name)) == prefix + name
    assert space.wrap(space.wrap(prefix + name)) == space.wrap(prefix + name)
    assert space.unwrap_queue(space.wrap_queue(queue)) == queue


async def test_only_brokers_see_the_namespace(namesrv_addr: str) -> None:
    await send(namesrv_addr, "N%T", 1)
    await send(namesrv_addr, "T", 1)
    seen, assigned = Seen(), []

    async def listener(message: MessageExt) -> None:
        await seen(message)
        if message.body == b"again" and message.reconsume_times == 0:
            raise RetryLater(delay_level=1)

    async with (
        Producer("p", namesrv_addr=namesrv_addr, namespace="N") as producer,
        consuming(namesrv_addr, listener, namespace="N", on_assigned=assigned.extend) as consumer,
    ):
        await consumer.wait_assigned()
        queues = await producer.queues("T")
        results = [
            await producer.send("T", b"one"),
            await producer.send("T", b"two", queue=queues[1]),
            await producer.send("T", b"three", selector=select_by_hash, arg="x"),
            await producer.send_nowait("T", b"four"),
            *(await producer.send_batch([Message("T", b"five"), Message("T", b"six")])),
        ]
        await producer.send_oneway("T", b"again")
        await until(lambda: seen.bodies.count(b"again") == 2)
        await until(lambda: len(set(seen.bodies)) == 8)
        lag = await consumer.lag()
        assignment = consumer.assignment()
        groups = (producer.group, consumer.group)
    assert groups == ("N%p", "N%g")
    assert {message.topic for message in seen.messages} == {"T"}
    assert {message.properties["INSTANCE_ID"] for message in seen.messages if message.body == b"one"} == {"N"}
    assert {queue.topic for queue in (*assignment, *lag, *assigned, *queues)} == {"T"}
    assert {result.queue.topic for result in results} == {"T"}
    assert len(assignment) == 4


async def test_lite_pull_with_a_namespace_seeks_and_commits_by_the_users_names(namesrv_addr: str) -> None:
    await send(namesrv_addr, "N%T", 8)
    async with LitePullConsumer("g", namesrv_addr=namesrv_addr, namespace="N") as consumer:
        queues = await consumer.queues("T")
        consumer.assign(queues)
        for queue in queues:
            await consumer.seek_to_begin(queue)
        found: list[MessageExt] = []
        async with asyncio.timeout(30):
            while len(found) < 8:
                found += await consumer.poll(1000)
        await consumer.commit()
        assert consumer.assignment() == queues
        assert sum([await consumer.committed(queue) for queue in queues]) == 8
        with pytest.raises(Exception, match="not in assigned list"):
            await consumer.seek(MessageQueue("T", "elsewhere", 0), 0)
    assert {queue.topic for queue in queues} == {"T"} == {message.topic for message in found}
