"""Access control: signatures, rights, the guard of a connection, and secrets that are never logged.

Words and codes of every refusal are in the recorded conversation `users`.
"""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.access.access_control import AccessControl, make_first_users, warn_if_open
from pocketmq.broker.access.access_rules import OWN_CODES, needs_of, rules
from pocketmq.broker.access.authorization import Need, Resource, parse_resource, refusal, topic
from pocketmq.broker.access.signatures import is_signed_with
from pocketmq.broker.access.user_table import AclTable, UserTable
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import Refusal, StartError
from pocketmq.client.connections.connection import Connection
from pocketmq.client.errors import RequestRefused
from pocketmq.protocol.bodies.security import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.requests.admin import GetBrokerRuntimeInfo
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import REQUESTS
from pocketmq.protocol.wire.signatures import signature_of

from broker.nodes import make_node, running

PEER = "10.1.2.3:50000"


def signed(code: int, name: str, secret: str, body: bytes = b"", version: int = 0, **fields: str) -> Command:
    fields["AccessKey"] = name
    content = "".join(fields[key] for key in sorted(fields)).encode() + body
    fields["Signature"] = signature_of(content, secret)
    return Command(code, 1, fields=fields, body=body or None, version=version)


def acl(*entries: tuple[str, str, str], kind: str = "Custom", ips: list[str] | None = None) -> AclInfo:
    made = [
        PolicyEntryInfo(resource=resource, actions=actions.split(), source_ips=ips, decision=decision)
        for resource, actions, decision in entries
    ]
    return AclInfo(subject="User:u", policies=[PolicyInfo(policy_type=kind, entries=made)])


# -- signatures


@pytest.mark.parametrize(("emulate", "version", "counts"), [(4, 500, False), (5, 399, False), (5, 400, True)])
def test_old_clients_leave_one_field_unsigned(emulate: int, version: int, counts: bool) -> None:
    fields = {"_UNIQUE_KEY_QUERY": "true", "topic": "T"}
    fields["Signature"] = signature_of(b"trueT" if counts else b"T", "secret")
    assert is_signed_with("secret", Command(12, 1, fields=fields, version=version), is_5=emulate == 5)


def test_no_signature_is_a_wrong_one() -> None:
    assert not is_signed_with("secret", Command(10, 1, fields={"AccessKey": "u"}), is_5=True)
    assert not is_signed_with("secret", Command(10, 1, fields={"Signature": "\udcff"}), is_5=True)
    assert is_signed_with("secret", signed(10, "u", "secret", topic="T"), is_5=True)


# -- rights


@pytest.mark.parametrize(
    ("rights", "allowed"),
    [
        (acl(("Topic:Order", "Pub", "Allow")), False),
        (acl(("Group:Orders", "Pub", "Allow")), False),
        (acl(("*", "Pub", "Allow")), True),
        (acl(("Topic:*", "Pub", "Allow"), ("Topic:Ord*", "Pub", "Deny")), False),
        (acl(("Topic:O*", "Pub", "Deny"), ("Topic:Ord*", "Pub", "Allow")), True),
        (acl(("Topic:Ord*", "Pub", "Deny"), ("Topic:Orders", "Pub", "Allow")), True),
        (acl(("*", "Pub", "Deny"), ("Topic:*", "Pub", "Allow")), True),
        (acl(("Topic:Orders", "Pub", "Allow"), ips=["10.1.2.4", "nonsense"]), False),
        (None, False),
    ],
)
def test_the_nearest_entry_decides(rights: AclInfo | None, allowed: bool) -> None:
    reason = refusal("User:u", rights, Need(topic("Orders"), ("Pub",)), "10.1.2.3")
    assert (reason is None) is allowed


def test_default_policy_counts_where_no_custom_entry_applies() -> None:
    custom = acl(("Topic:Other", "Pub", "Deny")).policies or []
    default = acl(("Topic:*", "Pub", "Allow"), kind="Default").policies or []
    both = AclInfo(subject="User:u", policies=[*custom, *default])
    assert refusal("User:u", both, Need(topic("Orders"), ("Pub",)), "1.1.1.1") is None
    assert refusal("User:u", both, Need(topic("Other"), ("Pub",)), "1.1.1.1") == (
        "User:u has no permission to access Topic:Other from 1.1.1.1, the decision is deny."
    )


@pytest.mark.parametrize("text", ["*", "Topic:*", "Topic:a*", "Group:g", "Cluster:c"])
def test_resources_are_written_as_they_are_read(text: str) -> None:
    resource = parse_resource(text)
    assert resource is not None
    assert resource.key == text


def test_text_that_is_no_resource() -> None:
    assert [parse_resource(text) for text in (None, "", " ", "Nonsense:a")] == [None] * 4


# -- what requests need


def test_needs_of_a_send_and_of_a_retry() -> None:
    plain = Command(310, 1, fields={"a": "p", "b": "Orders"})
    assert needs_of(plain, "C") == [Need(Resource("Topic", "Orders"), ("Pub",))]
    again = Command(310, 1, fields={"a": "g", "b": "%RETRY%g"})
    assert needs_of(again, "C") == [Need(Resource("Group", "g"), ("Sub",))]


def test_needs_of_a_heartbeat_are_its_groups_and_topics_but_retry_topics() -> None:
    consumer = {"groupName": "g", "subscriptionDataSet": [{"topic": "T"}, {"topic": "%RETRY%g"}]}
    body = json.dumps({"clientID": "c", "consumerDataSet": [consumer]}).encode()
    needs = needs_of(Command(34, 1, fields={"x": "y"}, body=body), "C")
    assert [need.resource.key for need in needs] == ["Group:g", "Topic:T"]
    assert needs_of(Command(34, 1, body=body), "C") == [], "without header fields"


def test_a_request_about_several_topics_needs_rights_on_each() -> None:
    listed = needs_of(Command(208, 1, fields={"consumerGroup": "g", "topicList": "a;b;"}), "C")
    assert [need.resource.key for need in listed] == ["Group:g", "Topic:a", "Topic:b"]


def test_a_request_of_ours_needs_a_rule() -> None:
    """Official requests without one need only a signature; a new one of ours would be open to every user."""
    explain = Command(30001, 1, fields={"topic": "T", "consumerGroup": "g"})
    assert needs_of(explain, "C") == [
        Need(Resource("Group", "g"), ("Get",)),
        Need(Resource("Topic", "T"), ("Get",)),
    ]
    for command in (Command(30002, 1, fields={"topic": "T"}), Command(30001, 1)):
        with pytest.raises(BodyError, match="has no rule"):
            needs_of(command, "C")


def test_every_request_of_ours_has_a_rule() -> None:
    assert {code for code in REQUESTS if code in OWN_CODES} <= rules().keys()


# -- the guard


@pytest.fixture
def tables(tmp_path: Path) -> tuple[UserTable, AclTable]:
    users = UserTable(tmp_path, lambda: 0)
    return users, AclTable(tmp_path, lambda: 0, users)


def guard_of(tables: tuple[UserTable, AclTable], **settings: Any) -> AccessControl:
    config = BrokerConfig(authentication_enabled=True, authorization_enabled=True, **settings)
    return AccessControl(config, *tables)


def test_a_white_listed_request_needs_nothing(tables: tuple[UserTable, AclTable]) -> None:
    guard = guard_of(tables, authentication_whitelist="28, 26", authorization_whitelist="28")
    guard(Command(28, 1), PEER)
    with pytest.raises(Refusal, match="username cannot be null"):
        guard(Command(105, 1, fields={"topic": "T"}), PEER)


def test_a_forged_body_is_refused(tables: tuple[UserTable, AclTable]) -> None:
    tables[0].create(UserInfo(username="root", password="rootpassword", user_type="Super"))
    guard = guard_of(tables)
    command = signed(310, "root", "rootpassword", b"one", a="p", b="Orders")
    guard(command, PEER)
    command.body = b"two"
    with pytest.raises(Refusal, match="check signature failed") as refused:
        guard(command, PEER)
    assert refused.value.code == 16


def test_an_unreadable_heartbeat_is_refused(tables: tuple[UserTable, AclTable]) -> None:
    tables[0].create(UserInfo(username="u", password="password"))
    with pytest.raises(Refusal, match="parse authorization context error"):
        guard_of(tables)(signed(34, "u", "password", b"{nonsense", x="y"), PEER)


def test_users_and_rights_are_kept_and_only_their_owner_reads_them(
    tables: tuple[UserTable, AclTable],
) -> None:
    users, acls = tables
    users.create(UserInfo(username="u", password="password"))
    acls.put(acl(("Topic:Orders", "Pub", "Allow")))
    assert users.persist()
    assert acls.persist()
    assert [table.file.path.stat().st_mode & 0o777 for table in tables] == [0o600, 0o600]
    again = UserTable(users.file.path.parent, lambda: 0)
    again.load()
    assert again.find("u") == UserInfo(
        username="u", password="password", user_type="Normal", user_status="enable"
    )
    rights = AclTable(users.file.path.parent, lambda: 0, again)
    rights.load()
    assert rights.get("User:u") == acls.get("User:u")


def test_first_users_are_made_once(tables: tuple[UserTable, AclTable]) -> None:
    users = tables[0]
    config = BrokerConfig(
        init_authentication_user='{"username":"root","password":"first"}',
        inner_client_authentication_credentials='{"accessKey":"inner","secretKey":"innersecret"}',
    )
    make_first_users(config, users)
    users.update(UserInfo(username="root", password="changed"))
    make_first_users(config, users)
    root, inner = users.find("root"), users.find("inner")
    assert root is not None
    assert inner is not None
    assert (root.password, root.user_type, inner.user_type) == ("changed", "Super", "Super")


@pytest.mark.parametrize("text", ["rootpassword", '{"username":"rootpassword"}', "[]"])
def test_a_bad_first_user_stops_the_start_without_showing_it(
    text: str, tables: tuple[UserTable, AclTable]
) -> None:
    with pytest.raises(StartError) as failed:
        make_first_users(BrokerConfig(init_authentication_user=text), tables[0])
    assert "rootpassword" not in str(failed.value)


# -- warnings and secrets


@pytest.mark.parametrize(
    ("host", "settings", "warned"),
    [
        ("127.0.0.1", {}, False),
        ("127.0.0.2", {}, False),
        ("::1", {}, False),
        ("0.0.0.0", {}, True),
        ("192.0.2.7", {}, True),
        ("0.0.0.0", {"authentication_enabled": True}, False),
        ("0.0.0.0", {"acl_enable": True}, False),
    ],
)
def test_an_open_server_is_warned_of(
    host: str, settings: dict[str, bool], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    warn_if_open(BrokerConfig(**settings), host)
    assert ("without access control" in caplog.text) is warned


# -- over a socket


async def test_a_protected_broker_over_a_socket(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    root = '{"username":"root","password":"veryrootpassword"}'
    async with running(
        make_node(tmp_path, authentication_enabled=True, init_authentication_user=root)
    ) as node:
        connection = await Connection.connect(node.broker_address)
        with pytest.raises(RequestRefused, match="username cannot be null"):
            await connection.call(GetBrokerRuntimeInfo())
        async with asyncio.timeout(30):
            with pytest.raises(RequestRefused, match="code 16"):
                await connection.call(GetBrokerRuntimeInfo())  # the connection stays
        connection.close()
    assert "veryrootpassword" not in caplog.text
    assert "veryrootpassword" in (tmp_path / "config" / "users.json").read_text()


async def test_our_own_questions_are_signed_with_the_inner_credentials(tmp_path: Path) -> None:
    inner = {"inner_client_authentication_credentials": '{"accessKey":"inner","secretKey":"innersecret"}'}
    guards = {"authentication_enabled": True, "authorization_enabled": True}
    async with (
        running(make_node(tmp_path / "a", **inner, **guards)) as asked,
        running(make_node(tmp_path / "b", **inner)) as asking,
    ):
        connection = await asking.server.connect(asked.broker_address)
        command, _ = await connection.call(GetBrokerRuntimeInfo(), timeout_seconds=30)
        assert b"bootTimestamp" in bytes(command.body or b"")
