"""The stand-in's own abilities over HTTP: faults, request log, virtual time, reset and snapshots.

The words are those of Python: `rocketmq.faults`, `.requests`, `.clock`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from pocketmq.broker.time.timers import TimeStuckError

from .answers import Problem, number_of
from .pages import Page, Reading, in_turns
from .server_access import Ledger, ServerAccess, Snapshots
from .values import Clock, LedgerMessage, LedgerVerdict

SEARCH_WORDS: Final = ("code", "topic", "queue_id", "group", "client_id", "broker", "oneway", "response")
MAX_REQUESTS: Final = 10_000
"""Requests in one answer."""
MAX_STREAMS: Final = 64
"""Streams of requests that may be open at once."""
MAX_RULES: Final = 1000
"""Rules in one answer."""
MAX_VERDICTS: Final = 1000
"""Verdicts in one answer."""
SNAPSHOT_BYTES: Final = 256 << 20

_encode: Final = msgspec.json.Encoder().encode


# -- faults


async def faults(
    access: ServerAccess, given: dict[str, str], reading: Reading
) -> tuple[Page, dict[str, Any]]:
    """Rules with their newest hits, in the order they were added, with the parameters of the next page."""
    last, page = number_of(given, "after", 0), Page(number_of(given, "limit", MAX_RULES, MAX_RULES))
    async with reading as pause:
        for rule in access.rules.each(last):
            if page.is_full:
                return page, {"after": last}
            page.add(rule)
            last = rule["id"]
            await pause()
    return page, {}


def add_fault(access: ServerAccess, words: dict[str, Any]) -> dict[str, Any]:
    with wrong_values():
        return access.rules.add(words)


def remove_fault(access: ServerAccess, text: str) -> None:
    if not (text.isascii() and text.isdecimal() and access.rules.remove(int(text[:9]))):
        raise Problem(404, f"there is no rule {text:.60}", access.rules.ids()[:100])


@contextmanager
def wrong_values() -> Iterator[None]:
    """A ValueError or TypeError of what the owner gave us becomes an answer 400."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise Problem(400, str(error), getattr(error, "allowed", ())) from error


# -- requests


def search_of(given: dict[str, str]) -> dict[str, Any]:
    """The match words of an address, with the types that they have in Python."""
    words: dict[str, Any] = {name: value for name, value in given.items() if name in SEARCH_WORDS}
    for name in ("code", "response"):
        if name in words and words[name].isdecimal() and len(words[name]) < 10:
            words[name] = int(words[name])
    if "queue_id" in words:
        words["queue_id"] = number_of(given, "queue_id", 0)
    if "oneway" in words:
        if words["oneway"] not in ("true", "false"):
            raise Problem(
                400, f"oneway must be true or false, got {words['oneway']!r:.60}", ["true", "false"]
            )
        words["oneway"] = words["oneway"] == "true"
    return words


async def list_requests(
    access: ServerAccess, given: dict[str, str], reading: Reading
) -> tuple[Page, dict[str, Any]]:
    """Oldest first: the oldest `limit`, or the newest `last`; with the parameters of the next page. What is left out of
    the newest because the page is full has none."""
    words = search_of(given)
    is_newest = "last" in given
    if is_newest and "limit" in given:
        raise Problem(400, "give limit (the oldest) or last (the newest), not both", ["limit", "last"])
    page = Page(number_of(given, "last" if is_newest else "limit", 1000, MAX_REQUESTS))
    last_id = number_of(given, "after", 0)
    with wrong_values():
        found = access.requests.one_by_one(after=last_id, newest_first=is_newest, **words)
    async with reading as pause:
        for request in found:
            await pause()
            if page.is_full:
                return page, {} if is_newest else {"after": last_id}
            if request is not None:
                shown = request.as_json()
                page.add(shown, first=is_newest)
                last_id = shown.id
    return page, {}


class Streams:
    """Server-sent events of requests. Each reader waits at its own pace; what it is too slow for, it misses, and is
    told how much."""

    def __init__(self, access: ServerAccess) -> None:
        self._access = access
        self._open = 0

    def check(self, given: dict[str, str]) -> None:
        """Raises `Problem` for wrong words, and if too many streams are open."""
        if self._open >= MAX_STREAMS:
            raise Problem(409, f"{MAX_STREAMS} streams are open already", [MAX_STREAMS])
        with wrong_values():
            self._access.requests.follow(**search_of(given))

    async def events(self, given: dict[str, str]) -> AsyncIterator[bytes]:
        """`id:` and `data:` for each request that is new or got its reply. Ends when it is closed."""
        words = search_of(given)
        self._open += 1
        try:
            with self._access.requests.follow(**words) as follower:
                yield b": the requests of this server, as they arrive\n\n"
                while True:
                    for request in await follower.next():
                        one = request.as_json()
                        yield b"id: %d\ndata: %s\n\n" % (one.id, _encode(one))
                        await asyncio.sleep(0)
                    if follower.missed:
                        yield b"event: missed\ndata: %d\n\n" % follower.missed
                        follower.missed = 0
        finally:
            self._open -= 1


# -- time


def clock_value(access: ServerAccess) -> Clock:
    virtual = access.time is not None
    return Clock(virtual, access.broker.clock.now_ms())


async def advance(access: ServerAccess, given: dict[str, Any]) -> Clock:
    """`{"by": "2h"}`: seconds or a text; `{"to_next": true}`: to the next event."""
    time = access.time
    if time is None:
        raise Problem(409, "the clock is not virtual: start the server with --virtual-time")
    step, to_next = given.get("by"), given.get("to_next", False)
    if (step is None) == (to_next is not True):
        raise Problem(400, 'give {"by": "2h"} or {"to_next": true}', ["by", "to_next"])
    try:
        if to_next is True:
            await time.advance_to_next()
        else:
            await time.advance(step)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise Problem(400, str(error), ["seconds", "1d2h30m5s100ms"]) from error
    except TimeStuckError as error:
        raise Problem(409, str(error)) from error
    return clock_value(access)


# -- state


async def reset(access: ServerAccess) -> None:
    if access.reset is None:
        raise Problem(409, "this server keeps its state: reset is for one with a temporary store")
    await access.reset()


def snapshots_of(access: ServerAccess) -> Snapshots:
    if access.snapshots is None:
        raise Problem(409, "this server takes no snapshots")
    return access.snapshots


async def restore(access: ServerAccess, data: bytes) -> None:
    with wrong_values():
        await snapshots_of(access).restore(data)


# -- ledger


async def verdict(
    access: ServerAccess, given: dict[str, str], reading: Reading
) -> LedgerVerdict | LedgerMessage:
    """What became of a message, or of a topic for a group."""
    with _unknown_names():
        async with reading as pause:
            if "message" in given:
                history = await in_turns(_ledger_of(access).history_steps(given["message"]), pause)
                return history.as_json()
            (steps,) = _ledger_of(access).each_judged(given["topic"], given["group"], ("", ""))
            return (await in_turns(steps, pause)).as_json()


async def verdicts(
    access: ServerAccess, given: dict[str, str], reading: Reading
) -> tuple[Page, dict[str, Any]]:
    """The verdicts of every topic and group, or of those that are given, with the parameters of the next page."""
    ledger, page = _ledger_of(access), Page(number_of(given, "limit", MAX_VERDICTS, MAX_VERDICTS))
    topic, _, group = given.get("after", "").partition(" ")
    with _unknown_names():
        async with reading as pause:
            for steps in ledger.each_judged(given.get("topic"), given.get("group"), (topic, group)):
                one = (await in_turns(steps, pause)).as_json()
                page.add(one)
                if page.is_full:
                    return page, {"after": f"{one.topic} {one.group}"}
    return page, {}


def _ledger_of(access: ServerAccess) -> Ledger:
    if access.ledger is None:
        raise Problem(409, "this server keeps no ledger")
    return access.ledger


@contextmanager
def _unknown_names() -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # a topic, a group or a message that does not exist
        raise Problem(404, str(error), getattr(error, "allowed", ())) from error
