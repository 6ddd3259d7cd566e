"""Access keys of the 4.9 line: the file and its changes, and addresses that need no key.

What 4.9.7 answers, to changes of keys too, is in the recorded conversation `keys`.
"""

import os
from collections import deque
from pathlib import Path

import pytest
from pocketmq.broker.access.address_patterns import PatternError, parse_pattern
from pocketmq.broker.access.plain_acl import PlainAcl
from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import Refusal, StartError
from pocketmq.protocol.requests.security import UpdateGlobalWhiteAddrsConfig
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.signatures import signature_of

from broker_fakes import ask

FILE = """\
globalWhiteRemoteAddresses: [10.9.9.*]
accounts:
  - accessKey: adminadmin
    secretKey: 12345678
    admin: true
  - accessKey: normalnormal
    secretKey: 12345678
    whiteRemoteAddress: 10.1.1.1
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms: [Orders=PUB, Bills=PUB|SUB]
"""
PEER = "10.1.2.3:50000"


def signed(code: int, name: str, secret: str = "12345678", **fields: str) -> Command:
    fields["AccessKey"] = name
    content = "".join(fields[key] for key in sorted(fields)).encode()
    fields["Signature"] = signature_of(content, secret)
    return Command(code, 1, fields=fields)


@pytest.fixture
def acl(tmp_path: Path) -> PlainAcl:
    (tmp_path / "plain_acl.yml").write_text(FILE)
    made = PlainAcl(tmp_path)
    made.load()
    return made


def change(acl: PlainAcl, text: str) -> None:
    """A new file with a time of its own, however coarse the file system's clock is."""
    acl.default_file.write_text(text)
    now = acl.default_file.stat().st_mtime
    os.utime(acl.default_file, (now + 5, now + 5))
    deque(acl.reload_if_changed(), maxlen=0)


def test_a_look_at_many_files_can_be_interrupted_after_each(acl: PlainAcl) -> None:
    """It is due twice a second on the event loop, and the number of files is anybody's."""
    folder = acl.default_file.parent / "acl"
    folder.mkdir()
    for number in range(50):
        (folder / f"{number:02}.yml").write_text("")
    (folder / "keys.yml").write_text(FILE.replace("normalnormal", "another1"))
    look = acl.reload_if_changed()
    for _ in range(51):
        next(look)
    with pytest.raises(Refusal):
        acl(signed(310, "another1", a="p", b="Orders"), PEER)
    deque(look, maxlen=0)
    acl(signed(310, "another1", a="p", b="Orders"), PEER)


# -- addresses


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", [], ["10.0.0.1", ""]),
        ("*", ["10.0.0.1", "::1"], []),
        ("10.0.0.1", ["10.0.0.1", "::ffff:10.0.0.1"], ["10.0.0.10", "10.0.0"]),
        ("10.0.0.{1,3}", ["10.0.0.1", "10.0.0.3"], ["10.0.0.2"]),
        ("10.0.0.1,10.0.1.1", ["10.0.0.1", "10.0.1.1"], ["10.0.2.1"]),
        ("10.0.*.*", ["10.0.7.8"], ["10.1.7.8"]),
        ("10.0.5-9.*", ["10.0.5.1", "10.0.9.255"], ["10.0.10.1"]),
        ("1050:0:0:0:5:600:300c:*", ["1050::5:600:300c:9"], ["1050::5:600:300d:9"]),
        ("::1", ["::1"], ["::2", "127.0.0.1"]),
    ],
)
def test_patterns_of_addresses(pattern: str, matching: list[str], others: list[str]) -> None:
    matches = parse_pattern(pattern)
    assert [address for address in (*matching, *others) if matches(address)] == matching


@pytest.mark.parametrize(
    "text", ["10.0.0", "10.0.0.256", "10.0.9-5.*", "10.0.0{1,2}", "x.y.z.w", "{1}", "::x"]
)
def test_text_that_is_no_pattern(text: str) -> None:
    with pytest.raises(PatternError):
        parse_pattern(text)


# -- the guard


def test_addresses_without_key(acl: PlainAcl) -> None:
    acl(Command(17, 1, fields={}), "10.9.9.7:1234")
    acl(Command(17, 1, fields={"AccessKey": "normalnormal"}), "10.1.1.1:1234")
    with pytest.raises(Refusal, match="No accessKey is configured"):
        acl(Command(17, 1), PEER)


def test_keys_only_an_admin_may_change(acl: PlainAcl) -> None:
    with pytest.raises(Refusal, match="Need admin permission for request code=50"):
        acl(signed(50, "normalnormal", accessKey="normalnormal", admin="true"), PEER)
    acl(signed(50, "adminadmin", accessKey="normalnormal"), PEER)


# -- files


def test_a_changed_file_counts_at_once_and_a_torn_one_does_not(
    acl: PlainAcl, caplog: pytest.LogCaptureFixture
) -> None:
    change(acl, FILE.replace("12345678", "87654321"))
    acl(signed(310, "normalnormal", "87654321", a="p", b="Orders"), PEER)
    change(acl, "accounts: [{accessKey: adminadmin, secretKey: 'topsecret")
    acl(signed(310, "normalnormal", "87654321", a="p", b="Orders"), PEER)
    assert "not valid YAML" in caplog.text
    assert "topsecret" not in caplog.text


def test_files_of_the_acl_folder_count_and_the_first_key_wins(tmp_path: Path) -> None:
    (tmp_path / "plain_acl.yml").write_text(FILE)
    (tmp_path / "acl" / "deep").mkdir(parents=True)
    other = "accounts:\n  - {accessKey: otherother, secretKey: othersecret, admin: true}\n"
    (tmp_path / "acl" / "deep" / "other.yaml").write_text(other)
    (tmp_path / "acl" / "again.yml").write_text(other.replace("othersecret", "differents"))
    acl = PlainAcl(tmp_path)
    acl.load()
    acl(signed(17, "otherother", "differents", topic="T"), PEER)
    acl(signed(17, "adminadmin", topic="T"), PEER)


@pytest.mark.parametrize(
    "text",
    ["[]", "accounts: 3", "accounts: [3]", "accounts: [{accessKey: short, secretKey: hushhush}]", "a: b: c"],
)
def test_files_that_stop_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "plain_acl.yml").write_text(text)
    with pytest.raises(StartError) as failed:
        PlainAcl(tmp_path).load()
    assert "hushhush" not in str(failed.value)


# -- over the wire


@pytest.fixture
def broker4_with_keys(broker4: Broker, acl: PlainAcl) -> Broker:
    broker4.access.plain_acl = acl
    return broker4


async def test_white_addresses_are_replaced_unless_they_are_none(
    broker4_with_keys: Broker, acl: PlainAcl
) -> None:
    white = UpdateGlobalWhiteAddrsConfig(global_white_addrs="10.1.2.*", acl_file_full_path="")
    assert (await ask(broker4_with_keys, white)).code == 0
    acl(Command(17, 1), PEER)
    bad = UpdateGlobalWhiteAddrsConfig(global_white_addrs="10.1.2", acl_file_full_path="")
    assert (await ask(broker4_with_keys, bad)).code == 211
    acl(Command(17, 1), PEER)
    elsewhere = UpdateGlobalWhiteAddrsConfig(global_white_addrs="*", acl_file_full_path="/etc/passwd")
    assert (await ask(broker4_with_keys, elsewhere)).code == 211
