"""`pocketmq admin` beside mqadmin 5.5.0: users and ACLs, on an official 5.5.0 broker and on ours.

Both tools run the same commands on names of their own.
"""

from collections.abc import Iterator

import pytest
from pocketmq.broker import node  # noqa: F401  fills the table of what is served
from pocketmq.broker.network import dispatch
from pocketmq.protocol.requests.security import AuthCreateUser

from conformance.admin.admin_shells import PythonShell, differences_of
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
    f"deleteAcl -b {BROKER} -s User:user_@ -r Topic:Orders",
    f"getAcl -b {BROKER} -s User:user_@",
    "deleteAcl -c DefaultCluster -s User:other_@",
    "deleteUser -c DefaultCluster -u other_@",
    f"deleteUser -b {BROKER} -u user_@",
)
REFUSED = (
    f"updateUser -b {BROKER} -u absent -s disable",
    "createAcl -c DefaultCluster -s User:absent -r Topic:Orders -a All -d Deny",
    "getAcl -c DefaultCluster -s User:absent",
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
