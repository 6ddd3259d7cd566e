"""Users and their rights at 5.x brokers: create, change, delete, list.

Part of `AdminClient` (`client.py`). A broker keeps its own users and rights, so those of a cluster are changed at
masters and slaves alike. Each docstring names the official method.
"""

from collections.abc import Sequence
from typing import Any

from pocketmq.protocol.bodies.security import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from pocketmq.protocol.requests.security import (
    AuthCreateAcl,
    AuthCreateUser,
    AuthDeleteAcl,
    AuthDeleteUser,
    AuthGetAcl,
    AuthGetUser,
    AuthListAcl,
    AuthListUser,
    AuthUpdateAcl,
    AuthUpdateUser,
)
from pocketmq.protocol.wire.schema import Request, RequestBody

from .calls import AdminCalls, check_one_place


class AdminSecurity(AdminCalls):
    """`address` is a broker's `host:port`; `cluster` means all brokers of a cluster. One of them is given."""

    async def create_user(
        self, user: UserInfo, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Create a user; the brokers that did (createUser). `user_type` is Super or Normal, None for Normal."""
        request = AuthCreateUser(username=user.username)
        return await self._at_all(address, cluster, request, user)

    async def update_user(
        self, user: UserInfo, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Change the given parts of a user: password, type, `user_status` enable or disable (updateUser)."""
        request = AuthUpdateUser(username=user.username)
        return await self._at_all(address, cluster, request, user)

    async def delete_user(
        self, username: str, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Delete a user; the brokers that did (deleteUser)."""
        return await self._at_all(address, cluster, AuthDeleteUser(username=username))

    async def user(self, address: str, username: str) -> UserInfo | None:
        """One user of a broker, `None` if it has none of that name (getUser)."""
        return await self._call(address, AuthGetUser(username=username))

    async def users(self, address: str, name_part: str | None = None) -> list[UserInfo]:
        """Users of a broker whose name contains a text (listUser)."""
        return await self._call(address, AuthListUser(filter=name_part)) or []

    async def create_acl(
        self, acl: AclInfo, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Give rights to a subject; the brokers that did (createAcl). `acl_of` makes the value."""
        return await self._at_all(address, cluster, AuthCreateAcl(subject=acl.subject), acl)

    async def update_acl(
        self, acl: AclInfo, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Change the rights of a subject to the resources named (updateAcl)."""
        return await self._at_all(address, cluster, AuthUpdateAcl(subject=acl.subject), acl)

    async def delete_acl(
        self,
        subject: str,
        resource: str | None = None,
        *,
        address: str | None = None,
        cluster: str | None = None,
    ) -> list[str]:
        """Delete the rights of a subject, to one resource or to all (deleteAcl)."""
        return await self._at_all(address, cluster, AuthDeleteAcl(subject=subject, resource=resource))

    async def acl(self, address: str, subject: str) -> AclInfo | None:
        """The rights of a subject, `None` if it has none (getAcl)."""
        return await self._call(address, AuthGetAcl(subject=subject))

    async def acls(
        self, address: str, subject_part: str | None = None, resource_part: str | None = None
    ) -> list[AclInfo]:
        """Rights at a broker whose subject and resource contain these texts (listAcl)."""
        request = AuthListAcl(subject_filter=subject_part, resource_filter=resource_part)
        return await self._call(address, request) or []

    async def _at_all(
        self, address: str | None, cluster: str | None, request: Request[Any], body: RequestBody | None = None
    ) -> list[str]:
        check_one_place(address, cluster)
        targets = [address] if address is not None else await self.broker_addresses(cluster or "")
        return await self._call_all(targets, request, body)


def acl_of(
    subject: str,
    resources: Sequence[str],
    actions: Sequence[str],
    decision: str,
    source_ips: Sequence[str] | None = None,
) -> AclInfo:
    """Rights of `User:name` to each of the resources, such as `Topic:Orders` or `Group:*` (official AclInfo.of).

    Actions are All, Pub, Sub, Create, Update, Delete, Get, List; `decision` is Allow or Deny.
    """
    ips = None if source_ips is None else list(source_ips)
    entries = [PolicyEntryInfo(resource, list(actions), ips, decision) for resource in resources]
    return AclInfo(subject, [PolicyInfo(entries=entries)])
