"""Rules of groups, permissions and dialects: ours answers each row as the official broker of the same line does."""

import difflib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.access.access_rows import Row
from conformance.official.servers import OfficialServer
from conformance.requests import group_rows
from conformance.servers import remoting
from conformance.servers.our_server import OurServer
from conformance.servers.raw_client import RawClient
from conformance.servers.remoting import Reply
from conformance.servers.server import BROKER_PORT, Server

BODIES = (38, 352, 353)
"""Requests whose bodies are compared; the others' are compared where they are the subject."""


def told(row: Row, reply: Reply) -> str:
    remark = re.sub(r"127\.0\.0\.1:\d{4,}", "PEER", reply.remark)
    remark = re.sub(r", (java\.base/|org\.apache\.|com\.alibaba)\S+\(\S+\)$", "", remark)
    body = reply.body.decode() if row.code in BODIES else ""
    if row.code == 11 and reply.code in (0, 19):
        return f"{row.code} {row.fields} -> may read {reply.fields.get('topicSysFlag')}"
    fields = {
        name: text for name, text in reply.fields.items() if name in ("forbiddenType", "nextBeginOffset")
    }
    return f"{row.code} {row.fields} {row.body[:80]!r} -> {reply.code} {remark} {fields} {body}"


def play(server: Server) -> list[str]:
    with server, RawClient(server) as client:
        return [told(row, client.call(row.code, row.body, **row.fields)) for row in group_rows.rows()]


@pytest.mark.parametrize("line", ["4.9", "5.5"])
def test_rows_are_answered_as_officially(peers: None, tmp_path: Path, line: str) -> None:
    ours = OurServer(tmp_path / "ours", emulate="4.9" if line == "4.9" else "5")
    with ThreadPoolExecutor() as pool:
        mine, official = pool.map(play, (ours, OfficialServer(line, tmp_path / "official")))
    differences = "\n".join(difflib.unified_diff(official, mine, "official", "ours", lineterm="", n=0))
    assert not differences, differences


@pytest.mark.parametrize(
    "changes", [{"language": 9}, {"language": None}, {"version": None}, {"extFields": None}]
)
def test_headers_of_other_languages_are_read(side: Server, changes: dict[str, object]) -> None:
    """A number for the language (the C# and old C++ clients), and what may be missing."""
    header: dict[str, object] = {"code": 28, "flag": 0, "language": "GO", "opaque": 77, "version": 1}
    header |= {"serializeTypeCurrentRPC": "JSON", "extFields": {}, **changes}
    header = {name: value for name, value in header.items() if value is not None}
    with side.namespace.connect(BROKER_PORT) as connection:
        connection.settimeout(30)
        connection.sendall(remoting.encode({**header, "code": 30, **_max_offset(changes)}))
        answer, _ = remoting.read_frame(connection)
    assert answer["opaque"] == 77
    assert json.dumps(answer.get("code")) in ("0", "1")


def _max_offset(changes: dict[str, object]) -> dict[str, object]:
    return {} if "extFields" in changes else {"extFields": {"topic": "TBW102", "queueId": "0"}}
