"""The table of handlers: declarations that fail at import, and handlers that a port leaves out."""

from typing import Any

import pytest
from pocketmq.broker.handler_modules import HANDLER_MODULES
from pocketmq.broker.network.dispatch import BROKER, CallWithBody, Handlers
from pocketmq.protocol.bodies.client import HeartbeatData, LockBatchRequestBody
from pocketmq.protocol.bodies.routes import KVTable
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.name_server import GetAllTopicListFromNameServer
from pocketmq.protocol.requests.offset import GetMaxOffset, GetMinOffset, OffsetReply
from pocketmq.protocol.requests.pop import PollingInfo
from pocketmq.protocol.requests.send import AnySend, SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import Command


def answer(broker: Any, request: GetMaxOffset) -> OffsetReply:
    return OffsetReply(offset=0)


def test_a_second_handler_of_a_code_fails() -> None:
    handlers = Handlers("test")
    handlers.handles(GetMaxOffset)(answer)
    with pytest.raises(TypeError, match="code 30 has a handler already"):
        handlers.handles(GetMaxOffset)(answer)


def test_a_handler_of_another_request_fails() -> None:
    with pytest.raises(TypeError, match="answer does not take a GetMinOffset"):
        Handlers("test").handles(GetMinOffset)(answer)


def test_a_handler_with_too_many_arguments_fails() -> None:
    def greedy(broker: Any, request: GetMaxOffset, call: Any, more: Any) -> None:
        """Needs a part that no broker has."""

    with pytest.raises(TypeError, match="a handler takes"):
        Handlers("test").handles(GetMaxOffset)(greedy)


def test_one_function_may_serve_the_spellings_of_a_request() -> None:
    def store(broker: Any, request: AnySend) -> None:
        """Stores either."""

    handlers = Handlers("test")
    handlers.handles(SendMessage, SendMessageV2)(store)
    assert set(handlers.table) == {10, 310}
    assert handlers.table[10].call_type is None


class Counter:
    """A part."""


def test_a_line_and_the_fast_port_leave_out_what_they_do_not_serve() -> None:
    def count(counter: Counter, request: PollingInfo | GetMinOffset) -> None:
        """Serves both."""

    handlers = Handlers("test")
    handlers.handles(PollingInfo)(count)
    handlers.handles(GetMinOffset, main_port=True)(count)
    assert set(handlers.of_line(5).table) == {31, PollingInfo.code}
    assert set(handlers.of_line(4).table) == {31}
    assert set(handlers.without_main_port_only().table) == {PollingInfo.code}


def test_the_fast_port_pulls_and_pops_nothing() -> None:
    """Those that official brokers do not register there: pulls, pops, peeks, notifications, and who waits."""
    assert HANDLER_MODULES
    left_out = set(BROKER.table) - set(BROKER.without_main_port_only().table)
    assert left_out == {11, 361, 200050, 200052, 200054, 200055}


def test_a_handler_that_reads_another_body_than_the_declared_one_fails() -> None:
    def beat(counter: Counter, request: HeartBeat, call: CallWithBody[LockBatchRequestBody]) -> None:
        """Reads what no heartbeat has."""

    with pytest.raises(TypeError, match="HEART_BEAT has HeartbeatData"):
        Handlers("test").handles(HeartBeat)(beat)


def test_a_handler_that_returns_another_body_than_the_declared_one_fails() -> None:
    def topics(counter: Counter, request: GetAllTopicListFromNameServer) -> KVTable:
        """Answers with what the caller does not expect."""
        return KVTable()

    with pytest.raises(TypeError, match="is answered with TopicList"):
        Handlers("test").handles(GetAllTopicListFromNameServer)(topics)


def test_a_body_is_read_in_its_declared_form() -> None:
    def beat(counter: Counter, request: HeartBeat, call: CallWithBody[HeartbeatData]) -> None:
        """Reads the declared body."""

    handlers = Handlers("test")
    handlers.handles(HeartBeat)(beat)
    make_call: Any = handlers.table[34].call_type
    assert make_call(None, Command(34, body=b'{"clientID":"c"}')).read_body() == HeartbeatData(client_id="c")
    with pytest.raises(BodyError, match="HeartbeatData: the body is missing"):
        make_call(None, Command(34)).read_body()


def test_binding_puts_the_part_beside_its_function_and_fails_where_one_is_missing() -> None:
    def count(counter: Counter, request: GetMaxOffset) -> None:
        """Takes its part by type."""

    handlers, counter = Handlers("test"), Counter()
    handlers.handles(GetMaxOffset)(count)
    assert handlers.bind("another part", counter).table[30].part is counter
    assert handlers.table[30].part is None
    with pytest.raises(TypeError, match="count needs a Counter"):
        handlers.bind("another part")
