"""What a rule does to a request: one class an effect, whose fields are its options as they were given.

    arrived    the request is here and was not handled yet. True: it will not be
    answering  its reply is ready. True: the effect sends it, or something else, or nothing
    calling    we are about to send a client a request. True: it is not sent

All of it on the server's loop. An `Exchange` (`sending.py`) is one hit request on its way.
"""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, ClassVar, Final

import msgspec
from pocketmq.broker.network.dispatch import Answer
from pocketmq.protocol.wire.command import Command

from ..requests.logged_request import LoggedRequest
from ..requests.values import response_code, response_name
from .outcomes import DROP, PASS, Decision, Refused, Reply, wire_body, wire_fields
from .sending import Exchange, ReadyReply

Outcome = Reply | Decision
ControlFunction = Callable[[LoggedRequest], Outcome | Awaitable[Outcome]]
AlterFunction = Callable[[Reply], Reply | None]
CONTROLS: Final = 10_000
"""Coroutine functions of `control` that run at once; a request beyond that is handled as usual."""


class Effect(msgspec.Struct, eq=False):
    """What happens to a request that a rule hits."""

    name: ClassVar[str]
    needs_reply: ClassVar[bool] = False
    """Acts on the reply: a one-way request cannot be hit."""
    hits_telemetry: ClassVar[bool] = False
    """Although it needs a reply, a rule for the rpc Telemetry hits the messages of gRPC clients."""
    hits_our_requests: ClassVar[bool] = False
    """Also applies to requests of the broker to its clients."""

    @property
    def why_no_rpc(self) -> str:
        """Why it cannot be done to the reply of a gRPC call; empty if it can."""
        return ""

    def arrived(self, exchange: Exchange) -> bool:
        return False

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        return False

    def calling(self, exchange: Exchange) -> bool:
        return False

    def as_json(self) -> dict[str, Any]:
        """Its own options, as they were given; those that are not, are left out."""
        given = ((one.name, getattr(self, one.name), one.default) for one in msgspec.structs.fields(self))
        return {name: value for name, value, default in given if value != default}


class Refuse(Effect):
    name = "refuse"
    response: int
    remark: str | None = None

    def arrived(self, exchange: Exchange) -> bool:
        exchange.answer(Answer(code=self.response, remark=self.remark))
        return True

    def as_json(self) -> dict[str, Any]:
        return super().as_json() | {"response": response_name(self.response)}


class Silence(Effect):
    name = "silence"
    hits_our_requests = True
    execute: bool = False

    def arrived(self, exchange: Exchange) -> bool:
        if not self.execute:
            exchange.forget()
        return not self.execute

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        exchange.forget()
        return True

    def calling(self, exchange: Exchange) -> bool:
        return True


class Disconnect(Effect):
    name = "disconnect"
    hits_our_requests = True
    execute: bool = False
    """Always with `within_body`."""
    reset: bool = False
    within_body: bool = False

    def arrived(self, exchange: Exchange) -> bool:
        if self.execute and not exchange.request.oneway:
            return False
        exchange.disconnect(reset=self.reset)
        return not self.execute

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        exchange.forget()
        exchange.disconnect(reset=self.reset, first=exchange.first_half(reply) if self.within_body else b"")
        return True

    def calling(self, exchange: Exchange) -> bool:
        exchange.disconnect(reset=self.reset)
        return True


class Delay(Effect):
    name = "delay"
    needs_reply = True
    hits_telemetry = True
    hits_our_requests = True
    seconds: float
    jitter: float = 0.0

    def _later(self, exchange: Exchange) -> float:
        return max(0.0, self.seconds + exchange.watcher.random.uniform(-self.jitter, self.jitter))

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


class Alter(Effect):
    name = "alter"
    needs_reply = True
    fields: dict[str, str] | None = None
    body: bytes | None = None
    opaque: int | None = None
    function: AlterFunction | None = None

    @property
    def why_no_rpc(self) -> str:
        return "" if self.opaque is None else "a gRPC call has no opaque number"

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        changed = Reply(reply.command.code, reply.command.fields, reply.body, reply.command.remark)
        try:
            exchange.send(self._changed(changed, reply.command))
        except Exception as error:
            exchange.fail("the function of alter", error)
            exchange.send(reply)
        return True

    def _changed(self, reply: Reply, former: Command) -> ReadyReply:
        reply.fields |= self.fields or {}
        if self.body is not None:
            reply.body = self.body
        if self.function is not None:
            returned = self.function(reply)
            if returned is not None and not isinstance(returned, Reply):
                raise TypeError(f"the function of alter must return a Reply, it returned {returned!r}")
            reply = returned or reply
        opaque = former.opaque if self.opaque is None else self.opaque
        return ReadyReply.altered(former, reply, opaque)

    def as_json(self) -> dict[str, Any]:
        words = super().as_json()
        if self.body is not None:
            words["body"] = self.body.decode("utf-8", "backslashreplace")
        return words | ({} if self.function is None else {"function": _name_of(self.function)})


class Duplicate(Effect):
    name = "duplicate"
    needs_reply = True
    hits_our_requests = True

    @property
    def why_no_rpc(self) -> str:
        return "a gRPC call has one answer"

    def answering(self, exchange: Exchange, reply: ReadyReply) -> bool:
        exchange.send(reply)
        exchange.send(reply)
        return True

    def calling(self, exchange: Exchange) -> bool:
        exchange.call_now()
        return False


class Control(Effect):
    name = "control"
    function: ControlFunction
    _running: set[asyncio.Future[None]] = set()

    def arrived(self, exchange: Exchange) -> bool:
        try:
            outcome = self.function(exchange.request)
        except Exception as error:
            return self._apply(exchange, self._refused(exchange, error))
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
            decided = self._refused(exchange, error)
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
            exchange.answer(_answer_of(self._refused(exchange, error)))
        return True

    @staticmethod
    def _refused(exchange: Exchange, error: Exception) -> Reply:
        if isinstance(error, Refused):
            return Reply(error.code, remark=error.remark)
        exchange.fail("the function of control", error)
        return Reply("SYSTEM_ERROR", remark=f"{type(error).__name__}: {error}")

    def as_json(self) -> dict[str, Any]:
        return {"function": _name_of(self.function)}


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", "a function"))


def _answer_of(outcome: object) -> Answer:
    if not isinstance(outcome, Reply):
        raise TypeError(f"the function of control must return a Reply, PASS or DROP, it returned {outcome!r}")
    return Answer(
        code=response_code("code", outcome.code),
        remark=outcome.remark,
        body=wire_body(outcome.body) or None,
        fields=wire_fields(outcome.fields),
    )
