"""`pocketmq admin`: users and permissions. The calls are those of `pocketmq.client.admin.security`."""

from collections.abc import Iterable

from click import echo
from pocketmq.client import AdminClient, ClientError
from pocketmq.client.admin.security import acl_of
from pocketmq.protocol.bodies.security import AclInfo, UserInfo

from .options import Options
from .texts import row

USER_ROW = "%-16s  %-22s  %-22s  %-22s"
ACL_ROW = "%-16s  %-10s  %-22s  %-20s  %-24s  %-10s"


async def create_user(admin: AdminClient, given: Options) -> None:
    user = UserInfo(given.required("username"), given.required("password"), given.text("userType"))
    for broker in await admin.create_user(user, **given.place()):
        echo(f"create user to {broker} success.")


async def update_user(admin: AdminClient, given: Options) -> None:
    user = UserInfo(
        given.required("username"), given.text("password"), given.text("userType"), given.text("userStatus")
    )
    for broker in await admin.update_user(user, **given.place()):
        echo(f"update user to {broker} success.")


async def delete_user(admin: AdminClient, given: Options) -> None:
    for broker in await admin.delete_user(given.required("username"), **given.place()):
        echo(f"delete user to {broker} success.")


async def get_user(admin: AdminClient, given: Options) -> None:
    for broker in await _brokers(admin, given):
        user = await admin.user(broker, given.required("username"))
        if user is not None:
            _show_users([user])
            return


async def list_user(admin: AdminClient, given: Options) -> None:
    for broker in await _brokers(admin, given):
        users = await admin.users(broker, given.text("filter"))
        if users:
            _show_users(users)
            if given.text("clusterName") is not None:
                echo(f"get user from {broker} success.")
            return


async def create_acl(admin: AdminClient, given: Options) -> None:
    for broker in await admin.create_acl(_given_acl(given), **given.place()):
        echo(f"create acl to {broker} success.")


async def update_acl(admin: AdminClient, given: Options) -> None:
    for broker in await admin.update_acl(_given_acl(given), **given.place()):
        echo(f"update acl to {broker} success.")


async def delete_acl(admin: AdminClient, given: Options) -> None:
    subject, resource = given.required("subject"), given.text("resources")
    for broker in await admin.delete_acl(subject, resource, **given.place()):
        echo(f"delete acl to {broker} success.")


async def get_acl(admin: AdminClient, given: Options) -> None:
    for broker in await _brokers(admin, given):
        acl = await admin.acl(broker, given.required("subject"))
        if acl is not None:
            _show_acls([acl])


async def list_acl(admin: AdminClient, given: Options) -> None:
    for broker in await _brokers(admin, given):
        acls = await admin.acls(broker, given.text("subject"), given.text("resource"))
        if acls:
            _show_acls(acls)


# -- parts


async def _brokers(admin: AdminClient, given: Options) -> list[str]:
    """The broker that was named, or the masters of the cluster."""
    address = given.text("brokerAddr")
    if address is not None:
        return [address]
    masters = await admin.master_addresses(given.required("clusterName"))
    if not masters:
        raise ClientError("there is no broker in cluster.")
    return masters


def _given_acl(given: Options) -> AclInfo:
    return acl_of(
        given.required("subject"),
        _words(given.required("resources")) or [],
        _words(given.required("actions")) or [],
        given.required("decision"),
        _words(given.text("sourceIp")),
    )


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _show_users(users: Iterable[UserInfo]) -> None:
    echo(row(USER_ROW, "#UserName", "#Password", "#UserType", "#UserStatus"))
    for one in users:
        echo(row(USER_ROW, one.username, one.password, one.user_type, one.user_status))


def _show_acls(acls: Iterable[AclInfo]) -> None:
    echo(row(ACL_ROW, "#Subject", "#PolicyType", "#Resource", "#Actions", "#SourceIp", "#Decision"))
    for acl in acls:
        if not acl.policies:
            echo(row(ACL_ROW, acl.subject, "", "", "", "", ""))
        for policy in acl.policies or ():
            for entry in policy.entries or ():
                cells = (entry.resource, entry.actions, entry.source_ips, entry.decision)
                echo(row(ACL_ROW, acl.subject, policy.policy_type, *cells))
