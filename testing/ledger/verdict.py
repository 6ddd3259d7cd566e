"""What the ledger says: a verdict on a group, its findings, and the history of one message."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from pocketmq.console.values import LedgerDelivery, LedgerFinding, LedgerMessage, LedgerVerdict

from ..errors import WrongValueError
from ..requests.logged_request import LoggedRequest

KINDS: Final = ("lost", "duplicated", "out_of_order", "offset_moved_back", "unread")
_SHOWN: Final = 10
_IN_JSON: Final = 100


class Finding(msgspec.Struct, frozen=True):
    """One message that did not fare as it should. `requests` prove it, oldest first."""

    message_id: str | None
    """For `offset_moved_back`, the first message that will be read again; None if it is not stored."""
    requests: list[LoggedRequest]
    broker: str
    topic: str
    queue_id: int
    queue_offset: int
    sharding_key: str | None = None
    client_id: str | None = None
    """For a broadcasting group, whose members are judged one by one."""

    def __str__(self) -> str:
        key = "" if self.sharding_key is None else f" (sharding key {self.sharding_key})"
        where = f"{self.topic} of {self.broker}, queue {self.queue_id}, offset {self.queue_offset}{key}"
        return "".join([f"{self.message_id}  {where}", *(f"\n      {one}" for one in self.requests)])

    def as_json(self) -> LedgerFinding:
        """For JSON: the same names."""
        requests = {"requests": [request.as_json() for request in self.requests]}
        return LedgerFinding(**msgspec.structs.asdict(self) | requests)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How a group fared with the messages of a topic; a finding in each list is one message, or one commit."""

    topic: str
    group: str
    lost: list[Finding] = []
    """The group's offset passed it, or it was acknowledged, but no member ever got it."""
    duplicated: list[Finding] = []
    """Delivered once more without a retry between; `requests` are the two."""
    out_of_order: list[Finding] = []
    """Delivered after a later message of its queue or sharding key, first deliveries only."""
    offset_moved_back: list[Finding] = []
    """A commit behind an earlier one; `requests` are the two."""
    unread: list[Finding] = []
    """Neither delivered nor passed."""
    forgotten: int = 0
    """Facts that left the ledger because it was full: the messages they were about are not judged."""

    def is_clean(self, allow: Iterable[str] = ()) -> bool:
        """Whether there is no finding, but of the kinds that are allowed."""
        return not any(getattr(self, kind) for kind in other_kinds(allow))

    def by_queue(self) -> "dict[tuple[str, int], Verdict]":
        """A verdict for each queue that has findings, by broker name and queue id."""
        found = {(one.broker, one.queue_id): one for kind in KINDS for one in getattr(self, kind)}
        return {
            key: msgspec.structs.replace(
                self,
                **{
                    kind: [one for one in getattr(self, kind) if (one.broker, one.queue_id) == key]
                    for kind in KINDS
                },
            )
            for key in sorted(found)
        }

    def report(self, allow: Iterable[str] = ()) -> str:
        """The findings as text: ten of each kind, with their requests."""
        lines = [f"group {self.group}, topic {self.topic}:"]
        for kind in other_kinds(allow):
            findings: list[Finding] = getattr(self, kind)
            if findings:
                lines.append(f"  {kind}: {len(findings)}")
                lines += [f"    {one}" for one in findings[:_SHOWN]]
        if self.forgotten:
            lines.append(f"  {self.forgotten} older facts left the ledger, which was full: not judged")
        return "\n".join(lines if len(lines) > 1 else [f"{lines[0]} clean"])

    __str__ = report

    def as_json(self) -> LedgerVerdict:
        """For JSON: the same names, the first findings of each kind, and how many there are in all."""
        found: dict[str, Any] = {
            kind: [one.as_json() for one in getattr(self, kind)[:_IN_JSON]] for kind in KINDS
        }
        counts = {kind: len(getattr(self, kind)) for kind in KINDS}
        return LedgerVerdict(
            topic=self.topic, group=self.group, **found, forgotten=self.forgotten, counts=counts
        )


def other_kinds(allow: Iterable[str]) -> list[str]:
    allowed = [allow] if isinstance(allow, str) else list(allow)
    for kind in allowed:
        if kind not in KINDS:
            raise WrongValueError(f"allow must name {', '.join(KINDS)}, got {kind!r}", KINDS)
    return [kind for kind in KINDS if kind not in allowed]


class MessageHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one message, its retries included."""

    message_id: str
    topic: str
    """The topic it was sent to."""
    deliveries: list[tuple[str, str | None]]
    """Group and client id of each, oldest first; None for a client that sent no heartbeat."""
    sent_back: int
    """How often a consumer sent it back."""
    acknowledged: bool
    """Whether a group acknowledged it: its offset passed it, or a pop of it was acknowledged."""
    dead_lettered: str | None
    """Why it went to a dead-letter topic; None if it did not."""

    def as_json(self) -> LedgerMessage:
        """For JSON: the same names; each delivery with `group` and `client_id`."""
        deliveries = {"deliveries": [LedgerDelivery(*one) for one in self.deliveries]}
        return LedgerMessage(**msgspec.structs.asdict(self) | deliveries)
