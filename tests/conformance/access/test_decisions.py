"""Nothing passes our access control that the official broker's refuses: all codes, identities and resources.

Ours is compared with the recording every day, the official brokers at night.
"""

from pathlib import Path
from typing import Final

import pytest

from conformance.access import decisions
from conformance.daily import DAILY
from conformance.official.servers import OfficialServer
from conformance.on_demand import ON_DEMAND
from conformance.requests.transcripts import LINES
from conformance.servers.local_server import LocalServer

EACH_LINE = pytest.mark.parametrize("line", LINES)
STRICTER: Final = {
    "4.9": {
        50: "changes access keys: the official broker lets any key make itself an admin",
        51: "deletes access keys",
        53: "changes the addresses that need no key",
        320: "a batch: the official broker lets any key send it to any topic",
    },
    "5.5": {30001: "a request of our own, which the official broker does not know"},
}
"""Codes of which ours refuses more, and why."""


@DAILY
@EACH_LINE
def test_ours_lets_pass_what_the_official_broker_does(tmp_path: Path, line: str) -> None:
    ours = LocalServer(tmp_path, line=line, broker_conf=decisions.SETTINGS[line])
    found = {one.code: one for one in decisions.play(ours, line)}
    official = decisions.recorded(line)
    stricter = found.keys() & STRICTER[line].keys()
    assert [code for code in stricter if _is_refused_less(found[code], official[code])] == []
    assert {code: str(one) for code, one in found.items() if code not in stricter} == {
        code: str(one) for code, one in official.items() if code not in stricter
    }


def _is_refused_less(ours: decisions.Line, official: decisions.Line) -> bool:
    return any(
        (mine, theirs) == ("+", "-")
        for resource, signs in ours.signs.items()
        for mine, theirs in zip(signs, official.signs[resource], strict=True)
    )


@DAILY
@EACH_LINE
def test_the_recording_has_every_code_every_identity_and_both_decisions(line: str) -> None:
    official = decisions.recorded(line)
    assert sorted(official) == decisions.CODES
    identities = decisions.identities(line)
    for one in official.values():
        assert [*one.signs] == [*decisions.RESOURCES]
        assert {len(signs) for signs in one.signs.values()} == {len(identities)}
        strangers = [signs[: len(identities) - 4] for signs in one.signs.values()]
        assert not any("+" in signs for signs in strangers), "no right, whatever the request"
    columns = list(zip(*(one.signs["granted"] for one in official.values()), strict=True))
    mixed = [name for name, signs in zip(identities, columns, strict=True) if len({*signs}) > 1]
    assert mixed == ["no rights", "reader", "writer"]


@ON_DEMAND
@EACH_LINE
def test_the_official_broker_decides_as_recorded(peers: None, tmp_path: Path, line: str) -> None:
    official = OfficialServer(line, tmp_path, broker_conf=decisions.SETTINGS[line])
    found = {one.code: str(one) for one in decisions.play(official, line)}
    assert found == {code: str(one) for code, one in decisions.recorded(line).items()}
