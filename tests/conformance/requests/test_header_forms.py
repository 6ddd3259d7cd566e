"""Requests with a binary header: replies, late replies and notices have the header form of the official line."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.official.servers import OfficialServer
from conformance.on_demand import ON_DEMAND
from conformance.requests import header_form_rows
from conformance.servers.our_server import OurServer


@pytest.mark.parametrize("line", ["4.9", "5.5"])
def test_frames_have_the_official_header_form(peers: None, tmp_path: Path, line: str) -> None:
    ours = OurServer(tmp_path / "ours", emulate="4.9" if line == "4.9" else "5")
    official = OfficialServer(line, tmp_path / "official")
    with ThreadPoolExecutor() as pool:
        ours_sent, official_sent = pool.map(header_form_rows.play, (ours, official))
    assert ours_sent == official_sent


@ON_DEMAND
def test_refusal_by_access_keys_is_json_in_the_4_9_line(peers: None, tmp_path: Path) -> None:
    settings = {"aclEnable": True}
    ours = OurServer(tmp_path / "ours", emulate="4.9", broker_conf=settings)
    official = OfficialServer("4.9", tmp_path / "official", broker_conf=settings)
    for server in (ours, official):
        conf = server.home / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (conf / "plain_acl.yml").write_text("accounts: []\n", encoding="utf-8")
    with ThreadPoolExecutor() as pool:
        ours_sent, official_sent = pool.map(header_form_rows.play_refused, (ours, official))
    assert ours_sent == official_sent == "code 1, form 0"
