"""The table of handlers: what fails at import, and what a port may leave out."""

from typing import Any

import pytest
from pocketmq.broker.network.dispatch import Handlers
from pocketmq.protocol.requests.offset import GetMaxOffset, GetMinOffset, OffsetReply
from pocketmq.protocol.requests.send import AnySend, SendMessage, SendMessageV2


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
        """Takes what nobody gives."""

    with pytest.raises(TypeError, match="a handler takes"):
        Handlers("test").handles(GetMaxOffset)(greedy)


def test_one_function_may_serve_the_spellings_of_a_request() -> None:
    def store(broker: Any, request: AnySend) -> None:
        """Stores either."""

    handlers = Handlers("test")
    handlers.handles(SendMessage, SendMessageV2)(store)
    assert set(handlers.table) == {10, 310}
    assert not handlers.table[10].wants_call
    assert not handlers.table[10].is_coroutine


def test_a_port_can_leave_codes_out() -> None:
    handlers = Handlers("test")
    handlers.handles(GetMaxOffset)(answer)
    assert handlers.without(30).table == {}
    assert set(handlers.table) == {30}
