"""Applies rules to what one server receives and sends: the last watcher, so that the others see what the peer sees.

received    half open? cut? -> the first rule that matches and has a use left -> its effect, before the handler
answering   routes -> the effect, now that the reply is ready
calling     the first rule for our own request -> its effect
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from random import Random
from typing import Any, Final

from pocketmq.broker.network.watch import ReplyBody, Watched, Watcher, whole_body
from pocketmq.core.sends import Send
from pocketmq.protocol.bodies.routes import BrokerData
from pocketmq.protocol.wire.command import Command

from ..requests.logged_request import SENDS, LogEntry, LoggedConnection, LoggedRequest
from ..requests.request_log import LogWatcher
from .effects import Control
from .network import NetworkRule, Shaper, shape_for
from .routes import ROUTE, RPC_ROUTE, RouteRule, changed_reply
from .rule import AnyRule, Rule
from .sending import Answering, Exchange, ReadyReply
from .shaping import Shape


class ActiveRules:
    """Rules in the order they were added, sorted by the code they name."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.all: tuple[AnyRule, ...] = ()
        self.rules: tuple[Rule, ...] = ()
        self.network: tuple[NetworkRule, ...] = ()
        self.routes: tuple[RouteRule, ...] = ()
        self.by_code: dict[int, tuple[Rule, ...]] = {}
        """Rules for a code that some rule names, those for any code among them."""
        self.for_any_code: tuple[Rule, ...] = ()
        self.is_any = False
        """Whether a request has to be looked at at all."""
        self.can_hit_sends = False
        """Whether a send might be hit, going by the codes of the rules."""
        self.version = 0
        """Rises with each change, and when a rule is used up."""
        self.call_later: Callable[[float, Callable[[], None]], Any] = _no_loop
        self.loop: asyncio.AbstractEventLoop
        self.changed: list[Callable[[], None]] = []
        """Called after each change."""
        self.brokers: Callable[[], Mapping[str, BrokerData]] = dict
        """Every broker that a route may name."""
        self.name_servers: list[str] = []

    def add(self, rule: AnyRule) -> None:
        self._sort((*self.all, rule))

    def remove(self, rule: AnyRule) -> None:
        """Does nothing if it was removed before."""
        if isinstance(rule, Rule) and isinstance(rule.effect, Control):
            rule.effect.stop()
        self._sort(tuple(one for one in self.all if one is not rule))

    def clear(self) -> None:
        for rule in self.all:
            self.remove(rule)

    def first(self, candidates: tuple[Rule, ...], request: LoggedRequest) -> Rule | None:
        """The first rule that matches and has a use left; it is used."""
        for rule in candidates:
            if rule.try_use(request, self.random):
                return rule
        return None

    def _sort(self, every: tuple[AnyRule, ...]) -> None:
        self.all = every
        self.rules = rules = tuple(rule for rule in every if isinstance(rule, Rule))
        self.network = tuple(rule for rule in every if isinstance(rule, NetworkRule))
        self.routes = tuple(rule for rule in every if isinstance(rule, RouteRule))
        self.for_any_code = tuple(rule for rule in rules if rule.match.code is None)
        codes = {rule.match.code for rule in rules if rule.match.code is not None}
        self.by_code = {code: tuple(rule for rule in rules if rule.can_match(code)) for code in codes}
        self.can_hit_sends = bool(self.for_any_code or self.network or codes & SENDS)
        self.is_any = bool(rules or self.network)
        self.version += 1
        for function in self.changed:
            function()


def _no_loop(seconds: float, function: Callable[[], None]) -> None:
    raise RuntimeError("the rules belong to no running server")


HEADERS: Final = 4096
"""Kinds of sends whose rules are remembered; then it begins again."""
SendFilter = tuple[int | None, str | None]
"""The queue id and the client id that a rule names; None: any."""


class FaultWatcher(Watcher, Answering):
    """One server: a broker's port, or a name server called `name_server`."""

    sees_raw = True

    def __init__(self, rules: ActiveRules, log: LogWatcher, name_server: str | None) -> None:
        self._rules = rules
        self._log = log
        self.name_server = name_server
        """`None` for a port of a broker."""
        self._shaper = Shaper(rules.loop)
        self._hit: dict[int, tuple[Command, Rule, Exchange]] = {}
        """Hit requests whose reply is not ready, by the identity of the frame."""
        self._passing: Command | None = None
        """The request whose reply passes now: it is ours already."""
        self._filters: dict[Hashable, tuple[SendFilter, ...]] = {}
        """For each kind of send, whom the rules mean that can hit one of it; empty if none can. Sends of a kind differ
        in queue, time and properties only."""
        self._aims_version = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing that a rule has begun is still under way."""
        return not self._hit and not self._shaper.connections()

    # -- what the server calls

    def closed(self, connection: Watched) -> None:
        self._shaper.closed(connection)
        gone = [identity for identity, hit in self._hit.items() if hit[2].is_on(connection)]
        for identity in gone:
            del self._hit[identity]

    def received(self, connection: Watched, command: Command) -> bool:
        rules = self._rules
        if not rules.is_any:
            return False
        kept = self._log.entry_of(command)
        if kept is None:
            return False  # our own broker's registration
        known = kept.connection
        if known.is_cut or (rules.network and self._shaped(connection, known).half_open):
            self._log.forget(command)
            return True
        candidates = rules.by_code.get(command.code, rules.for_any_code)
        if not candidates:
            return False
        return self._apply(candidates, connection, command, kept)

    def needs_decoded(self, connection: Watched, frames: Sequence[Send]) -> bool:
        rules = self._rules
        known = self._log.known(connection)
        if rules.network or (known is not None and known.is_cut):
            return True
        if not rules.can_hit_sends:
            return False
        if self._aims_version != rules.version or len(self._filters) > HEADERS:
            self._filters.clear()
            self._aims_version = rules.version
        known_aims = self._filters
        for frame in frames:
            aims = known_aims.get(frame[0])
            if aims is None:
                aims = self._filters_for(connection, frame)
            for queue_id, client_id in aims:
                if queue_id is not None and frame.queue_id != queue_id:
                    continue
                if client_id is None or (known is not None and known.client_id == client_id):
                    return True
        return False

    def _filters_for(self, connection: Watched, frame: Send) -> "tuple[SendFilter, ...]":
        """Look at one send for all that have its header; remembers the result."""
        known = self._log.connection_of(connection)
        command = frame.decode()
        command.body = None  # a view of all that was read with it
        request = LoggedRequest(LogEntry(0, 0, known, command))
        candidates = self._rules.by_code.get(request.code, self._rules.for_any_code)
        aims = tuple(
            (rule.match.queue_id, rule.match.client_id)
            for rule in candidates
            if rule.can_match_sends_like(request)
        )
        self._filters[frame[0]] = aims
        return aims

    def _apply(
        self, candidates: tuple[Rule, ...], connection: Watched, command: Command, kept: LogEntry
    ) -> bool:
        request = LoggedRequest(kept)
        rule = self._rules.first(candidates, request)
        if rule is None:
            return False
        if rule.is_used_up:
            self._rules.version += 1
        exchange = Exchange(self, rule.fail, request, connection, kept.connection, command)
        self._hit[id(command)] = command, rule, exchange
        is_taken = rule.effect.arrived(exchange)
        if is_taken or request.oneway:
            self._hit.pop(id(command), None)
        return is_taken

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        if command is self._passing:
            return False
        if self._rules.network:
            self._shape_known(connection)
        hit = self._hit.pop(id(command), None)
        is_route = bool(self._rules.routes) and (
            command.code == RPC_ROUTE or (command.code == ROUTE and self.name_server is not None)
        )
        if hit is None and not is_route:
            return False
        ready = ReadyReply(reply, whole_body(body))
        changed = self._routed(command, ready) if is_route else None
        ready = changed or ready
        if hit is not None:
            return hit[1].effect.answering(hit[2], ready)
        if changed is None:
            return False
        self.pass_on(command, lambda: connection.reply(command, changed.command, changed.body or None))
        return True

    def cancelled(self, connection: Watched, command: Command) -> None:
        self._hit.pop(id(command), None)

    def calling(self, connection: Watched, command: Command, body: ReplyBody) -> bool:
        rules = self._rules
        if rules.network:
            self._shape_known(connection)
        candidates = rules.by_code.get(command.code, ())
        if not candidates:
            return False
        kept = self._log.called(connection, command, body)
        if kept is None:
            return False
        request = LoggedRequest(kept)
        rule = rules.first(candidates, request)
        if rule is None:
            return False
        exchange = Exchange(self, rule.fail, request, connection, kept.connection, command, request.body)
        return rule.effect.calling(exchange)

    # -- what an exchange calls

    @property
    def random(self) -> Random:
        return self._rules.random

    def pass_on(self, command: Command, send: Callable[[], None]) -> None:
        """Send a reply past the rules; the watchers nearer to the peer see it."""
        former, self._passing = self._passing, command
        try:
            send()
        finally:
            self._passing = former

    def call_later(self, seconds: float, function: Callable[[], None]) -> None:
        self._rules.call_later(seconds, function)

    def forget(self, command: Command) -> None:
        self._log.forget(command)

    # -- routes and bytes

    def _routed(self, command: Command, ready: ReadyReply) -> ReadyReply | None:
        kept = self._log.entry_of(command)
        if kept is None:
            return None
        rules = self._rules
        return changed_reply(
            rules.routes, LoggedRequest(kept), self.name_server or "", rules.brokers(), ready
        )

    def _shaped(self, connection: Watched, known: LoggedConnection) -> Shape:
        shape = shape_for(self._rules.network, known)
        self._shaper.shape(connection, shape)
        return shape

    def _shape_known(self, connection: Watched) -> None:
        known = self._log.known(connection)
        if known is not None:
            self._shaped(connection, known)

    def rules_changed(self) -> None:
        """Rules were added or removed: connections that are shaped get their new shape."""
        for connection in self._shaper.connections():
            self._shape_known(connection)
