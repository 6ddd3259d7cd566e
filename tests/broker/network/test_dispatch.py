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


class Counter:
    """A part."""


def test_a_line_and_the_fast_port_leave_out_what_they_do_not_serve() -> None:
    def count(counter: Counter, request: GetMaxOffset | GetMinOffset) -> None:
        """Serves both."""

    handlers = Handlers("test")
    handlers.handles(GetMaxOffset, only_in=5)(count)
    handlers.handles(GetMinOffset, main_port=True)(count)
    assert set(handlers.of_line(5).table) == {30, 31}
    assert set(handlers.of_line(4).table) == {31}
    assert set(handlers.without_main_port_only().table) == {30}


def test_binding_puts_the_part_beside_its_function_and_fails_where_one_is_missing() -> None:
    def count(counter: Counter, request: GetMaxOffset) -> None:
        """Takes its part by type."""

    handlers, counter = Handlers("test"), Counter()
    handlers.handles(GetMaxOffset)(count)
    assert handlers.bind("another part", counter).table[30].part is counter
    assert handlers.table[30].part is None
    with pytest.raises(TypeError, match="count needs a Counter"):
        handlers.bind("another part")
