"""The rules that apply now, as the watchers of all servers read them. Changed on the server's loop only."""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from pocketmq.protocol.bodies.routes import BrokerData
from pocketmq.protocol.requests.send import SendMessage, SendMessageV2
from pocketmq.protocol.wire.schema import REQUESTS

from ..requests.logged_request import LoggedRequest
from .effects import Control
from .network import NetworkRule
from .routes import RouteRule
from .rule import Rule

AnyRule = Rule | NetworkRule | RouteRule
_SENDS: Final = frozenset(
    code for code, kind in REQUESTS.items() if issubclass(kind, SendMessage | SendMessageV2)
)


class ActiveRules:
    """Rules in the order they were added, sorted by the code they name."""

    def __init__(self, random: Random) -> None:
        self.random = random
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
        if isinstance(rule, Rule):
            self.rules += (rule,)
        elif isinstance(rule, NetworkRule):
            self.network += (rule,)
        else:
            self.routes += (rule,)
        self._sort()

    def remove(self, rule: AnyRule) -> None:
        """Does nothing if it was removed before."""
        self.rules = tuple(one for one in self.rules if one is not rule)
        self.network = tuple(one for one in self.network if one is not rule)
        self.routes = tuple(one for one in self.routes if one is not rule)
        if isinstance(rule, Rule) and isinstance(rule.effect, Control):
            rule.effect.stop()
        self._sort()

    def clear(self) -> None:
        for rule in self.all():
            self.remove(rule)

    def all(self) -> list[AnyRule]:
        """In the order they were added."""
        return sorted((*self.rules, *self.network, *self.routes), key=lambda rule: rule.id)

    @property
    def has_rules(self) -> bool:
        return bool(self.rules or self.network or self.routes)

    def first(self, candidates: tuple[Rule, ...], request: LoggedRequest) -> Rule | None:
        """The first rule that matches and has a use left; it is used."""
        for rule in candidates:
            if rule.try_use(request, self.random):
                return rule
        return None

    def _sort(self) -> None:
        rules = self.rules
        self.for_any_code = tuple(rule for rule in rules if rule.match.code is None)
        codes = {rule.match.code for rule in rules if rule.match.code is not None}
        self.by_code = {code: tuple(rule for rule in rules if rule.can_match(code)) for code in codes}
        self.can_hit_sends = bool(self.for_any_code or self.network or codes & _SENDS)
        self.is_any = bool(rules or self.network)
        self.version += 1
        for function in self.changed:
            function()


def _no_loop(seconds: float, function: Callable[[], None]) -> None:
    raise RuntimeError("the rules belong to no running server")
