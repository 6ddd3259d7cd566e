"""The access keys of a broker with aclEnable (4.9 line), and the check of each request against them.

The keys are in conf/plain_acl.yml and conf/acl/*.yml (`plain_acl_file.py`), which are read again when they change. If
several files contain a key, the first file counts. If a changed file cannot be read, the former keys stay valid. The
tables list a group under the name of its retry topic. Mirrors `PlainPermissionManager`; `plain_acl_needs.py` says what
a request needs, `plain_acl_handlers.py` changes keys on request.
"""

import contextlib
import logging
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from pocketmq.protocol.message.topics import RETRY_PREFIX
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.signatures import ACCESS_KEY

from ..errors import Refusal, StartError
from .address_patterns import Matches
from .plain_acl_file import Account, AclError, account_of, list_of, pattern_of, read_yaml, version_of
from .plain_acl_needs import ADMIN_CODES, PUB, is_allowed, needs_of
from .signatures import is_signed_with

_log = logging.getLogger("pocketmq.access")

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
_PACKAGE: Final = "org.apache.rocketmq.acl.common.AclException"


Mark = tuple[int, int]
"""Time in ns and size in bytes of a file."""


class PlainAcl:
    """Checks each request of a broker with aclEnable. Owned by the event loop's thread, which also reads the files."""

    def __init__(self, conf_folder: Path) -> None:
        self.default_file = conf_folder / "plain_acl.yml"
        self._folder = conf_folder / "acl"
        self._accounts: dict[str, Account] = {}
        self.file_of: dict[str, Path] = {}
        """By access key."""
        self._white: list[Matches] = []
        self._seen: dict[Path, Mark] = {}
        self.versions: dict[str, dict[str, int]] = {}
        """File name -> the dataVersion in it."""

    # -- files

    def load(self) -> None:
        """Read all files; a missing plain_acl.yml is created, empty, as in the official broker. Raises `StartError`."""
        try:
            if not self.default_file.exists():
                self.default_file.parent.mkdir(parents=True, exist_ok=True)
                self.default_file.touch(0o600)
            self.reload()
        except (AclError, OSError) as error:
            raise StartError(f"access keys: {error}") from error

    def reload_if_changed(self) -> Iterator[None]:
        """Read all files if the time or the size of one has changed. Due every half second; each `next` looks at one
        file of the folder."""
        marks: dict[Path, Mark] = {}
        try:
            for path in chain(self._folder.rglob("*"), (self.default_file,)):
                if (mark := _mark_of(path)) is not None:
                    marks[path] = mark
                yield
            if marks != self._seen:
                self.reload()
                _log.info("read the changed access keys: there are %d now", len(self._accounts))
        except (AclError, OSError) as error:
            self._seen = marks
            _log.error("cannot read the changed access keys, the former keys stay valid: %s", error)

    def files(self) -> list[Path]:
        """The files with access keys, the default file last."""
        return list(self._marks())

    def _marks(self) -> dict[Path, Mark]:
        paths = (*sorted(self._folder.rglob("*")), self.default_file)
        return {path: mark for path in paths if (mark := _mark_of(path)) is not None}

    def reload(self) -> None:
        marks = self._marks()
        accounts: dict[str, Account] = {}
        file_of: dict[str, Path] = {}
        white: list[Matches] = []
        versions: dict[str, dict[str, int]] = {}
        for path in marks:
            content = read_yaml(path)
            white += [pattern_of(text) for text in list_of(content, "globalWhiteRemoteAddresses")]
            for entry in list_of(content, "accounts"):
                account = account_of(entry)
                if account.access_key in accounts:
                    _log.warning(
                        "the access key %s is in several files: the first counts", account.access_key
                    )
                    continue
                accounts[account.access_key] = account
                file_of[account.access_key] = path
            versions[str(path)] = version_of(content)
        self._accounts, self.file_of, self._white, self.versions = accounts, file_of, white, versions
        self._seen = marks

    # -- the check

    def __call__(self, command: Command, peer: str) -> None:
        """Raises `Refusal` for a request that is not allowed."""
        address = peer.rpartition(":")[0]
        if any(matches(address) for matches in self._white):
            return
        access_key = (command.fields or {}).get(ACCESS_KEY)
        if access_key is None:
            raise refusal_from("No accessKey is configured")
        account = self._accounts.get(access_key)
        if account is None:
            raise refusal_from(f"No acl config for {access_key}")
        if account.is_white(address):
            return
        if not is_signed_with(account.secret_key, command, is_5=False):
            raise refusal_from(f"Check signature failed for accessKey={access_key}")
        _check(account, command)


def _mark_of(path: Path) -> Mark | None:
    """`None` for a path that is no file with access keys, or does not exist any more."""
    if path.suffix in (".yml", ".yaml"):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                return status.st_mtime_ns, status.st_size
    return None


def _check(account: Account, command: Command) -> None:
    needs = needs_of(command)
    if needs.get(TRACE_TOPIC) == PUB:
        return
    if command.code in ADMIN_CODES and not account.admin:
        raise refusal_from(
            f"Need admin permission for request code={command.code}, but accessKey={account.access_key} is not"
        )
    if account.admin and not account.perms:
        return
    for resource, wanted in needs.items():
        is_group = resource.startswith(RETRY_PREFIX)
        default = account.default_group_perm if is_group else account.default_topic_perm
        if not is_allowed(wanted, account.perms.get(resource, default)):
            name = f"group:{resource[len(RETRY_PREFIX) :]}" if is_group else f"topic:{resource}"
            raise refusal_from(f"No default permission for {name}")


def refusal_from(text: str) -> Refusal:
    """An exception as the official broker answers it, without the line of a Java stack that follows there."""
    return Refusal(ResponseCode.SYSTEM_ERROR, f"{_PACKAGE}: {text}")
