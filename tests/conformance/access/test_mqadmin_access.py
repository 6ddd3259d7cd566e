"""mqadmin's commands for access keys (4.9.8) and for users and ACLs (5.5.0), on ours and on the official broker.

The broker is protected: the tool signs with the keys of conf/tools.yml.
"""

import difflib
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.access import access_rows
from conformance.access.test_access import PLAIN_ACL
from conformance.official.servers import OfficialServer
from conformance.requests.conversations import with_plain_acl
from conformance.servers.our_server import OurServer
from conformance.servers.server import Server

B = "-b 127.0.0.1:10911"
KEYS: tuple[str, ...] = (
    f"updateAclConfig {B} -a freshkey -s freshsecret -i DENY -u SUB -t topicA=PUB,topicB=SUB -g groupA=SUB -m false",
    "updateAclConfig -c DefaultCluster -a freshkey -s othersecret -w 10.0.0.*",
    f"updateAclConfig {B} -a short -s othersecret",
    f"updateAclConfig {B} -a freshkey2 -s othersecret -t topicA=READ",
    "clusterAclConfigVersion -c DefaultCluster",
    f"deleteAclConfig {B} -a freshkey",
    f"deleteAclConfig {B} -a freshkey",
    "updateGlobalWhiteAddr -c DefaultCluster -g 10.9.9.9",
    f"updateTopic {B} -t Orders -r 1 -w 1",
    f"updateSubGroup {B} -g billing",
    f"brokerConsumeStats {B}",
)
USERS: tuple[str, ...] = (
    f"createUser {B} -u shop -p shoppassword -t Normal",
    f"createUser {B} -u shop -p shoppassword -t Normal",
    "createUser -c DefaultCluster -u boss -p bosspassword -t Super",
    f"getUser {B} -u shop",
    f"getUser {B} -u nobody",
    f"listUser {B}",
    f"listUser {B} -f sho",
    f"updateUser {B} -u shop -s disable",
    f"updateUser {B} -u nobody -p newpassword",
    f"updateUser {B} -u shop -p newpassword",
    f"updateUser {B} -u shop -s enable",
    f"updateUser {B} -u shop -t Super",
    f"updateUser {B} -u shop -t Normal",
    f"getUser {B} -u shop",
    f"createAcl {B} -s User:shop -r Topic:Orders,Group:billing -a Pub,Sub -i 10.0.0.0/8 -d Allow",
    f"createAcl {B} -s User:nobody -r Topic:Orders -a Pub -d Allow",
    f"createAcl {B} -s User:shop -r Topic:Orders -a Nonsense -d Allow",
    f"getAcl {B} -s User:shop",
    f"listAcl {B}",
    f"listAcl {B} -s shop -r billing",
    f"updateAcl {B} -s User:shop -r Topic:Orders -a Pub -d Deny",
    f"deleteAcl {B} -s User:shop -r Group:billing",
    f"getAcl {B} -s User:shop",
    f"deleteAcl {B} -s User:shop",
    f"getAcl {B} -s User:shop",
    f"deleteUser {B} -u shop",
    f"deleteUser {B} -u shop",
    f"listUser {B}",
    f"updateTopic {B} -t Orders -r 1 -w 1",
)


def play(server: Server, tool: str, key: str, secret: str, commands: tuple[str, ...]) -> list[str]:
    """Lines that mqadmin printed, without times and without the rows of Java stacks."""
    conf = server.programs.home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "tools.yml").write_text(f"accessKey: {key}\nsecretKey: '{secret}'\n", encoding="utf-8")
    lines = []
    with server:
        admin = server.programs.admin_shell(tool)
        for command in commands:
            lines.append(f"$ {command}")
            printed = admin(*command.split())
            printed = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*", "TIME", printed)
            printed = re.sub(r'(timestamp\\?"?[:=])\d+', r"\1TIME", printed.replace(str(server.home), "HOME"))
            printed = re.sub(r"(PlainAccessConfig)@[0-9a-f]+", r"\1", printed)
            printed = re.sub(r"HOME(/store)?/conf", "CONF", printed)
            lines += [line.rstrip() for line in printed.splitlines() if not line.startswith("\tat ")]
    return lines


@pytest.mark.parametrize("line", ["4.9", "5.5"])
def test_the_tool_prints_the_same(peers: None, tmp_path: Path, line: str) -> None:
    ours: Server
    official: Server
    if line == "4.9":
        ours = OurServer(tmp_path / "ours", emulate="4.9", broker_conf=PLAIN_ACL)
        official = OfficialServer("4.9", tmp_path / "official", broker_conf=PLAIN_ACL)
        for server in (ours, official):
            with_plain_acl(server)
        words = ("4.9", "adminadmin", "12345678", KEYS)
    else:
        ours = OurServer(tmp_path / "ours", broker_conf=access_rows.AUTH_SETTINGS)
        official = OfficialServer("5.5", tmp_path / "official", broker_conf=access_rows.AUTH_SETTINGS)
        words = ("5.5", "root", "rootpassword", USERS)
    with ThreadPoolExecutor() as pool:
        mine, expected = pool.map(lambda server: play(server, *words), (ours, official))
    differences = "\n".join(difflib.unified_diff(expected, mine, "official", "ours", lineterm="", n=1))
    assert not differences, differences
    assert sum("success" in line for line in expected) > 4
