"""Requests about access keys, 4.9 line: 50 creates or changes a key, 51 deletes it, 52 answers the versions of the
files, 53 changes the white addresses.

A changed file is written anew and loses its comments, as in the official broker; the former content stays as .bak.
Only admins may change keys. Mirrors the ACL part of `AdminBrokerProcessor` of 4.9.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pocketmq.protocol.requests.security import (
    DeleteAclConfig,
    GetBrokerClusterAclInfo,
    GetBrokerClusterAclInfoReply,
    UpdateAndCreateAclConfig,
    UpdateGlobalWhiteAddrsConfig,
)
from pocketmq.protocol.text.fastjson import dumps
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store.files.json_file import JsonFile

from ..errors import Refusal
from ..network.dispatch import handles
from .access_control import Access
from .plain_acl import PlainAcl
from .plain_acl_file import AclError, account_of, is_long_enough, pattern_of, perm_of, read_yaml, version_of
from .plain_acl_needs import DENY

_FORMAT = (
    "Parse Resource format error for {}.\nThe expected resource format is 'Res=Perm'. For example: topicA=SUB"
)
_TOO_SHORT = "The accessKey={} and secretKey={} cannot be null and length should longer than 6"
"""Sent only to the client that sent that secret."""
_PERMISSION = (
    "Parse resource permission error for {}.\n"
    "The expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'."
)


@handles(UpdateAndCreateAclConfig)
def update_and_create_acl_config(access: Access, request: UpdateAndCreateAclConfig) -> None:
    """Create an access key in plain_acl.yml, or change the named properties of a key in its own file."""
    acl = _acl(access)
    path = acl.file_of.get(request.access_key) or acl.default_file
    with _changing(access, path, ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED) as content:
        if not is_long_enough(request.access_key, request.secret_key):
            raise AclError(_TOO_SHORT.format(request.access_key, request.secret_key))
        accounts: list[Any] = content.get("accounts") or []
        entry: dict[str, Any] = next((one for one in accounts if _has_key(one, request.access_key)), {})
        requested = {
            "accessKey": request.access_key,
            "secretKey": request.secret_key or None,
            "whiteRemoteAddress": request.white_remote_address,
            "admin": request.admin,
            "defaultTopicPerm": request.default_topic_perm or None,
            "defaultGroupPerm": request.default_group_perm or None,
            "topicPerms": _perms(request.topic_perms),
            "groupPerms": _perms(request.group_perms),
        }
        changed = entry | {name: value for name, value in requested.items() if value is not None}
        account_of(changed)
        content["accounts"] = [*(one for one in accounts if one is not entry), changed]


@handles(DeleteAclConfig)
def delete_acl_config(access: Access, request: DeleteAclConfig) -> None:
    path = _acl(access).file_of.get(request.access_key)
    if path is None:
        remark = f"The accesskey[{request.access_key}] corresponding to accessConfig has been deleted failed."
        raise Refusal(ResponseCode.DELETE_ACL_CONFIG_FAILED, remark)
    with _changing(access, path, ResponseCode.DELETE_ACL_CONFIG_FAILED) as content:
        accounts = content.get("accounts") or []
        content["accounts"] = [one for one in accounts if not _has_key(one, request.access_key)]


@handles(GetBrokerClusterAclInfo)
def get_broker_cluster_acl_info(
    access: Access, request: GetBrokerClusterAclInfo
) -> GetBrokerClusterAclInfoReply:
    """The version of each file."""
    acl = _acl(access)
    default = acl.versions.get(
        str(acl.default_file), {"counter": 0, "timestamp": access.identity.boot_time_ms}
    )
    return GetBrokerClusterAclInfoReply(
        version=dumps(default).decode(),
        all_acl_file_version=dumps(acl.versions).decode(),
        broker_name=access.config.broker_name,
        broker_addr=access.identity.address,
        cluster_name=access.config.broker_cluster_name,
    )


@handles(UpdateGlobalWhiteAddrsConfig)
def update_global_white_addrs_config(access: Access, request: UpdateGlobalWhiteAddrsConfig) -> None:
    """Replace the addresses in one file whose clients need no key."""
    acl = _acl(access)
    path = Path(request.acl_file_full_path) if request.acl_file_full_path else acl.default_file
    if path not in acl.files():
        remark = f"The globalWhiteAddresses[{request.global_white_addrs}] has been updated failed."
        raise Refusal(ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED, remark)
    addresses = [text.strip() for text in request.global_white_addrs.split(",") if text.strip()]
    with _changing(access, path, ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED) as content:
        for address in addresses:
            pattern_of(address)
        content["globalWhiteRemoteAddresses"] = addresses


def _acl(access: Access) -> PlainAcl:
    acl = access.plain_acl
    if acl is None:
        remark = "this broker does not use access keys: aclEnable is false"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    return acl


def _perms(text: str | None) -> list[str] | None:
    if text is None:
        return None
    rows = [row for row in text.split(",") if row]
    for row in rows:
        parts = [part for part in row.split("=") if part]
        if len(parts) != 2:
            raise AclError(_FORMAT.format(row))
        if parts[1].strip() != "DENY" and perm_of(parts[1]) == DENY:
            raise AclError(_PERMISSION.format(row))
    return rows


def _has_key(entry: Any, access_key: str) -> bool:
    return isinstance(entry, dict) and str(entry.get("accessKey")) == access_key


@contextmanager
def _changing(access: Access, path: Path, failure: ResponseCode) -> Iterator[dict[str, Any]]:
    """The content of a file, which is written and read again at the end. An error is a refusal with this code."""
    import yaml

    try:
        content = read_yaml(path)
        yield content
        version = version_of(content)
        content["dataVersion"] = [{"counter": version["counter"] + 1, "timestamp": access.clock.now_ms()}]
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        JsonFile(path, mode=0o600).save(text.encode())
        _acl(access).reload()
    except (AclError, OSError) as error:
        raise Refusal(failure, str(error)) from error
