"""Decides whether a subject may perform an action on a resource: the rules of 5.x policies.

    entry       resource (`Topic:Orders`, `Group:bill*`, `Cluster:*`, `*`), actions, source addresses, Allow or Deny
    applies     if resource, action and address match; entries of the policy Custom precede those of Default
    decides     the most specific entry that applies: whole name, then longer prefix, then any name, then any resource;
                Deny wins between equals. If no entry applies, the action is denied.

Super users may do everything. Pure functions: `user_table.py` has users and rights, `access_rules.py` has the needs of
each request. Mirrors `UserAuthorizationHandler`, `AclAuthorizationHandler` and the models they use.
"""

from collections.abc import Iterable, Sequence
from ipaddress import ip_address, ip_network
from typing import Final, Literal

import msgspec
from pocketmq.protocol.bodies.security import AclInfo, PolicyEntryInfo
from pocketmq.protocol.message.topics import RETRY_PREFIX

from .user_table import CUSTOM, DEFAULT

ANY: Final = "*"
RESOURCE_TYPES: Final = ("Unknown", "Any", "Cluster", "Namespace", "Topic", "Group")
ACTIONS: Final = ("Unknown", "All", "Any", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List")
Pattern = Literal["any", "literal", "prefixed"]
_PATTERN_RANK: Final = {"literal": 0, "prefixed": 1, "any": 2}
"""The most specific pattern first."""


class Resource(msgspec.Struct, frozen=True):
    """The object of a right or of a need. `kind` is `Any` for all resources."""

    kind: str
    name: str | None
    pattern: Pattern = "literal"

    @property
    def key(self) -> str:
        if self.kind == "Any":
            return ANY
        star = "" if self.pattern == "literal" else "*"
        return f"{self.kind}:{'' if self.pattern == 'any' else self.name or ''}{star}"

    def covers(self, needed: "Resource") -> bool:
        if self.kind == "Any":
            return True
        if self.kind != needed.kind:
            return False
        if self.pattern == "any":
            return True
        if self.pattern == "literal":
            return self.name == needed.name
        return (needed.name or "").startswith(self.name or "")


class Need(msgspec.Struct, frozen=True):
    """A right that a request needs: one of `actions` on the resource suffices."""

    resource: Resource
    actions: tuple[str, ...]


def topic(name: str) -> Resource:
    return Resource("Topic", name)


def group(name: str) -> Resource:
    """A group, named by itself or by its retry topic."""
    return Resource("Group", name.removeprefix(RETRY_PREFIX))


def parse_resource(text: str | None) -> Resource | None:
    """Reads `Topic:x`, `Group:x*`, `Cluster:*` or `*`; `None` for any other text."""
    if text is None or not text.strip():
        return None
    if text == ANY:
        return Resource("Any", None, "any")
    kind_text, _, name = text.partition(":")
    kind = by_name(RESOURCE_TYPES, kind_text)
    if kind is None:
        return None
    if name == ANY:
        return Resource(kind, None, "any")
    if name.endswith(ANY):
        return Resource(kind, name.partition(ANY)[0], "prefixed")
    return Resource(kind, name)


def by_name(names: Iterable[str], text: str | None) -> str | None:
    """The official spelling of a name; `text` may be in any case."""
    wanted = (text or "").lower()
    return next((name for name in names if name.lower() == wanted), None)


def refusal(subject: str, acl: AclInfo | None, need: Need, source: str) -> str | None:
    """The reason why a subject that is not a super user lacks the right; `None` if it has it."""
    decision = None if acl is None else _decision(acl, need, source)
    if decision == "Allow":
        return None
    reason = "no matched policies." if decision is None else "the decision is deny."
    return f"{subject} has no permission to access {need.resource.key} from {source}, {reason}"


def _decision(acl: AclInfo, need: Need, source: str) -> str | None:
    for kind in (CUSTOM, DEFAULT):
        entries = [
            entry
            for policy in acl.policies or []
            if policy.policy_type == kind
            for entry in policy.entries or []
            if _applies(entry, need, source)
        ]
        if entries:
            return min(entries, key=_rank).decision
    return None


def _applies(entry: PolicyEntryInfo, need: Need, source: str) -> bool:
    resource = parse_resource(entry.resource)
    actions = entry.actions or []
    return (
        resource is not None
        and resource.covers(need.resource)
        and ("Any" in need.actions or "All" in actions or not set(actions).isdisjoint(need.actions))
        and (not entry.source_ips or is_in_ranges(source, entry.source_ips))
    )


def _rank(entry: PolicyEntryInfo) -> tuple[bool, int, int, bool]:
    resource = parse_resource(entry.resource)
    assert resource is not None  # `_applies` has parsed it
    length = len(resource.name or "") if resource.pattern == "prefixed" else 0
    return resource.kind == "Any", _PATTERN_RANK[resource.pattern], -length, entry.decision != "Deny"


def is_in_ranges(address: str, ranges: Sequence[str]) -> bool:
    """Whether an IP address equals one of the addresses or is part of one of the networks (`10.0.0.0/8`)."""
    try:
        parsed = ip_address(address.partition("%")[0].removeprefix("::ffff:"))
        return any(parsed in ip_network(text.strip(), strict=False) for text in ranges)
    except ValueError:
        return False


def is_address_range(text: str) -> bool:
    try:
        ip_network(text.strip(), strict=False)
    except ValueError:
        return False
    return True
