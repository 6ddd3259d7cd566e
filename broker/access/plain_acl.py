"""Access keys of the 4.9 line: conf/plain_acl.yml and conf/acl/*.yml, read again when they change.

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

The tables list a group under the name of its retry topic. If several files contain a key, the first one counts. If a
changed file cannot be read, the former keys stay. Mirrors `PlainPermissionManager`; `plain_acl_needs.py` says what a
request needs, `plain_acl_handlers.py` changes keys over the wire.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from pocketmq.protocol.message.topics import RETRY_PREFIX, retry_topic
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.signatures import ACCESS_KEY

from ..errors import Refusal, StartError
from .address_patterns import Matches, PatternError, parse_pattern
from .plain_acl_needs import ADMIN_CODES, DENY, PUB, SUB, is_allowed, needs_of
from .signatures import is_signed_with

_log = logging.getLogger("pocketmq.access")

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
SHORTEST: Final = 7
"""Characters of an access key or a secret."""
_MAX_FILE_BYTES: Final = 1 << 24
_PERMS: Final = {"PUB": PUB, "SUB": SUB, "PUB|SUB": PUB | SUB, "SUB|PUB": PUB | SUB}
_PACKAGE: Final = "org.apache.rocketmq.acl.common.AclException"


class AclError(Exception):
    """Access keys that cannot be read or changed, in the official words."""


class Account(msgspec.Struct, frozen=True):
    """One access key and its rights."""

    access_key: str
    secret_key: str
    is_white: Matches
    admin: bool
    default_topic_perm: int
    default_group_perm: int
    perms: Mapping[str, int]
    """By topic and by retry topic of a group."""


class PlainAcl:
    """The guard of a broker with aclEnable. Owned by the event loop's thread; files are small."""

    def __init__(self, conf_folder: Path) -> None:
        self.default_file = conf_folder / "plain_acl.yml"
        self._folder = conf_folder / "acl"
        self._accounts: dict[str, Account] = {}
        self._file_of: dict[str, Path] = {}
        self._white: list[Matches] = []
        self._seen: dict[Path, tuple[int, int]] = {}
        self.versions: dict[str, dict[str, int]] = {}
        """File name -> the dataVersion in it."""

    # -- files

    def load(self) -> None:
        """Read all files; a missing plain_acl.yml is created, empty, as in the official broker. Raises `StartError`."""
        try:
            if not self.default_file.exists():
                self.default_file.parent.mkdir(parents=True, exist_ok=True)
                self.default_file.touch(0o600)
            self._read()
        except (AclError, OSError) as error:
            raise StartError(f"access keys: {error}") from error

    def reload_if_changed(self) -> None:
        """Due every half second; a look at the files' times and sizes."""
        try:
            if self._marks() != self._seen:
                self._read()
                _log.info("access keys were read again: %d", len(self._accounts))
        except (AclError, OSError) as error:
            self._seen = self._marks()
            _log.error("changed access keys cannot be read, the former ones stay: %s", error)

    def files(self) -> list[Path]:
        """The files with access keys, the default file last."""
        found = sorted(path for path in self._folder.rglob("*") if path.suffix in (".yml", ".yaml"))
        return [*(path for path in found if path.is_file()), self.default_file]

    def _marks(self) -> dict[Path, tuple[int, int]]:
        marks = {}
        for path in self.files():
            if path.exists():
                status = path.stat()
                marks[path] = (status.st_mtime_ns, status.st_size)
        return marks

    def _read(self) -> None:
        marks = self._marks()
        accounts: dict[str, Account] = {}
        file_of: dict[str, Path] = {}
        white: list[Matches] = []
        versions: dict[str, dict[str, int]] = {}
        for path in marks:
            content = read_yaml(path)
            white += [pattern_of(one) for one in _list(content, "globalWhiteRemoteAddresses")]
            for entry in _list(content, "accounts"):
                account = account_of(entry)
                if account.access_key in accounts:
                    _log.warning("the access key %s is in several files", account.access_key)
                    continue
                accounts[account.access_key] = account
                file_of[account.access_key] = path
            versions[str(path)] = version_of(content)
        self._accounts, self._file_of, self._white, self.versions = accounts, file_of, white, versions
        self._seen = marks

    def file_of(self, access_key: str) -> Path | None:
        return self._file_of.get(access_key)

    def taken(self) -> None:
        """A file was changed by us: read it now, not in half a second."""
        self._read()

    # -- the guard

    def is_admin(self, command: Command) -> bool:
        """Whether an admin's key is on a command the guard let through."""
        account = self._accounts.get((command.fields or {}).get(ACCESS_KEY, ""))
        return account is not None and account.admin

    def __call__(self, command: Command, peer: str) -> None:
        """Raises `Refusal` for a request that may not be sent."""
        address = peer.rpartition(":")[0]
        if any(matches(address) for matches in self._white):
            return
        access_key = (command.fields or {}).get(ACCESS_KEY)
        if access_key is None:
            raise refused("No accessKey is configured")
        account = self._accounts.get(access_key)
        if account is None:
            raise refused(f"No acl config for {access_key}")
        if account.is_white(address):
            return
        if not is_signed_with(account.secret_key, command, is_5=False):
            raise refused(f"Check signature failed for accessKey={access_key}")
        _check(account, command)


def _check(account: Account, command: Command) -> None:
    needs = needs_of(command)
    if needs.get(TRACE_TOPIC) == PUB:
        return
    if command.code in ADMIN_CODES and not account.admin:
        raise refused(
            f"Need admin permission for request code={command.code}, but accessKey={account.access_key} is not"
        )
    if account.admin and not account.perms:
        return
    for resource, wanted in needs.items():
        is_group = resource.startswith(RETRY_PREFIX)
        default = account.default_group_perm if is_group else account.default_topic_perm
        if not is_allowed(wanted, account.perms.get(resource, default)):
            name = f"group:{resource[len(RETRY_PREFIX) :]}" if is_group else f"topic:{resource}"
            raise refused(f"No default permission for {name}")


def refused(text: str) -> Refusal:
    """As the official broker answers an exception; its text goes on with a line of a Java stack."""
    return Refusal(ResponseCode.SYSTEM_ERROR, f"{_PACKAGE}: {text}")


# -- the text form


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
    versions = _list(content, "dataVersion")
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
        for row in _list(entry, name):
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
    """`PUB|SUB` and the like; anything else denies."""
    return _PERMS.get(str(text).strip(), DENY)


def pattern_of(text: Any) -> Matches:
    """The addresses a text describes. Raises `AclError`."""
    try:
        return parse_pattern(_text(text))
    except PatternError as error:
        raise AclError(str(error)) from error


def _list(content: dict[str, Any], name: str) -> list[Any]:
    value = content.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise AclError(f"{name} must be a list")
    return value


def _text(value: Any) -> str | None:
    """Keys made of digits are numbers in YAML."""
    return None if value is None else str(value)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else int(value) if str(value).isdecimal() else 0
