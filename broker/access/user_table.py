"""Users and their rights (5.x), kept in config/users.json and config/acls.json.

    users.json   {"dataVersion":{...}, "users":{"alice":{"password":"...","userType":"Normal",...}}}
    acls.json    {"acls":{"User:alice":{"policies":[...],...}}, "dataVersion":{...}}

The official broker keeps them in RocksDB below its own auth path; neither broker reads the other's files. Passwords are
stored in plain text because they check signatures, so only the owner can read the files. `user_handlers.py` changes the
tables, `authorization.py` decides by them. Mirrors the metadata managers of the official auth module and their
messages.
"""

from pathlib import Path

from msgspec import field
from msgspec.structs import replace
from pocketmq.protocol.bodies.body import Body, DataVersion
from pocketmq.protocol.bodies.security import AclInfo, PolicyInfo, UserInfo
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout
from pocketmq.store.files.json_file import JsonFile

from ..tables.json_table import JsonTable, NowMs

CUSTOM, DEFAULT = "Custom", "Default"
SUPER, NORMAL = "Super", "Normal"
ENABLE, DISABLE = "enable", "disable"


class AccessRefusedError(Exception):
    """A user or right that cannot be created, changed or found; the message is the official broker's."""


class _Users(Body, frozen=True):
    users: dict[str, UserInfo] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class _Acls(Body, frozen=True):
    acls: dict[str, AclInfo] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class UserTable(JsonTable):
    """The users that may sign requests, by name."""

    state_fields = ("_users",)
    body_type = _Users

    def __init__(self, folder: Path, now_ms: NowMs) -> None:
        super().__init__(folder / layout.USERS, now_ms)
        self.file = JsonFile(self.file.path, mode=0o600)
        self._users: dict[str, UserInfo] = {}

    def find(self, username: str) -> UserInfo | None:
        """A user, with its password."""
        return self._users.get(username)

    def get(self, username: str | None) -> UserInfo | None:
        """Like `find`, but refuses a blank name: for administrators."""
        return self._users.get(_check_name(username))

    def matching(self, part: str | None) -> list[UserInfo]:
        """Users whose name contains `part`, in alphabetical order."""
        return [user for name, user in sorted(self._users.items()) if not part or part in name]

    def create(self, user: UserInfo) -> None:
        name = _check_name(user.username)
        if not user.password or user.password.isspace():
            raise AccessRefusedError("password can not be blank")
        if name in self._users:
            raise AccessRefusedError("The user is existed")
        self._users[name] = replace(
            user, user_type=user.user_type or NORMAL, user_status=user.user_status or ENABLE
        )
        self._changed()

    def update(self, user: UserInfo) -> None:
        """Change the properties that `user` has: password, type, status."""
        name = _check_name(user.username)
        known = self._users.get(name)
        if known is None:
            raise AccessRefusedError("The user is not exist")
        has_password = bool(user.password and not user.password.isspace())
        self._users[name] = replace(
            known,
            password=user.password if has_password else known.password,
            user_type=user.user_type or known.user_type,
            user_status=user.user_status or known.user_status,
        )
        self._changed()

    def delete(self, username: str | None) -> None:
        """Delete a user; does nothing if it does not exist."""
        if self._users.pop(_check_name(username), None) is not None:
            self._changed()

    def to_json(self) -> bytes:
        return fastjson.dumps(_Users(users=self._users, data_version=self.data_version), pretty=True)

    def _read(self, stored: _Users) -> None:
        self._users, self.data_version = stored.users, stored.data_version


class AclTable(JsonTable):
    """What each subject (`User:name`) may and may not do."""

    state_fields = ("_acls",)
    body_type = _Acls

    def __init__(self, folder: Path, now_ms: NowMs, users: UserTable) -> None:
        super().__init__(folder / layout.ACLS, now_ms)
        self.file = JsonFile(self.file.path, mode=0o600)
        self._users = users
        self._acls: dict[str, AclInfo] = {}

    def find(self, subject: str) -> AclInfo | None:
        return self._acls.get(subject)

    def get(self, subject: str) -> AclInfo | None:
        """Like `find`, but refuses an unknown user: for administrators."""
        self._check_user(subject, "The subject is not exist.")
        return self._acls.get(subject)

    def matching(self, subject_part: str | None, resource_part: str | None) -> list[AclInfo]:
        """The entries whose resource contains `resource_part`, of subjects that contain `subject_part`."""
        found = []
        for subject, acl in sorted(self._acls.items()):
            if subject_part and subject_part not in subject:
                continue
            policies = [
                replace(policy, entries=entries)
                for policy in acl.policies or []
                if (
                    entries := [
                        entry
                        for entry in policy.entries or []
                        if not resource_part or resource_part in (entry.resource or "")
                    ]
                )
            ]
            if policies:
                found.append(replace(acl, policies=policies))
        return found

    def put(self, acl: AclInfo) -> None:
        """Grant or change rights: replaces the entries of known resources, adds the others (3006, 3007)."""
        subject = acl.subject or ""
        self._check_user(subject, f"The subject of {subject} is not exist.")
        known = self._acls.get(subject)
        policies = {policy.policy_type: policy for policy in (known.policies if known else None) or []}
        for policy in acl.policies or []:
            kind = policy.policy_type or CUSTOM
            before = policies.get(kind)
            both = ((before.entries if before else None) or []) + (policy.entries or [])
            by_resource = {entry.resource: entry for entry in both}
            policies[kind] = PolicyInfo(policy_type=kind, entries=list(by_resource.values()))
        self._acls[subject] = AclInfo(subject=subject, policies=list(policies.values()))
        self._changed()

    def revoke(self, subject: str, policy_type: str | None, resource: str | None) -> None:
        """Delete the entries of a resource in one kind of policy, or all rights if `resource` is `None` (3008)."""
        self._check_user(subject, "The subject is not exist.")
        acl = self._acls.get(subject)
        if acl is None:
            raise AccessRefusedError("The acl is not exist.")
        left = []
        for policy in acl.policies or []:
            entries = policy.entries or []
            if resource is not None and policy.policy_type == (policy_type or CUSTOM):
                entries = [entry for entry in entries if entry.resource != resource]
            if entries:
                left.append(replace(policy, entries=entries))
        if resource is None or not left:
            del self._acls[subject]
        else:
            self._acls[subject] = replace(acl, policies=left)
        self._changed()

    def _check_user(self, subject: str, refusal: str) -> None:
        if self._users.find(subject.partition(":")[2]) is None:
            raise AccessRefusedError(refusal)

    def delete_rights(self, subject: str) -> None:
        if self._acls.pop(subject, None) is not None:
            self._changed()

    def to_json(self) -> bytes:
        return fastjson.dumps(_Acls(acls=self._acls, data_version=self.data_version), pretty=True)

    def _read(self, stored: _Acls) -> None:
        self._acls, self.data_version = stored.acls, stored.data_version


def _check_name(username: str | None) -> str:
    if username is None or not username.strip():
        raise AccessRefusedError("username can not be blank")
    return username
