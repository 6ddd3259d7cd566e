"""What a rule does to a request: one class an effect.

    arrived    the request is here and was not handled yet. True: it will not be
    answering  its reply is ready. True: the effect sends it, or something else, or nothing
    calling    we are about to send a client a request. True: it is not sent

All of it on the server's loop. An `Exchange` (`sending.py`) is one hit request on its way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, ClassVar, Final

from pocketmq.broker.network.dispatch import Answer
from pocketmq.protocol.wire.command import Command

from ..errors import WrongValueError
from ..requests.logged_request import LoggedRequest
from ..requests.values import response_code, response_name
from .outcomes import DROP, PASS, Decision, Refused, Reply, wire_body, wire_fields
from .sending import Exchange, ReadyReply

Outcome = Reply | Decision
ControlFunction = Callable[[LoggedRequest], Outcome | Awaitable[Outcome]]
AlterFunction = Callable[[Reply], Reply | None]
CONTROLS: Final = 10_000
"""Coroutine functions of `control` that run at once; a request beyond that is handled as usual."""


class Effect:
    """What happens to a request that a rule hits."""

    name: ClassVar[str]
    needs_reply: ClassVar[bool] = False
    """Acts on the reply: a one-way request cannot be hit."""
    hits_telemetry: ClassVar[bool] = False
    """Although it needs a reply, a rule for the rpc Telemetry hits the messages of gRPC clients."""
    hits_our_requests: ClassVar[bool] = False
    """Also applies to requests of the broker to its clients."""
    why_no_rpc: str = ""
    """Why it cannot be done to the reply of a gRPC call; empty if it can."""
    fail: Callable[[str, BaseException], None]
    """Notes that a function of the test raised; set by the rule."""

    def arrived(self, exchange: Exchange) -> bool:
        return False

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        return False

    def calling(self, exchange: Exchange) -> bool:
        return False

    def as_json(self) -> dict[str, Any]:
        """Its own options, as they were given; those that are not, are left out."""
        return {}


class Refuse(Effect):
    name = "refuse"

    def __init__(self, response: str | int, remark: str | None) -> None:
        if remark is not None and not isinstance(remark, str):
            raise WrongValueError(f"remark must be a text, got {remark!r}", ["a text"])
        self._response = response_code("response", response)
        self._remark = remark

    def arrived(self, exchange: Exchange) -> bool:
        exchange.answer(Answer(code=self._response, remark=self._remark))
        return True

    def as_json(self) -> dict[str, Any]:
        words: dict[str, Any] = {"response": response_name(self._response)}
        return words if self._remark is None else words | {"remark": self._remark}


class Silence(Effect):
    name = "silence"
    hits_our_requests = True

    def __init__(self, *, execute: bool) -> None:
        self._execute = execute

    def arrived(self, exchange: Exchange) -> bool:
        if not self._execute:
            exchange.forget()
        return not self._execute

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        exchange.forget()
        return True

    def calling(self, exchange: Exchange) -> bool:
        return True

    def as_json(self) -> dict[str, Any]:
        return {"execute": True} if self._execute else {}


class Disconnect(Effect):
    name = "disconnect"
    hits_our_requests = True

    def __init__(self, *, execute: bool, reset: bool, within_body: bool) -> None:
        self._execute = execute or within_body
        self._reset = reset
        self._within_body = within_body

    def arrived(self, exchange: Exchange) -> bool:
        if self._execute and not exchange.request.oneway:
            return False
        exchange.disconnect(reset=self._reset)
        return not self._execute

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        exchange.forget()
        exchange.disconnect(reset=self._reset, first=exchange.first_half(reply) if self._within_body else b"")
        return True

    def calling(self, exchange: Exchange) -> bool:
        exchange.disconnect(reset=self._reset)
        return True

    def as_json(self) -> dict[str, Any]:
        words = {"execute": self._execute, "reset": self._reset, "within_body": self._within_body}
        return {name: True for name, value in words.items() if value}


class Delay(Effect):
    name = "delay"
    needs_reply = True
    hits_telemetry = True
    hits_our_requests = True

    def __init__(self, seconds: float, jitter: float) -> None:
        self._seconds = seconds
        self._jitter = jitter

    def _later(self, exchange: Exchange) -> float:
        return max(0.0, self._seconds + exchange.watcher.random.uniform(-self._jitter, self._jitter))

    def arrived(self, exchange: Exchange) -> bool:
        if exchange.request.oneway:  # a message on a telemetry stream
            exchange.watcher.call_later(self._later(exchange), exchange.handle)
        return exchange.request.oneway

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        exchange.watcher.call_later(self._later(exchange), lambda: exchange.send(reply))
        return True

    def calling(self, exchange: Exchange) -> bool:
        exchange.watcher.call_later(self._later(exchange), exchange.call_now)
        return True

    def as_json(self) -> dict[str, Any]:
        return {"seconds": self._seconds} | ({"jitter": self._jitter} if self._jitter else {})


class Alter(Effect):
    name = "alter"
    needs_reply = True

    def __init__(
        self,
        function: AlterFunction | None,
        fields: Mapping[str, object] | None,
        body: bytes | str | None,
        opaque: int | None,
    ) -> None:
        self._function = function
        self._fields = None if fields is None else wire_fields(fields)
        self._body = None if body is None else wire_body(body)
        self._opaque = opaque
        if opaque is not None:
            self.why_no_rpc = "a gRPC call has no opaque number"

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        changed = Reply(reply.command.code, reply.command.fields, reply.body, reply.command.remark)
        try:
            exchange.send(self._changed(changed, reply.command))
        except Exception as error:
            self.fail("the function of alter", error)
            exchange.send(reply)
        return True

    def _changed(self, reply: Reply, former: Command) -> ReadyReply:
        reply.fields |= self._fields or {}
        if self._body is not None:
            reply.body = self._body
        if self._function is not None:
            returned = self._function(reply)
            if returned is not None and not isinstance(returned, Reply):
                raise TypeError(f"the function of alter must return a Reply, it returned {returned!r}")
            reply = returned or reply
        opaque = former.opaque if self._opaque is None else self._opaque
        return ReadyReply.altered(former, reply, opaque)

    def as_json(self) -> dict[str, Any]:
        body = None if self._body is None else self._body.decode("utf-8", "backslashreplace")
        words: dict[str, Any] = {"fields": self._fields, "body": body, "opaque": self._opaque}
        words["function"] = (
            None if self._function is None else getattr(self._function, "__name__", "a function")
        )
        return {name: value for name, value in words.items() if value is not None}


class Duplicate(Effect):
    name = "duplicate"
    needs_reply = True
    hits_our_requests = True
    why_no_rpc = "a gRPC call has one answer"

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        exchange.send(reply)
        exchange.send(reply)
        return True

    def calling(self, exchange: Exchange) -> bool:
        exchange.call_now()
        return False


class Control(Effect):
    name = "control"

    def __init__(self, function: ControlFunction) -> None:
        self._function = function
        self._running: set[asyncio.Future[None]] = set()

    def arrived(self, exchange: Exchange) -> bool:
        try:
            outcome = self._function(exchange.request)
        except Exception as error:
            return self._apply(exchange, self._refused(error))
        if not isawaitable(outcome):
            return self._apply(exchange, outcome)
        if len(self._running) >= CONTROLS:
            return False
        running = asyncio.ensure_future(self._finish(exchange, outcome))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return True

    def stop(self) -> None:
        """Cancel the coroutines that still run; their requests stay unanswered."""
        for running in self._running:
            running.cancel()

    async def _finish(self, exchange: Exchange, outcome: Awaitable[Outcome]) -> None:
        try:
            decided: object = await outcome
        except Exception as error:
            decided = self._refused(error)
        if not self._apply(exchange, decided):
            exchange.handle()

    def _apply(self, exchange: Exchange, outcome: object) -> bool:
        """Whether the request is taken."""
        if outcome is PASS:
            return False
        if outcome is DROP:
            exchange.forget()
            return True
        try:
            exchange.answer(_answer_of(outcome))
        except Exception as error:  # a reply that cannot be written
            exchange.answer(_answer_of(self._refused(error)))
        return True

    def _refused(self, error: Exception) -> Reply:
        if isinstance(error, Refused):
            return Reply(error.code, remark=error.remark)
        self.fail("the function of control", error)
        return Reply("SYSTEM_ERROR", remark=f"{type(error).__name__}: {error}")

    def as_json(self) -> dict[str, Any]:
        return {"function": getattr(self._function, "__name__", "a function")}


def _answer_of(outcome: object) -> Answer:
    if not isinstance(outcome, Reply):
        raise TypeError(f"the function of control must return a Reply, PASS or DROP, it returned {outcome!r}")
    return Answer(
        code=response_code("code", outcome.code),
        remark=outcome.remark,
        body=wire_body(outcome.body) or None,
        fields=wire_fields(outcome.fields),
    )
