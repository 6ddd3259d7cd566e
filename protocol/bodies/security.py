"""Bodies about users and their rights (5.x)."""

from .body import Body


class UserInfo(Body, frozen=True):
    """3001-3005. `user_type` Super or Normal, `user_status` enable or disable."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None


class PolicyEntryInfo(Body, frozen=True):
    """`decision` is Allow or Deny; `resource` is like `Topic:name`, `Group:prefix*`, `*`."""

    resource: str | None = None
    actions: list[str] | None = None
    source_ips: list[str] | None = None
    decision: str | None = None


class PolicyInfo(Body, frozen=True):
    """`policy_type` is Custom or Default."""

    policy_type: str | None = None
    entries: list[PolicyEntryInfo] | None = None


class AclInfo(Body, frozen=True):
    """3006-3010. `subject` is like `User:name`."""

    subject: str | None = None
    policies: list[PolicyInfo] | None = None
