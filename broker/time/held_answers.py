"""Answers held requests in the next loop iterations, a limited number in each.

    arrival or deadline -> HeldAnswers.add -> next loop iteration -> handle(request), `ANSWERS_IN_A_TURN` at a time

An arriving message only marks the requests that wait for it; when they are handled, they find the whole burst.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from pocketmq.protocol.wire.response_codes import ResponseCode

from ..network.dispatch import Answer, Call
from .slices import ANSWERS_IN_A_TURN
from .timers import CallSoon

_log = logging.getLogger("pocketmq.turns")


class HeldRequest(Protocol):
    """A request whose handler returned HELD: its answer is sent later."""

    @property
    def call(self) -> Call: ...


HeldT = TypeVar("HeldT", bound=HeldRequest)


class HeldAnswers(Generic[HeldT]):
    """Owned by the event loop."""

    def __init__(
        self,
        handle: Callable[[HeldT], None],
        call_soon: CallSoon,
        *,
        gone: Callable[[HeldT], None] | None = None,
        is_long: Callable[[HeldT], bool] | None = None,
    ) -> None:
        """`gone` is called with a request whose connection has closed since it was added. A loop iteration ends after a
        request that `is_long`."""
        self._handle = handle
        self._gone = gone
        self._is_long = is_long
        self._call_soon = call_soon
        self._due: deque[HeldT] = deque()

    def add(self, request: HeldT) -> None:
        """Handle the request in one of the next loop iterations."""
        if not self._due:
            self._call_soon(self._run)
        self._due.append(request)

    @property
    def iterations(self) -> int:
        """Loop iterations until everything is handled, or more."""
        long = 0 if self._is_long is None else sum(map(self._is_long, self._due))
        return long - (-len(self._due) // ANSWERS_IN_A_TURN)

    def _run(self) -> None:
        due = self._due
        for _ in range(min(len(due), ANSWERS_IN_A_TURN)):
            request = due.popleft()
            if not request.call.connection.closed:
                self._attempt(request)
                if self._is_long is not None and self._is_long(request):
                    break
            elif self._gone is not None:
                self._gone(request)
        if due:
            self._call_soon(self._run)

    def _attempt(self, request: HeldT) -> None:
        try:
            self._handle(request)
        except Exception as error:
            # The handler has returned, so the error must be answered here, and the other requests must still run.
            _log.exception("a held request failed when it was woken")
            remark = f"{type(error).__name__}: {error}"
            request.call.answer(Answer(code=ResponseCode.SYSTEM_ERROR, remark=remark))
