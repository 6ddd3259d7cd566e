"""Users and their rights: access keys of 4.9 (50-53), users and policies of 5.x (3001-3010).

How a request is signed: `wire/signatures.py`.
"""

from ..bodies.security import AclInfo, UserInfo
from ..wire.schema import NoReply, Reply, Request, request


@request(50, only_in=4)
class UpdateAndCreateAclConfig(Request[NoReply], frozen=True, kw_only=True):
    """Create or change an access key. `CreateAccessConfigRequestHeader`; lists are joined by commas."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None


@request(51, only_in=4)
class DeleteAclConfig(Request[NoReply], frozen=True, kw_only=True):
    """Delete an access key. `DeleteAccessConfigRequestHeader`."""

    access_key: str


class GetBrokerClusterAclInfoReply(Reply, frozen=True, kw_only=True):
    """Versions of the access files, as JSON text. `GetBrokerAclConfigResponseHeader`."""

    version: str
    all_acl_file_version: str | None = None
    broker_name: str
    broker_addr: str
    cluster_name: str


@request(52, only_in=4)
class GetBrokerClusterAclInfo(Request[GetBrokerClusterAclInfoReply], frozen=True, kw_only=True):
    """Which access files does a broker have?"""


@request(53, only_in=4)
class UpdateGlobalWhiteAddrsConfig(Request[NoReply], frozen=True, kw_only=True):
    """Addresses that need no key, joined by commas. `UpdateGlobalWhiteAddrsConfigRequestHeader`."""

    global_white_addrs: str
    acl_file_full_path: str | None = None
    """The official class marks it mandatory, but mqadmin does not send it; then plain_acl.yml is meant."""


@request(3001, only_in=5, body=UserInfo)
class AuthCreateUser(Request[NoReply], frozen=True, kw_only=True):
    """Create a user. `CreateUserRequestHeader`."""

    username: str | None = None


@request(3002, only_in=5, body=UserInfo)
class AuthUpdateUser(Request[NoReply], frozen=True, kw_only=True):
    """Change a user. `UpdateUserRequestHeader`."""

    username: str | None = None


@request(3003, only_in=5)
class AuthDeleteUser(Request[NoReply], frozen=True, kw_only=True):
    """Delete a user. `DeleteUserRequestHeader`."""

    username: str | None = None


@request(3004, only_in=5)
class AuthGetUser(Request[UserInfo | None], frozen=True, kw_only=True):
    """One user. `GetUserRequestHeader`."""

    username: str | None = None


@request(3005, only_in=5)
class AuthListUser(Request[list[UserInfo] | None], frozen=True, kw_only=True):
    """Users whose name contains the filter. `ListUsersRequestHeader`."""

    filter: str | None = None


@request(3006, only_in=5, body=AclInfo)
class AuthCreateAcl(Request[NoReply], frozen=True, kw_only=True):
    """Give rights to a subject, `User:name`. `CreateAclRequestHeader`."""

    subject: str | None = None


@request(3007, only_in=5, body=AclInfo)
class AuthUpdateAcl(Request[NoReply], frozen=True, kw_only=True):
    """Change the rights of a subject. `UpdateAclRequestHeader`."""

    subject: str | None = None


@request(3008, only_in=5)
class AuthDeleteAcl(Request[NoReply], frozen=True, kw_only=True):
    """Remove rights, of one policy type or resource if named. `DeleteAclRequestHeader`."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


@request(3009, only_in=5)
class AuthGetAcl(Request[AclInfo | None], frozen=True, kw_only=True):
    """The rights of a subject. `GetAclRequestHeader`."""

    subject: str | None = None


@request(3010, only_in=5)
class AuthListAcl(Request[list[AclInfo] | None], frozen=True, kw_only=True):
    """Rights by subject and resource. `ListAclsRequestHeader`."""

    subject_filter: str | None = None
    resource_filter: str | None = None
