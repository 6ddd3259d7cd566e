"""What a server does wrong, rule by rule: `rocketmq.faults`.

    rocketmq.faults.refuse(code="SEND_MESSAGE_V2", topic=orders, response="SYSTEM_BUSY", remark="full", times=2)
    rocketmq.faults.silence(code="QUERY_CONSUMER_OFFSET", group=billing)
    rocketmq.faults.delay(code="PULL_MESSAGE", seconds=0.5, times=None)

Rules are tried in the order they were added; the first one that matches and has a use left wins.

Match words (all that are given must hold): `code` (official name or number), `topic`, `queue_id`, `group`, `client_id`,
`broker`, `oneway`, `where` (a function of the decoded request). Uses: `times=1`; `times=None` until it is removed;
`after=N` lets N matching requests pass first; `probability=0.3`; `may_stay_unused=True`.

A wrong value raises `WrongValueError` (a ValueError), an unknown keyword TypeError; nothing is added then. Methods may
be called from any thread, also from the server's own.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Unpack

from ..errors import UnusedRulesError, WrongValueError
from ..requests.matching import lines, nearest
from ..requests.request_log import RequestLog
from ..requests.values import (
    check_bool,
    check_choice,
    check_int,
    check_names,
    check_number,
    check_text,
    response_code,
)
from . import effects
from .fault_watcher import ActiveRules
from .network import NetworkRule
from .outcomes import wire_body, wire_fields
from .routes import RouteChange, RouteRule, with_brokers, without_broker
from .rule import AnyRule, ControlWords, Rule, RuleWords, words_of
from .shaping import Shape, shape_of

_NEAREST: Final = 3
"""Requests that the error about an unused rule shows."""


class Faults:
    """The rules of one server, or of a cluster."""

    def __init__(
        self, rules: ActiveRules, log: RequestLog, call: Callable[[Callable[[], None]], None]
    ) -> None:
        self._rules = rules
        self._log = log
        self._call = call
        """Calls a function on the server's loop and waits for it."""
        self._ids = itertools.count(1)

    # -- effects on requests

    def refuse(
        self, *, response: str | int = "SYSTEM_ERROR", remark: str | None = None, **words: Unpack[RuleWords]
    ) -> Rule:
        """Answer with this response code (official name or number) and remark; the request is not executed."""
        if remark is not None and not isinstance(remark, str):
            raise WrongValueError(f"remark must be a text, got {remark!r}", ["a text"])
        effect = effects.Refuse(response_code("response", response), remark)
        return self._add(effect, dict(words), ("response", "remark"))

    def silence(self, *, execute: bool = False, **words: Unpack[RuleWords]) -> Rule:
        """Never answer. With `execute` the request is executed all the same."""
        return self._add(effects.Silence(check_bool("execute", execute)), dict(words), ("execute",))

    def disconnect(
        self,
        *,
        execute: bool | None = None,
        reset: bool = False,
        within_body: bool = False,
        **words: Unpack[RuleWords],
    ) -> Rule:
        """Close the connection instead of answering; with `reset`, reset it.

        With `execute` the request is executed. `within_body` executes it too, and cuts the answer in its middle.
        """
        executes = execute is not None and check_bool("execute", execute)
        if check_bool("within_body", within_body) and execute is False:
            raise WrongValueError("within_body=True needs an answer, so execute must not be False", [True])
        check_bool("reset", reset)
        effect = effects.Disconnect(executes or within_body, reset, within_body)
        return self._add(effect, dict(words), ("execute", "reset", "within_body"))

    def delay(self, *, seconds: float, jitter: float = 0.0, **words: Unpack[RuleWords]) -> Rule:
        """Execute at once and answer later: after `seconds`, plus or minus up to `jitter`, by the server's clock.

        Other requests of the connection are not held up.
        """
        effect = effects.Delay(check_number("seconds", seconds), check_number("jitter", jitter))
        return self._add(effect, dict(words), ("seconds", "jitter"))

    def alter(
        self,
        function: effects.AlterFunction | None = None,
        /,
        *,
        fields: Mapping[str, object] | None = None,
        body: bytes | str | None = None,
        opaque: int | None = None,
        **words: Unpack[RuleWords],
    ) -> Rule:
        """Change the reply: merge header fields, replace the body, or its opaque number. `function` gets the reply
        (`Reply`), with these changes made, and returns it."""
        if function is None and fields is None and body is None and opaque is None:
            raise WrongValueError(
                "alter needs something to change: a function, fields, body or opaque",
                ["function", "fields", "body", "opaque"],
            )
        if function is not None and not callable(function):
            raise WrongValueError(f"alter takes a function of the reply, got {function!r}", ["a function"])
        if fields is not None and not isinstance(fields, Mapping):
            raise WrongValueError(f"fields must map names to values, got {fields!r}", ["a mapping"])
        if opaque is not None:
            check_int("opaque", opaque, least=-(1 << 31), most=(1 << 31) - 1)
        changes = None if fields is None else wire_fields(fields), None if body is None else wire_body(body)
        effect = effects.Alter(*changes, opaque, function)
        return self._add(effect, dict(words), ("fields", "body", "opaque"))

    def duplicate(self, **words: Unpack[RuleWords]) -> Rule:
        """Answer twice."""
        return self._add(effects.Duplicate(), dict(words), ())

    def control(
        self, code: str | int, function: effects.ControlFunction, **words: Unpack[ControlWords]
    ) -> Rule:
        """Let a function decide: plain or coroutine, it gets the decoded request and returns a `Reply`, `PASS` or
        `DROP`, or raises `Refused`. It runs on the server's loop, so it must not block."""
        if not callable(function):
            raise WrongValueError(
                f"control takes a function of the request, got {function!r}", ["a function"]
            )
        return self._add(effects.Control(function), {"code": code, **words}, ("function",))

    # -- bytes and routes: until they are removed

    def network(
        self,
        client: str | None = None,
        *,
        latency: float | None = None,
        bandwidth: int | None = None,
        slice_bytes: int | None = None,
        half_open: bool = False,
    ) -> NetworkRule:
        """Slow or lose the bytes for one client (a client id), or for all: seconds of latency once an answer, bytes a
        second, bytes a write. `half_open`: requests and replies are lost, but the connection stays open. By the wall's
        time."""
        if client is not None:
            check_text("client", client)
        shape = shape_of(latency, bandwidth, slice_bytes, half_open)
        _check_shape(shape)
        rule = NetworkRule(next(self._ids), client, shape, self._removed)
        self._call(lambda: self._rules.add(rule))
        return rule

    def hide_broker(self, name: str) -> RouteRule:
        """Routes do not name this broker; a topic that is on no other is answered TOPIC_NOT_EXIST. Connections stay."""
        self._broker("name", name)
        return self._routed("hide_broker", without_broker(name), {"name": name})

    def route(
        self, topic: str, *, brokers: Sequence[str] | None = None, queues: int | None = None
    ) -> RouteRule:
        """A stale or wrong route: the topic is on these brokers, with so many queues on each."""
        check_text("topic", topic)
        if brokers is None and queues is None:
            raise WrongValueError("route needs brokers or queues", ["brokers", "queues"])
        names = (
            None
            if brokers is None
            else [self._broker("brokers", one) for one in check_names("brokers", brokers)]
        )
        count = None if queues is None else check_int("queues", queues)
        given = {"topic": topic, "brokers": names, "queues": count}
        words = {name: value for name, value in given.items() if value is not None}
        return self._routed("route", with_brokers(topic, names, count), words)

    def name_servers_disagree(self, topic: str, brokers: Mapping[str, Sequence[str]]) -> RouteRule:
        """Each name server says other brokers: `{"n0": ["b0"], "n1": ["b1"]}`."""
        check_text("topic", topic)
        if not isinstance(brokers, Mapping) or not brokers:
            raise WrongValueError(
                f"brokers must map name servers to lists of brokers, got {brokers!r}",
                self._rules.name_servers,
            )
        names = {
            check_choice("a name server", server, self._rules.name_servers): [
                self._broker("brokers", one) for one in check_names("brokers", listed)
            ]
            for server, listed in brokers.items()
        }
        words = {"topic": topic, "brokers": names}
        return self._routed("name_servers_disagree", with_brokers(topic, names), words)

    # -- the rules that stand

    @property
    def rules(self) -> list[AnyRule]:
        """In the order they were added; used-up ones too."""
        return list(self._rules.all)

    def remove(self, rule_id: int) -> bool:
        """Remove a rule by its id. False if there is no such rule."""
        for rule in self._rules.all:
            if rule.id == rule_id:
                rule.remove()
                return True
        return False

    def clear(self) -> None:
        """Remove all rules. What they hold back is still sent."""
        if self._rules.all:
            self._call(self._rules.clear)

    def check(self) -> None:
        """Raises `UnusedRulesError` if a rule was not used up, or if a function of a rule raised. The fixture does this
        at the end of each test."""
        if problems := [text for rule in self._rules.rules for text in _problems(rule, self._log)]:
            raise UnusedRulesError("\n".join(problems))

    # -- inside

    def _add(self, effect: effects.Effect, words: dict[str, Any], others: tuple[str, ...]) -> Rule:
        match, uses = words_of(effect.name, words, others=others)
        rule = Rule(next(self._ids), match, uses, effect, self._removed)
        self._call(lambda: self._rules.add(rule))
        return rule

    def _removed(self, rule: AnyRule) -> None:
        self._call(lambda: self._rules.remove(rule))

    def _routed(self, name: str, change: RouteChange, words: dict[str, Any]) -> RouteRule:
        rule = RouteRule(next(self._ids), name, change, words, self._removed)
        self._call(lambda: self._rules.add(rule))
        return rule

    def _broker(self, name: str, value: object) -> str:
        return check_choice(name, value, sorted(self._rules.brokers()))


def _problems(rule: Rule, log: RequestLog) -> list[str]:
    """What is wrong with a rule at the end of a test."""
    problems = [f"{rule}: {error}" for error in rule.errors]
    if rule.is_unused:
        used = f"used {rule.hit_count} of {rule.uses.times} times" if rule.hit_count else "never used"
        near = nearest(rule.match, log.entries(), _NEAREST)
        seen = f"the nearest requests were:\n{lines(near)}" if near else "no request was logged"
        problems.append(f"{rule} was {used}; {seen}")
    return problems


def _check_shape(shape: Shape) -> None:
    if shape == Shape():
        raise WrongValueError(
            "network needs latency, bandwidth, slice_bytes or half_open",
            ["latency", "bandwidth", "slice_bytes", "half_open"],
        )
    if shape.half_open and shape != Shape(half_open=True):
        raise WrongValueError(
            "half_open=True loses every byte: latency, bandwidth and slice_bytes must not be given with it",
            ["half_open alone"],
        )
