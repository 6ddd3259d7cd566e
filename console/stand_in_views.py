"""The stand-in's own abilities over HTTP: faults, request log, virtual time, reset and snapshots.

The words are those of Python: `rocketmq.faults`, `.requests`, `.clock`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

import msgspec
from pocketmq.broker.time.timers import TimeStuckError
from starlette.responses import Response, StreamingResponse

from .answers import BINARY, PAGES, Call, Problem, as_json, number_of, read_body, read_json, serves
from .pages import Page, Pause, in_turns
from .server_access import Ledger, ServerAccess
from .values import Clock, Fault, LedgerMessage, LedgerVerdict, LoggedRequest, NewFault, Step, Words

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


# -- faults


@serves("GET", "/api/words", answer=Words)
async def words(call: Call) -> Response:
    """The names that this server knows: requests, responses, effects of rules and their words."""
    return as_json(call.access.rules.words())


@serves("GET", "/api/faults", PAGES, list[Fault])
async def faults(call: Call) -> Response:
    """Rules with their newest hits, in the order they were added."""
    last = number_of(call.given, "after", 0)
    page = Page(number_of(call.given, "limit", MAX_RULES, MAX_RULES))
    async with call.reading as pause:
        for rule in call.access.rules.each(last):
            if page.is_full:
                return page.response(call.request, after=last)
            page.add(rule)
            last = rule["id"]
            await pause()
    return page.response(call.request)


@serves("POST", "/api/faults", answer=Fault, body=NewFault, code=201)
async def add_fault(call: Call) -> Response:
    """Add a rule: an effect, and which requests it hits."""
    given = await read_json(call.request, dict[str, Any])
    with wrong_values():
        return as_json(call.access.rules.add(given), 201)


@serves("DELETE", "/api/faults", answer=list[Fault])
async def remove_faults(call: Call) -> Response:
    """Remove every rule."""
    call.access.rules.clear()
    return as_json([])


@serves("DELETE", "/api/faults/{rule}", answer=list[Fault])
async def remove_fault(call: Call) -> Response:
    """Remove a rule."""
    rules, text = call.access.rules, call.in_path("rule")
    if not (text.isascii() and text.isdecimal() and rules.remove(int(text[:9]))):
        raise Problem(
            404, f"there is no rule {text:.60}", [rule["id"] for rule in islice(rules.each(0), 100)]
        )
    return await faults(call)


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


@serves("GET", "/api/requests", (*SEARCH_WORDS, *PAGES, "last"), list[LoggedRequest])
async def requests(call: Call) -> Response:
    """Requests with their replies, oldest first: the oldest `limit`, or the newest `last`. There is no next page with
    what is left out of the newest because the page is full."""
    given, words = call.given, search_of(call.given)
    is_newest = "last" in given
    if is_newest and "limit" in given:
        raise Problem(400, "give limit (the oldest) or last (the newest), not both", ["limit", "last"])
    page = Page(number_of(given, "last" if is_newest else "limit", 1000, MAX_REQUESTS))
    last_id = number_of(given, "after", 0)
    with wrong_values():
        found = call.access.requests.one_by_one(after=last_id, newest_first=is_newest, **words)
    async with call.reading as pause:
        for request in found:
            await pause()
            if page.is_full:
                return page.response(call.request, **({} if is_newest else {"after": last_id}))
            if request is not None:
                shown = request.as_json()
                page.add(shown, first=is_newest)
                last_id = shown.id
    return page.response(call.request)


@serves("GET", "/api/requests/stream", SEARCH_WORDS, content="text/event-stream")
async def request_stream(call: Call) -> Response:
    """Server-sent events of requests as they arrive, and once more with the reply. At most 64 streams; a reader that is
    too slow misses some, and an event `missed` says how many."""
    access, words = call.access, search_of(call.given)
    if access.open_streams >= MAX_STREAMS:
        raise Problem(409, f"{MAX_STREAMS} streams are open already", [MAX_STREAMS])
    with wrong_values():
        access.requests.follow(**words)
    events = _events(access, words)
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-cache"})


async def _events(access: ServerAccess, words: dict[str, Any]) -> AsyncIterator[bytes]:
    """`id:` and `data:` for each request that is new or got its reply. Ends when it is closed."""
    access.open_streams += 1
    try:
        with access.requests.follow(**words) as follower:
            yield b": the requests of this server, as they arrive\n\n"
            while True:
                for request in await follower.next():
                    one = request.as_json()
                    yield b"id: %d\ndata: %s\n\n" % (one.id, msgspec.json.encode(one))
                    await asyncio.sleep(0)
                if follower.missed:
                    yield b"event: missed\ndata: %d\n\n" % follower.missed
                    follower.missed = 0
    finally:
        access.open_streams -= 1


# -- time


@serves("GET", "/api/clock", answer=Clock)
async def clock(call: Call) -> Response:
    """The server's time."""
    return as_json(Clock(call.access.time is not None, call.broker.clock.now_ms()))


@serves("POST", "/api/clock/advance", answer=Clock, body=Step)
async def advance(call: Call) -> Response:
    """Let virtual time pass."""
    step, time = await read_json(call.request, Step), call.access.time
    if time is None:
        raise Problem(409, "the clock is not virtual: start the server with --virtual-time")
    if (step.by is None) is not step.to_next:
        raise Problem(400, 'give {"by": "2h"} or {"to_next": true}', ["by", "to_next"])
    try:
        if step.by is None:
            await time.advance_to_next()
        else:
            await time.advance(step.by)
    except (TypeError, ValueError) as error:
        raise Problem(400, str(error), ["seconds", "1d2h30m5s100ms"]) from error
    except TimeStuckError as error:
        raise Problem(409, str(error)) from error
    return await clock(call)


# -- state


@serves("POST", "/api/reset")
async def reset(call: Call) -> Response:
    """Forget everything since the start: messages, offsets, rules, request log and ledger."""
    if call.access.reset is None:
        raise Problem(409, "this server keeps its state: reset is for one with a temporary store")
    await call.access.reset()
    return as_json({})


_NO_SNAPSHOTS: Final = "this server takes no snapshots"


@serves("GET", "/api/snapshot", content=BINARY)
async def snapshot(call: Call) -> Response:
    """The state as a file, without users."""
    if call.access.take_snapshot is None:
        raise Problem(409, _NO_SNAPSHOTS)
    return Response(await call.access.take_snapshot(), media_type="application/octet-stream")


@serves("PUT", "/api/snapshot", body=bytes, accepts=BINARY)
async def restore(call: Call) -> Response:
    """Bring a state back; the users stay those that exist."""
    if call.access.restore_snapshot is None:
        raise Problem(409, _NO_SNAPSHOTS)
    data = await read_body(call.request, SNAPSHOT_BYTES)
    with wrong_values():
        await call.access.restore_snapshot(data)
    return as_json({})


# -- ledger

_LEDGER: Final = (LedgerVerdict, LedgerMessage, list[LedgerVerdict])


@serves("GET", "/api/ledger", ("topic", "group", "message", *PAGES), _LEDGER)
async def ledger(call: Call) -> Response:
    """What became of `message`; or how `group` fared with `topic`; or a list of all, or of those with the one that is
    given. The ledger is kept whenever the port is on."""
    given, kept = call.given, call.access.ledger
    if kept is None:
        raise Problem(409, "this server keeps no ledger")
    try:
        async with call.reading as pause:
            if "message" in given:
                history = await in_turns(kept.history_steps(given["message"]), pause)
                return as_json(history.as_json())
            if "topic" in given and "group" in given:
                (steps,) = kept.each_judged(given["topic"], given["group"], ("", ""))
                return as_json((await in_turns(steps, pause)).as_json())
            return await _verdicts(call, kept, pause)
    except ValueError as error:  # a topic, a group or a message that does not exist
        raise Problem(404, str(error), getattr(error, "allowed", ())) from error


async def _verdicts(call: Call, kept: Ledger, pause: Pause) -> Response:
    given, page = call.given, Page(number_of(call.given, "limit", MAX_VERDICTS, MAX_VERDICTS))
    topic, _, group = given.get("after", "").partition(" ")
    for steps in kept.each_judged(given.get("topic"), given.get("group"), (topic, group)):
        one = (await in_turns(steps, pause)).as_json()
        page.add(one)
        if page.is_full:
            return page.response(call.request, after=f"{one.topic} {one.group}")
    return page.response(call.request)
