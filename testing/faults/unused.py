"""Rules that a test did not use up: what its failure says."""

from collections.abc import Sequence

from ..requests.report import lines, nearest
from ..requests.request_log import RequestLog
from .rule import Rule

_NEAREST = 3


def unused_text(rules: Sequence[Rule], log: RequestLog) -> str:
    """What is wrong with the rules at the end of a test; empty if nothing is."""
    return "\n".join(text for rule in rules if (text := _text(rule, log)))


def _text(rule: Rule, log: RequestLog) -> str:
    problems = [f"{rule}: {error}" for error in rule.errors]
    if rule.is_unused:
        problems.append(f"{rule} {_used(rule)}; {_seen(rule, log)}")
    return "\n".join(problems)


def _used(rule: Rule) -> str:
    if rule.hit_count == 0:
        return "was never used"
    return f"was used {rule.hit_count} of {rule.uses.times} times"


def _seen(rule: Rule, log: RequestLog) -> str:
    near = nearest(rule.match, list(log.entries()), _NEAREST)
    if not near:
        return "no request was logged"
    return f"the nearest requests were:\n{lines(near)}"
