"""Two tests in a row on one server, with the same names: the second works, and sees nothing of the first.

Each act below is one such test: it uses a feature in full, and leaves something behind. They run in all pairs. Time is
virtual: `pass_time` lets what is due happen.
"""

import itertools
from collections.abc import Callable

import pytest
from pocketmq.broker.errors import Refusal
from pocketmq.protocol.bodies.client import (
    LockBatchRequestBody,
    LockBatchResponseBody,
    SetMessageRequestModeRequestBody,
)
from pocketmq.protocol.bodies.security import UserInfo
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.record import Record, decode_records
from pocketmq.protocol.requests.admin import UpdateBrokerConfig
from pocketmq.protocol.requests.membership import LockBatchMq
from pocketmq.protocol.requests.offset import QueryConsumerOffset
from pocketmq.protocol.requests.pop import PopMessage, SetMessageRequestMode
from pocketmq.protocol.requests.pull import QueryMessage, ViewMessageById
from pocketmq.protocol.requests.security import AuthCreateUser, AuthListUser
from pocketmq.protocol.requests.send import EndTransaction
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.testing import EmbeddedServer, RocketMQ

from testing_acts import TOPIC, commit, heartbeat, pass_time, pull_request, send_half, send_timed, texts

GROUP = "billing"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"


# -- the acts


def delayed(mq: RocketMQ) -> None:
    mq.send(TOPIC, "in a second", delay_level=1)
    assert texts(mq) == []
    pass_time(mq, 1500)
    assert texts(mq) == ["in a second"]
    mq.send(TOPIC, "left over", delay_level=2)


def timed(mq: RocketMQ) -> None:
    send_timed(mq, "in two seconds", 2000)
    assert texts(mq) == []
    pass_time(mq, 5000)
    assert texts(mq) == ["in two seconds"]
    send_timed(mq, "left over", 1500)


def pop(mq: RocketMQ) -> None:
    """A popped message that is not acknowledged comes again from the retry topic."""
    mq.send(TOPIC, "popped", queue_id=0)

    def popped() -> list[str]:
        request = PopMessage(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=-1,
            max_msg_nums=8,
            invisible_time=2000,
            born_time=mq.server.clock.now_ms(),
            exp_type="TAG",
            exp="*",
        )
        try:
            return [bytes(record.body).decode() for record in records(mq.server.exchange(request)[1])]
        except Refusal as refusal:
            assert refusal.code in (ResponseCode.NO_MESSAGE, ResponseCode.POLLING_TIMEOUT)  # noqa: PT017
            return []

    assert popped() == ["popped"]
    assert popped() == []
    pass_time(mq, 10_000)
    assert popped() == ["popped"], "it came again"


def transaction(mq: RocketMQ) -> None:
    half = send_half(mq, "committed")
    assert texts(mq) == []
    end = EndTransaction(
        producer_group="producers",
        tran_state_table_offset=half.queue_offset,
        commit_log_offset=int((half.msg_id or "")[16:], 16),
        commit_or_rollback=8,
        msg_id="x",
    )
    mq.server.request(end)
    assert texts(mq) == ["committed"]
    assert half.queue_offset == 0
    send_half(mq, "left over")
    assert len(mq.messages(HALF_TOPIC)) == 2


def ordered(mq: RocketMQ) -> None:
    heartbeat(mq, TOPIC, GROUP)
    queue = MessageQueue(TOPIC, "broker-a", 0)
    for client_id, held in (("one", [queue]), ("two", [])):
        body = LockBatchRequestBody(consumer_group=GROUP, client_id=client_id, mq_set=[queue]).encode()
        _, answer = mq.server.exchange(LockBatchMq(), body)
        assert LockBatchResponseBody.decode(answer).lock_ok_mq_set == held
    assert mq.send(TOPIC, "first", queue_id=0).queue_offset == 0
    with pytest.raises(Refusal):
        mq.server.request(QueryConsumerOffset(consumer_group=GROUP, topic="other", queue_id=0))
    commit(mq, TOPIC, GROUP, 1)


def broadcasting(mq: RocketMQ) -> None:
    heartbeat(mq, TOPIC, GROUP, model="BROADCASTING")
    mq.send(TOPIC, "to all", queue_id=0)
    reply, body = mq.server.exchange(pull_request(TOPIC, GROUP))
    assert [bytes(record.body) for record in records(body)] == [b"to all"]
    assert reply.next_begin_offset == 1
    clients = mq.server.broker.first_position.broadcasts._clients
    assert mq.server.call(lambda: [*clients[TOPIC, GROUP]]) == ["one"]


def users(mq: RocketMQ) -> None:
    assert b"alice" not in mq.server.exchange(AuthListUser())[1]
    mq.server.request(
        AuthCreateUser(username="alice"), UserInfo(username="alice", password="secret-12").encode()
    )
    assert b"alice" in mq.server.exchange(AuthListUser())[1]


def settings_and_modes(mq: RocketMQ) -> None:
    config = mq.server.broker.config
    assert (config.store.max_message_size, config.auto_create_topic_enable) == (4_194_304, True)
    assert (config.broker_permission, config.not_applied) == (6, {})
    changes = b"maxMessageSize=1000\nautoCreateTopicEnable=false\nbrokerPermission=4\naclEnable=true\n"
    mq.server.request(UpdateBrokerConfig(), changes)
    modes = mq.server.broker.membership.request_modes
    assert modes.find(TOPIC, GROUP) is None
    mode = SetMessageRequestModeRequestBody(topic=TOPIC, consumer_group=GROUP, mode="POP")
    mq.server.request(SetMessageRequestMode(), mode.encode())


def keyed(mq: RocketMQ) -> None:
    """A query by key finds the message of this test only, and its id leads to it."""
    mq.send(TOPIC, "found by key", keys="k-1")
    query = QueryMessage(topic=TOPIC, key="k-1", max_num=10, begin_timestamp=0, end_timestamp=1 << 61)
    _, body = mq.server.exchange(query)
    assert [bytes(record.body) for record in records(body)] == [b"found by key"]


ACTS: dict[str, Callable[[RocketMQ], None]] = {
    act.__name__: act
    for act in (
        delayed, timed, pop, transaction, ordered, broadcasting, users, settings_and_modes, keyed
    )
}  # fmt: skip


# -- what they use


def records(body: bytes) -> list[Record]:
    return list(decode_records(body))


# -- the pairs


SERVER = {"virtual_time": True, "authenticationMetadataProvider": "LocalAuthenticationMetadataProvider"}


def play(server: EmbeddedServer, act: Callable[[RocketMQ], None]) -> None:
    mq = RocketMQ(server)
    assert (mq.offsets(TOPIC, GROUP), [*mq.locks]) == ({}, [])
    assert server.call(server.broker.membership.consumers.get, GROUP) is None
    mq.topic(TOPIC, queues=2)
    mq.group(GROUP)
    act(mq)


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.product(ACTS, ACTS)), ids=lambda name: name.replace("_", "-")
)
def test_the_second_test_works_and_sees_nothing_of_the_first(
    server: EmbeddedServer, first: str, second: str
) -> None:
    play(server, ACTS[first])
    server.reset()
    play(server, ACTS[second])
    server.reset()


def test_what_was_in_flight_at_a_mark_goes_on_after_each_reset(server: EmbeddedServer) -> None:
    """A module's fixture may leave something to come: each of its tests sees it."""
    mq = RocketMQ(server)
    mq.topic(TOPIC, queues=1)
    mq.send(TOPIC, "delayed", delay_level=1)
    send_timed(mq, "timed", 2000)
    mark = server.mark()
    for _ in range(3):
        pass_time(mq, 6000)
        assert sorted(texts(mq)) == ["delayed", "timed"]
        mq.send(TOPIC, "of this test", delay_level=1)
        server.reset(mark)
    pass_time(mq, 6000)
    assert sorted(texts(mq)) == ["delayed", "timed"]
    server.reset()


def test_a_message_id_of_an_earlier_test_finds_nothing(server: EmbeddedServer) -> None:
    mq = RocketMQ(server)
    sent = mq.send(TOPIC, "one")
    view = ViewMessageById(offset=int((sent.msg_id or "")[16:], 16))
    assert records(server.exchange(view)[1])[0].body == b"one"
    server.reset()
    with pytest.raises(Refusal):
        server.exchange(view)
