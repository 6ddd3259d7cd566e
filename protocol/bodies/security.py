"""Bodies about users and their rights (5.x)."""

from .body import Body


class UserInfo(Body, frozen=True):
    """A user. `user_type` is Super or Normal, `user_status` enable or disable."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None


class PolicyEntryInfo(Body, frozen=True):
    """One rule. `decision` is Allow or Deny; `resource` is like `Topic:name`, `Group:prefix*`, `*`."""

    resource: str | None = None
    actions: list[str] | None = None
    source_ips: list[str] | None = None
    decision: str | None = None


class PolicyInfo(Body, frozen=True):
    """Rules of one kind: `policy_type` is Custom or Default."""

    policy_type: str | None = None
    entries: list[PolicyEntryInfo] | None = None


class AclInfo(Body, frozen=True):
    """The rights of a subject, which is like `User:name`."""

    subject: str | None = None
    policies: list[PolicyInfo] | None = None
