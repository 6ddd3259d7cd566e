"""Users and their rights at 5.x brokers: create, change, delete, list.

A broker keeps its own users and rights, so those of a cluster are changed at masters and slaves alike.
"""

from collections.abc import Sequence
from typing import Unpack

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

from ..arguments import checks_arguments
from .calls import AdminCalls, Place


@checks_arguments
class AdminSecurity(AdminCalls):
    """`address` is a broker's `host:port`; `cluster` means all brokers of a cluster. One of them is given."""

    async def create_user(self, user: UserInfo, **place: Unpack[Place]) -> list[str]:
        """Create a user; the brokers that did (createUser). `user_type` is Super or Normal, None for Normal."""
        request = AuthCreateUser(username=user.username)
        return await self._change(place, request, user, with_slaves=True)

    async def update_user(self, user: UserInfo, **place: Unpack[Place]) -> list[str]:
        """Change the given parts of a user: password, type, `user_status` enable or disable (updateUser)."""
        request = AuthUpdateUser(username=user.username)
        return await self._change(place, request, user, with_slaves=True)

    async def delete_user(self, username: str, **place: Unpack[Place]) -> list[str]:
        """Delete a user; the brokers that did (deleteUser)."""
        return await self._change(place, AuthDeleteUser(username=username), with_slaves=True)

    async def user(self, address: str, username: str) -> UserInfo | None:
        """One user of a broker, `None` if it has none of that name (getUser)."""
        return await self._call(address, AuthGetUser(username=username))

    async def users(self, address: str, name_part: str | None = None) -> list[UserInfo]:
        """Users of a broker whose name contains a text (listUser)."""
        return await self._call(address, AuthListUser(filter=name_part)) or []

    async def create_acl(self, acl: AclInfo, **place: Unpack[Place]) -> list[str]:
        """Give rights to a subject; the brokers that did (createAcl). `acl_of` makes the value."""
        return await self._change(place, AuthCreateAcl(subject=acl.subject), acl, with_slaves=True)

    async def update_acl(self, acl: AclInfo, **place: Unpack[Place]) -> list[str]:
        """Change the rights of a subject to the resources named (updateAcl)."""
        return await self._change(place, AuthUpdateAcl(subject=acl.subject), acl, with_slaves=True)

    async def delete_acl(
        self, subject: str, resource: str | None = None, **place: Unpack[Place]
    ) -> list[str]:
        """Delete the rights of a subject, to one resource or to all (deleteAcl)."""
        return await self._change(place, AuthDeleteAcl(subject=subject, resource=resource), with_slaves=True)

    async def acl(self, address: str, subject: str) -> AclInfo | None:
        """The rights of a subject, `None` if it has none (getAcl)."""
        return await self._call(address, AuthGetAcl(subject=subject))

    async def acls(
        self, address: str, subject_part: str | None = None, resource_part: str | None = None
    ) -> list[AclInfo]:
        """Rights at a broker whose subject and resource contain these texts (listAcl)."""
        request = AuthListAcl(subject_filter=subject_part, resource_filter=resource_part)
        return await self._call(address, request) or []


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
