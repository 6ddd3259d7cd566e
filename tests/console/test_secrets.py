"""The port asks for no password, so it shows none."""

import base64
import json
from collections.abc import Iterator

import pytest
from pocketmq.testing import EmbeddedServer

from raw_peer import Peer

from .conftest import Api

PASSWORD = "horse-battery-staple"
USER = json.dumps({"username": "admin", "password": PASSWORD})


@pytest.fixture
def guarded() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(
        {"authenticationEnabled": "true", "initAuthenticationUser": USER}, admin_port=0
    ) as server:
        yield server


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (3001, {"username": "admin"}, USER),
        (3002, {"username": "admin"}, USER),
        (25, {}, f"initAuthenticationUser={USER}"),
        (318, {}, f"a={PASSWORD}"),
        (50, {"accessKey": "admin", "secretKey": PASSWORD}, ""),
        (34, {"Signature": PASSWORD, "SecurityToken": PASSWORD}, ""),
    ],
)
def test_the_request_log_hides_passwords(
    guarded: EmbeddedServer, code: int, fields: dict[str, str], body: str
) -> None:
    api = Api(guarded.admin_url)
    with Peer(int(guarded.broker_addr.rpartition(":")[2])) as peer:
        peer.call(code, fields, body.encode())
    shown = api.raw("GET", "/api/requests")[1]
    assert (b"********" in shown) or not body
    assert PASSWORD.encode() not in shown
    assert base64.b64encode(body.encode() or b"-") not in shown


def test_a_snapshot_has_no_users_and_leaves_them_as_they_are(guarded: EmbeddedServer) -> None:
    api = Api(guarded.admin_url)
    status, snapshot, _ = api.raw("GET", "/api/snapshot")
    assert (status, PASSWORD.encode() in snapshot) == (200, False)
    assert api.raw("PUT", "/api/snapshot", snapshot)[0] == 200
    user = guarded.node.broker.access.users.find("admin")
    assert user is not None
    assert user.password == PASSWORD
