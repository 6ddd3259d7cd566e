"""mqadmin's commands for access keys (4.9.8) print the same on ours and on the official broker, both protected.

The tool signs with the keys of conf/tools.yml. Those for users and ACLs (5.5.0) are in `admin/commands.py`.
"""

import difflib
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conformance.access.test_access import PLAIN_ACL
from conformance.conftest import make_server
from conformance.on_demand import ON_DEMAND
from conformance.requests.conversations import with_plain_acl
from conformance.servers.server import Server

B = "-b 127.0.0.1:10911"
COMMANDS = (
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


def play(server: Server) -> list[str]:
    """Lines that mqadmin printed, without times and without the rows of Java stacks."""
    conf = server.programs.home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "tools.yml").write_text("accessKey: adminadmin\nsecretKey: '12345678'\n", encoding="utf-8")
    lines = []
    with server:
        admin = server.programs.admin_shell("4.9")
        for command in COMMANDS:
            lines.append(f"$ {command}")
            printed = admin(*command.split())
            printed = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*", "TIME", printed)
            printed = re.sub(r'(timestamp\\?"?[:=])\d+', r"\1TIME", printed.replace(str(server.home), "HOME"))
            printed = re.sub(r"(PlainAccessConfig)@[0-9a-f]+", r"\1", printed)
            printed = re.sub(r"HOME(/store)?/conf", "CONF", printed)
            lines += [line.rstrip() for line in printed.splitlines() if not line.startswith("\tat ")]
    return lines


@ON_DEMAND
def test_the_tool_prints_the_same(peers: None, tmp_path: Path) -> None:
    servers = [
        make_server(side, tmp_path / side, broker_conf=PLAIN_ACL) for side in ("ours-4.9", "official-4.9")
    ]
    for server in servers:
        with_plain_acl(server)
    with ThreadPoolExecutor() as pool:
        mine, expected = pool.map(play, servers)
    differences = "\n".join(difflib.unified_diff(expected, mine, "official", "ours", lineterm="", n=1))
    assert not differences, differences
    assert sum("success" in line for line in expected) > 4
