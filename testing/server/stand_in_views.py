"""The stand-in's own abilities over HTTP: faults, request log, virtual time, reset and snapshots.

The words are those of Python: `rocketmq.faults`, `.requests`, `.clock`. Importing this file adds its addresses to those
of `pocketmq.console`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from pocketmq.broker.node import Node
from pocketmq.broker.time.timers import MovedTime, TimeStuckError
from pocketmq.console.answers import (
    BINARY,
    PAGES,
    Call,
    Problem,
    as_json,
    number_of,
    read_body,
    read_json,
    serves,
)
from pocketmq.console.pages import Page, Pause, in_turns
from pocketmq.console.server_access import ServerAccess
from pocketmq.console.values import (
    Clock,
    Fault,
    LedgerMessage,
    LedgerVerdict,
    LoggedRequest,
    NewFault,
    Step,
    Words,
)
from starlette.responses import Response, StreamingResponse

from ..faults.rule import AnyRule
from ..faults.rule_json import add_rule, known_words
from ..faults.watched_node import WatchedNodes
from ..state.reset import Mark, restore
from ..state.snapshot import ACCESS_TABLES, Snapshot, restore_snapshot, snapshot_of, take_snapshot

SEARCH_WORDS: Final = ("code", "topic", "queue_id", "group", "client_id", "broker", "oneway", "response")
MAX_REQUESTS: Final = 10_000
"""Requests in one answer."""
MAX_STREAMS: Final = 64
"""Streams of requests that may be open at once."""
MAX_RULES: Final = 1000
"""Rules that are added over HTTP, and in one answer; each costs every request a comparison."""
MAX_VERDICTS: Final = 1000
"""Verdicts in one answer."""
SNAPSHOT_BYTES: Final = 256 << 20


class StandIn(ServerAccess):
    """A running node, and what is done with all nodes that `watched` watches. Make it on their loop."""

    def __init__(
        self,
        node: Callable[[], Node],
        watched: WatchedNodes,
        *,
        time: Callable[[], MovedTime | None] | None = None,
        mark: Callable[[], Mark] | None = None,
    ) -> None:
        """`mark` is the state that a reset returns to. Without one, as in a cluster, there are neither resets nor
        snapshots."""
        super().__init__(node, time=time)
        self.watched = watched
        self.ledger = watched.keep_ledger()
        self.mark = mark
        self.open_streams = 0

    def rules(self) -> list[AnyRule]:
        """By id."""
        return sorted(self.watched.faults.rules, key=lambda rule: rule.id)


def _of(call: Call) -> StandIn:
    assert isinstance(call.access, StandIn)
    return call.access


# -- faults


@serves("GET", "/api/words", answer=Words)
async def words(call: Call) -> Response:
    """The names that this server knows: requests, responses, effects of rules and their words."""
    return as_json(known_words())


@serves("GET", "/api/faults", PAGES, list[Fault])
async def faults(call: Call) -> Response:
    """Rules with their newest hits, in the order they were added."""
    last = number_of(call.given, "after", 0)
    page = Page(number_of(call.given, "limit", MAX_RULES, MAX_RULES))
    async with call.reading as pause:
        for rule in [rule for rule in _of(call).rules() if rule.id > last]:
            if page.is_full:
                return page.response(call.request, after=last)
            page.add(rule.as_json())
            last = rule.id
            await pause()
    return page.response(call.request)


@serves("POST", "/api/faults", answer=Fault, body=NewFault, code=201)
async def add_fault(call: Call) -> Response:
    """Add a rule: an effect, and which requests it hits."""
    given, faults = await read_json(call.request, dict[str, Any]), _of(call).watched.faults
    if len(faults.rules) >= MAX_RULES:
        raise Problem(400, f"there are {MAX_RULES} rules already: remove some", [MAX_RULES])
    with wrong_values():
        return as_json(add_rule(faults, given).as_json(), 201)


@serves("DELETE", "/api/faults", answer=list[Fault])
async def remove_faults(call: Call) -> Response:
    """Remove every rule."""
    _of(call).watched.faults.clear()
    return as_json([])


@serves("DELETE", "/api/faults/{rule}", answer=list[Fault])
async def remove_fault(call: Call) -> Response:
    """Remove a rule."""
    access, text = _of(call), call.in_path("rule")
    if not (text.isascii() and text.isdecimal() and access.watched.faults.remove(int(text[:9]))):
        raise Problem(404, f"there is no rule {text:.60}", [rule.id for rule in access.rules()[:100]])
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
        found = _of(call).watched.requests.one_by_one(after=last_id, newest_first=is_newest, **words)
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
    access, words = _of(call), search_of(call.given)
    if access.open_streams >= MAX_STREAMS:
        raise Problem(409, f"{MAX_STREAMS} streams are open already", [MAX_STREAMS])
    with wrong_values():
        access.watched.requests.follow(**words)
    events = _events(access, words)
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-cache"})


async def _events(access: StandIn, words: dict[str, Any]) -> AsyncIterator[bytes]:
    """`id:` and `data:` for each request that is new or got its reply. Ends when it is closed."""
    access.open_streams += 1
    try:
        with access.watched.requests.follow(**words) as follower:
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
    access = _of(call)
    if access.mark is None:
        raise Problem(409, "this server keeps its state: reset is for one with a temporary store")
    access.watched.faults.clear()
    await restore(access.node, access.mark())
    access.watched.requests.clear()
    access.watched.forget_facts()
    return as_json({})


def _node_of(call: Call) -> Node:
    """The one whose snapshots are taken."""
    if _of(call).mark is None:
        raise Problem(409, "this server takes no snapshots")
    return call.access.node


@serves("GET", "/api/snapshot", content=BINARY)
async def snapshot(call: Call) -> Response:
    """The state as a file, without users."""
    state = (await take_snapshot(_node_of(call))).state  # the passwords of users are plain
    tables = {name: table for name, table in state.tables.items() if name not in ACCESS_TABLES}
    data = Snapshot(msgspec.structs.replace(state, tables=tables)).to_bytes()
    return Response(data, media_type="application/octet-stream")


@serves("PUT", "/api/snapshot", body=bytes, accepts=BINARY)
async def bring_back(call: Call) -> Response:
    """Bring a state back; the users stay those that exist."""
    node, data = _node_of(call), await read_body(call.request, SNAPSHOT_BYTES)
    with wrong_values():
        await restore_snapshot(node, snapshot_of(data, "the body"))
    _of(call).ledger.clear()
    return as_json({})


# -- ledger

_LEDGER: Final = (LedgerVerdict, LedgerMessage, list[LedgerVerdict])


@serves("GET", "/api/ledger", ("topic", "group", "message", *PAGES), _LEDGER)
async def ledger(call: Call) -> Response:
    """What became of `message`; or how `group` fared with `topic`; or a list of all, or of those with the one that is
    given. The ledger is kept whenever the port is on."""
    given, kept = call.given, _of(call).ledger
    try:
        async with call.reading as pause:
            if "message" in given:
                history = await in_turns(kept.history_steps(given["message"]), pause)
                return as_json(history.as_json())
            if "topic" in given and "group" in given:
                (steps,) = kept.each_judged(given["topic"], given["group"], ("", ""))
                return as_json((await in_turns(steps, pause)).as_json())
            return await _verdicts(call, pause)
    except ValueError as error:  # a topic, a group or a message that does not exist
        raise Problem(404, str(error), getattr(error, "allowed", ())) from error


async def _verdicts(call: Call, pause: Pause) -> Response:
    given, page = call.given, Page(number_of(call.given, "limit", MAX_VERDICTS, MAX_VERDICTS))
    topic, _, group = given.get("after", "").partition(" ")
    for steps in _of(call).ledger.each_judged(given.get("topic"), given.get("group"), (topic, group)):
        one = (await in_turns(steps, pause)).as_json()
        page.add(one)
        if page.is_full:
            return page.response(call.request, after=f"{one.topic} {one.group}")
    return page.response(call.request)
