"""A file with the access keys of the 4.9 line: conf/plain_acl.yml and each conf/acl/*.yml.

    globalWhiteRemoteAddresses: [10.10.103.*]      clients at these addresses need no key
    accounts:
      - accessKey: RocketMQ                        at least 7 characters, like the secret
        secretKey: 12345678
        whiteRemoteAddress: 192.168.0.*            from these addresses the key needs no signature
        admin: false                               an admin may do everything; some requests need an admin
        defaultTopicPerm: DENY                     DENY, PUB, SUB, PUB|SUB: for topics that are not listed
        defaultGroupPerm: SUB
        topicPerms: [topicA=DENY, topicB=PUB|SUB]
        groupPerms: [groupA=DENY]
    dataVersion: [{counter: 1, timestamp: 1700000000000}]

Reading only: `plain_acl_handlers.py` writes the files, `plain_acl.py` applies them. Mirrors `PlainAccessConfig` and
`PlainPermissionManager`'s parsing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from pocketmq.protocol.message.topics import retry_topic

from .address_patterns import Matches, PatternError, parse_pattern
from .plain_acl_needs import DENY, PUB, SUB

SHORTEST: Final = 7
"""Characters of an access key or a secret."""
_MAX_FILE_BYTES: Final = 1 << 24
_PERMS: Final = {"PUB": PUB, "SUB": SUB, "PUB|SUB": PUB | SUB, "SUB|PUB": PUB | SUB}


class AclError(Exception):
    """Access keys that cannot be read or changed."""


class Account(msgspec.Struct, frozen=True):
    access_key: str
    secret_key: str
    is_white: Matches
    admin: bool
    default_topic_perm: int
    default_group_perm: int
    perms: Mapping[str, int]
    """By topic and by retry topic of a group."""


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a file; empty for an empty or missing file. The text of `AclError` never contains the content."""
    import yaml

    if not path.exists():
        return {}
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise AclError(f"{path} must have at most {_MAX_FILE_BYTES} bytes")
    try:
        content = yaml.safe_load(path.read_bytes())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1}"
        raise AclError(f"{path}{line}: not valid YAML") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise AclError(f"{path} must contain a mapping")
    return content


def version_of(content: dict[str, Any]) -> dict[str, int]:
    versions = list_of(content, "dataVersion")
    first = versions[0] if versions and isinstance(versions[0], dict) else {}
    return {"counter": _number(first.get("counter")), "timestamp": _number(first.get("timestamp"))}


def account_of(entry: Any) -> Account:
    """An entry of `accounts`. Raises `AclError`."""
    if not isinstance(entry, dict):
        raise AclError(f"an account must be a mapping, got {type(entry).__name__}")
    access_key, secret_key = _text(entry.get("accessKey")), _text(entry.get("secretKey"))
    if not is_long_enough(access_key, secret_key):
        raise AclError(
            f"accessKey {access_key} and its secretKey must have at least {SHORTEST} characters each"
        )
    perms: dict[str, int] = {}
    for kind, name in (("group", "groupPerms"), ("topic", "topicPerms")):
        for row in list_of(entry, name):
            parts = [part for part in str(row).split("=") if part]
            if len(parts) != 2:
                raise AclError(f"Parse resource permission failed for {kind}:{row}")
            resource = parts[0].strip()
            perms[resource if kind == "topic" else retry_topic(resource)] = perm_of(parts[1])
    return Account(
        access_key=str(access_key),
        secret_key=str(secret_key),
        is_white=pattern_of(entry.get("whiteRemoteAddress")),
        admin=entry.get("admin") is True or str(entry.get("admin")).lower() == "true",
        default_topic_perm=perm_of(entry.get("defaultTopicPerm")),
        default_group_perm=perm_of(entry.get("defaultGroupPerm")),
        perms=perms,
    )


def is_long_enough(access_key: str | None, secret_key: str | None) -> bool:
    return len(access_key or "") >= SHORTEST and len(secret_key or "") >= SHORTEST


def perm_of(text: Any) -> int:
    """Reads `PUB`, `SUB` or `PUB|SUB`; any other text means DENY."""
    return _PERMS.get(str(text).strip(), DENY)


def pattern_of(text: Any) -> Matches:
    """The addresses that a text describes. Raises `AclError`."""
    try:
        return parse_pattern(_text(text))
    except PatternError as error:
        raise AclError(str(error)) from error


def list_of(content: dict[str, Any], name: str) -> list[Any]:
    """The list under a name; empty if the file has none. Raises `AclError`."""
    value = content.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise AclError(f"{name} must be a list")
    return value


def _text(value: Any) -> str | None:
    """A value as text: YAML reads a key of digits as a number."""
    return None if value is None else str(value)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else int(value) if str(value).isdecimal() else 0
