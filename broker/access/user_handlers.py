"""Users and rights for administrators, 5.x: 3001 to 3005, and 3006 to 3010.

The answers to 3004 and 3005 contain passwords, as in the official broker: mqadmin needs them to copy users. Mirrors the
auth part of `AdminBrokerProcessor`.
"""

from collections.abc import Callable
from typing import Final, TypeVar

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
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.signatures import ACCESS_KEY

from ..errors import Refusal
from ..network.dispatch import Answer, Call, CallWithBody, handles
from ..state.part import UNSET_REMARK
from ..tables.json_table import JsonTable
from .access_control import Access
from .authorization import ACTIONS, by_name, is_address_range, parse_resource
from .user_table import CUSTOM, DEFAULT, DISABLE, ENABLE, NORMAL, SUPER, AccessRefusedError

ResultT = TypeVar("ResultT")

_SYSTEM_ERROR: Final = "An system error occurred, please try again later."


# -- users


@handles(AuthCreateUser)
async def auth_create_user(access: Access, request: AuthCreateUser, call: CallWithBody[UserInfo]) -> Answer:
    """Create a user. Only a super user may create a super user."""
    user = _user_of(access, request.username, call, "create")
    return await _change_table(access, access.users, lambda: access.users.create(user))


@handles(AuthUpdateUser)
async def auth_update_user(access: Access, request: AuthUpdateUser, call: CallWithBody[UserInfo]) -> Answer:
    """Change password, type or status. Only a super user may change a super user."""
    user = _user_of(access, request.username, call, "update")
    known = access.users.find(user.username or "")
    if known is not None and known.user_type == SUPER and not _is_super_login(access, call):
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The super user can only be update by super user")
    return await _change_table(access, access.users, lambda: access.users.update(user))


@handles(AuthDeleteUser)
async def auth_delete_user(access: Access, request: AuthDeleteUser, call: Call) -> Answer:
    known = _run_if_configured(access, lambda: access.users.get(request.username))
    if known is not None and known.user_type == SUPER and not _is_super_login(access, call):
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The super user can only be update by super user")
    _run_if_configured(access, lambda: access.users.delete(request.username))
    access.acls.delete_rights(f"User:{request.username}")
    await access.tables.wait_until_saved(access.acls)
    return await _change_table(access, access.users, lambda: None)


@handles(AuthGetUser)
def auth_get_user(access: Access, request: AuthGetUser) -> Answer:
    """One user; no body if it does not exist."""
    if request.username is None or not request.username.strip():
        raise Refusal(ResponseCode.INVALID_PARAMETER, "The username is blank")
    user = _run_if_configured(access, lambda: access.users.get(request.username))
    return Answer(remark=UNSET_REMARK, body=None if user is None else user.encode())


@handles(AuthListUser)
def auth_list_user(access: Access, request: AuthListUser) -> Answer:
    """Users whose name contains the filter; no body if none does."""
    found = _run_if_configured(access, lambda: access.users.matching(request.filter))
    return Answer(remark=UNSET_REMARK, body=fastjson.dumps(found) if found else None)


def _user_of(access: Access, username: str | None, call: CallWithBody[UserInfo], verb: str) -> UserInfo:
    if not username:
        raise Refusal(ResponseCode.INVALID_PARAMETER, "The username is blank")
    body = call.read_body()
    user = UserInfo(
        username=username,
        password=body.password,
        user_type=by_name((SUPER, NORMAL), body.user_type),
        user_status=by_name((ENABLE, DISABLE), body.user_status),
    )
    if user.user_type == SUPER and not _is_super_login(access, call):
        remark = f"The super user can only be {verb} by super user"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    return user


def _is_super_login(access: Access, call: Call) -> bool:
    """Whether a super user sent the request. A request without an access key counts as a super user's, as in the
    official broker; with access control on, such a request never reaches a handler."""
    name = (call.command.fields or {}).get(ACCESS_KEY)
    if not name:
        return True
    user = access.users.find(name)
    if user is None:
        raise Refusal(ResponseCode.SYSTEM_ERROR, f"User:{name} is not found")
    return user.user_type == SUPER


# -- rights


@handles(AuthCreateAcl, AuthUpdateAcl)
async def auth_put_acl(
    access: Access, request: AuthCreateAcl | AuthUpdateAcl, call: CallWithBody[AclInfo]
) -> Answer:
    """Grant rights to a subject, or change them, by the same rules."""
    acl = _acl_of(request.subject, call)
    return await _change_table(access, access.acls, lambda: access.acls.put(acl))


@handles(AuthDeleteAcl)
async def auth_delete_acl(access: Access, request: AuthDeleteAcl) -> Answer:
    """Revoke rights: those on one resource, or all of the subject."""
    subject = _subject(request.subject)
    resource = parse_resource(request.resource)
    kind = by_name((CUSTOM, DEFAULT), request.policy_type)
    key = None if resource is None else resource.key
    return await _change_table(access, access.acls, lambda: access.acls.revoke(subject, kind, key))


@handles(AuthGetAcl)
def auth_get_acl(access: Access, request: AuthGetAcl) -> Answer:
    """The rights of a subject; no body if it has none."""
    subject = _subject(request.subject)
    acl = _run_if_configured(access, lambda: access.acls.get(subject))
    return Answer(remark=UNSET_REMARK, body=None if acl is None else acl.encode())


@handles(AuthListAcl)
def auth_list_acl(access: Access, request: AuthListAcl) -> Answer:
    """Rights whose subject and resource contain the filters; no body if none match."""
    found = _run_if_configured(
        access, lambda: access.acls.matching(request.subject_filter, request.resource_filter)
    )
    return Answer(remark=UNSET_REMARK, body=fastjson.dumps(found) if found else None)


def _subject(text: str | None) -> str:
    kind, _, name = (text or "").partition(":")
    if by_name(("User",), kind) is None:
        raise Refusal(ResponseCode.SYSTEM_ERROR, _SYSTEM_ERROR)
    return f"User:{name}"


def _acl_of(subject: str | None, call: CallWithBody[AclInfo]) -> AclInfo:
    owner = _subject(subject)
    policies = call.read_body().policies
    if not policies:
        remark = (
            "org.apache.rocketmq.auth.authorization.exception.AuthorizationException: The body of acl is null"
        )
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    checked = [
        PolicyInfo(
            policy_type=by_name((CUSTOM, DEFAULT), policy.policy_type) or CUSTOM,
            entries=[_entry_of(entry) for entry in policy.entries],
        )
        for policy in policies
        if policy.entries
    ]
    if not checked:
        raise Refusal(ResponseCode.NO_PERMISSION, "The policies is empty.")
    return AclInfo(subject=owner, policies=checked)


def _entry_of(entry: PolicyEntryInfo) -> PolicyEntryInfo:
    resource = parse_resource(entry.resource)
    if resource is None:
        raise Refusal(ResponseCode.NO_PERMISSION, "The resource is null.")
    actions = [name for text in entry.actions or [] if (name := by_name(ACTIONS, text)) is not None]
    if not actions:
        raise Refusal(ResponseCode.NO_PERMISSION, "The actions is empty.")
    if "Any" in actions:
        raise Refusal(ResponseCode.NO_PERMISSION, "The actions can not be Any.")
    for address in entry.source_ips or []:
        if not address.strip():
            raise Refusal(ResponseCode.NO_PERMISSION, "The source ip is empty.")
        if not is_address_range(address):
            raise Refusal(ResponseCode.NO_PERMISSION, "The source ip is invalid.")
    decision = by_name(("Allow", "Deny"), entry.decision)
    if decision is None:
        raise Refusal(ResponseCode.NO_PERMISSION, "The decision is null or illegal.")
    return PolicyEntryInfo(
        resource=resource.key, actions=actions, source_ips=entry.source_ips or None, decision=decision
    )


async def _change_table(access: Access, table: JsonTable, action: Callable[[], None]) -> Answer:
    _run_if_configured(access, action)
    await access.tables.wait_until_saved(table)
    return Answer(remark=UNSET_REMARK)


def _run_if_configured(access: Access, action: Callable[[], ResultT]) -> ResultT:
    config = access.config
    is_configured = bool(config.authentication_metadata_provider)
    if not (is_configured or config.authentication_enabled or config.authorization_enabled):
        remark = "The authenticationMetadataProvider is not configured."
        raise Refusal(ResponseCode.NO_PERMISSION, remark)
    try:
        return action()
    except AccessRefusedError as refusal:
        raise Refusal(ResponseCode.NO_PERMISSION, str(refusal)) from refusal
