"""Every recorded conversation: ours answers as recorded, every day; the official brokers still do, at night."""

import json
from pathlib import Path

import pytest

from conformance.daily import DAILY
from conformance.official.servers import OfficialServer
from conformance.on_demand import ON_DEMAND
from conformance.requests.conversations import TRANSCRIPTS
from conformance.requests.transcripts import Transcript
from conformance.servers import remoting
from conformance.servers.local_server import LocalServer
from conformance.servers.server import Server
from raw_peer import frame

ALL = pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda one: one.file.stem)


@DAILY
@ALL
def test_ours_answers_as_the_official_broker_did(tmp_path: Path, transcript: Transcript) -> None:
    ours = LocalServer(tmp_path, line=transcript.line, broker_conf=transcript.settings)
    assert not (differences := transcript.differences(transcript.play(ours))), differences


@ON_DEMAND
@ALL
def test_the_official_broker_answers_as_recorded(peers: None, tmp_path: Path, transcript: Transcript) -> None:
    official = OfficialServer(transcript.line, tmp_path, broker_conf=transcript.settings)
    assert not (differences := transcript.differences(transcript.play(official))), differences


@pytest.mark.parametrize(
    "changes", [{"language": 9}, {"language": None}, {"version": None}, {"extFields": None}]
)
def test_headers_of_other_languages_are_read(asked_side: Server, changes: dict[str, object]) -> None:
    """The language as a number (the C# and old C++ clients), and missing optional fields."""
    header: dict[str, object] = {"code": 28, "flag": 0, "language": "GO", "opaque": 77, "version": 1}
    header |= {"serializeTypeCurrentRPC": "JSON", "extFields": {}, **changes}
    header = {name: value for name, value in header.items() if value is not None}
    with asked_side.connect() as connection:
        connection.settimeout(30)
        whole = {**header, "code": 30, **_max_offset(changes)}
        connection.sendall(frame(json.dumps(whole).encode()))
        answer, _ = remoting.read_frame(connection)
    assert answer["opaque"] == 77
    assert json.dumps(answer.get("code")) in ("0", "1")


def _max_offset(changes: dict[str, object]) -> dict[str, object]:
    return {} if "extFields" in changes else {"extFields": {"topic": "TBW102", "queueId": "0"}}
