"""`pocketmq admin` beside mqadmin 5.5.0: users, ACLs, cold data and exports, on an official 5.5.0 broker and on ours.

Both tools run the same commands on names of their own, and write files with the same content. Our broker gets only the
commands it serves.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker import node  # noqa: F401  fills the table of what is served
from pocketmq.broker.network import dispatch
from pocketmq.protocol.requests.security import AuthCreateUser

from conformance.admin.admin_shells import JAVA, PYTHON, PythonShell, differences_of
from conformance.conftest import make_server
from conformance.official.programs import AdminShell

BROKER = "127.0.0.1:10911"
PROVIDERS = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
CONF = {
    "authenticationMetadataProvider": PROVIDERS,
    "authorizationMetadataProvider": PROVIDERS.replace("authentication", "authorization").replace(
        "Authentication", "Authorization"
    ),
}

USERS = (
    f"createUser -b {BROKER} -u user_@ -p pass1 -t Super",
    "createUser -c DefaultCluster -u other_@ -p pass1",
    f"updateUser -b {BROKER} -u user_@ -p pass2",
    f"updateUser -b {BROKER} -u user_@ -s disable",
    f"getUser -b {BROKER} -u user_@",
    "getUser -c DefaultCluster -u other_@",
    f"getUser -b {BROKER} -u absent",
    f"listUser -b {BROKER} -f @",
    f"createAcl -b {BROKER} -s User:user_@ -r Topic:Orders,Group:* -a Pub,Sub -d Allow -i 192.168.1.1",
    "createAcl -c DefaultCluster -s User:other_@ -r Topic:Orders -a All -d Deny",
    "updateAcl -c DefaultCluster -s User:other_@ -r Topic:Orders -a Pub -d Allow",
    f"getAcl -b {BROKER} -s User:user_@",
    "getAcl -c DefaultCluster -s User:other_@",
    f"listAcl -b {BROKER} -s user_@",
    f"copyUser -f {BROKER} -t {BROKER} -u user_@,absent",
    f"copyAcl -f {BROKER} -t {BROKER} -s User:user_@",
    f"deleteAcl -b {BROKER} -s User:user_@ -r Topic:Orders",
    f"getAcl -b {BROKER} -s User:user_@",
    "deleteAcl -c DefaultCluster -s User:other_@",
    "deleteUser -c DefaultCluster -u other_@",
    f"deleteUser -b {BROKER} -u user_@",
)
DISK = (
    "updateColdDataFlowCtrGroupConfig -c DefaultCluster -g group_@ -v 1000",
    f"updateColdDataFlowCtrGroupConfig -b {BROKER} -g group_@ -v 2000",
    "removeColdDataFlowCtrGroupConfig -c DefaultCluster -g group_@",
    f"removeColdDataFlowCtrGroupConfig -b {BROKER} -g group_@",
    f"setCommitLogReadAheadMode -b {BROKER} -m 1",
    "setCommitLogReadAheadMode -c DefaultCluster -m 0",
    f"resetMasterFlushOffset -b {BROKER} -o 0",
    f"haStatus -b {BROKER}",
    "haStatus -c DefaultCluster",
    "cleanUnusedTopic -c DefaultCluster",
    f"cleanExpiredCQ -b {BROKER}",
    "deleteExpiredCommitLog",
    f"brokerConsumeStats -b {BROKER}",
)
OFFICIAL_ONLY = {
    "updateColdDataFlowCtrGroupConfig",
    "removeColdDataFlowCtrGroupConfig",
    "setCommitLogReadAheadMode",
    "resetMasterFlushOffset",
}
REFUSED = (
    f"updateUser -b {BROKER} -u absent -s disable",
    "createAcl -c DefaultCluster -s User:absent -r Topic:Orders -a All -d Deny",
    "getAcl -c DefaultCluster -s User:absent",
    "getBrokerEpoch -b broker-a",
    "setCommitLogReadAheadMode -c DefaultCluster -m 2",
    f"switchTimerEngine -b {BROKER} -e X",
)


SIDES = ["official-5.5", *(["ours"] if AuthCreateUser.code in dispatch.BROKER.table else [])]


@pytest.fixture(scope="module", params=SIDES)
def shells(
    request: pytest.FixtureRequest, peers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[AdminShell, PythonShell]]:
    """mqadmin and ours, at one broker with users and rights."""
    with make_server(request.param, tmp_path_factory.mktemp("upkeep"), broker_conf=CONF) as server:
        python = PythonShell(server)
        yield server.programs.admin_shell("5.5"), python
        python.close()


def test_users_and_rights(shells: tuple[AdminShell, PythonShell]) -> None:
    java, python = shells
    differences = differences_of(java, python, USERS)
    for line in REFUSED:
        ours = python(*line.split())
        if not ours.strip().startswith("EXIT 2: pocketmq: ") or "success" in java(*line.split()):
            differences.append(f"$ {line}\n{ours}")
    assert not differences, "\n".join(differences)


def test_disks_and_clean_up(shells: tuple[AdminShell, PythonShell]) -> None:
    java, python = shells
    is_ours = "not supported" in python("getColdDataFlowCtrInfo", "-b", BROKER)
    lines = [line for line in DISK if not is_ours or line.split()[0] not in OFFICIAL_ONLY]
    differences = differences_of(java, python, lines)
    assert not differences, "\n".join(differences)


def test_exported_files_hold_the_same(shells: tuple[AdminShell, PythonShell], tmp_path: Path) -> None:
    java, python = shells
    java("updateTopic", "-c", "DefaultCluster", "-t", "Orders", "-r", "3", "-w", "2")
    java("updateSubGroup", "-c", "DefaultCluster", "-g", "billing", "-r", "5")
    for line in (
        "exportMetadata -c DefaultCluster",
        "exportConfigs -c DefaultCluster",
        f"exportMetadata -b {BROKER} -t -s",
        f"exportMetadata -b {BROKER} -g",
    ):
        files: list[dict[str, Any]] = []
        for shell, name in ((java, JAVA), (python, PYTHON)):
            printed = shell(*line.split(), "-f", str(tmp_path / name))
            path = Path(printed.strip().removeprefix("export ").removesuffix(" success"))
            files.append(json.loads(path.read_text(encoding="utf-8")) | {"exportTime": 0})
        assert files[0] == files[1], line
