"""Response codes against the constants of the official programs."""

import pytest
from pocketmq.protocol.wire.response_codes import ResponseCode

from official_vectors import rows

RENAMED = {
    209: ("UPDATE_AND_CREATE_ACL_CONFIG_FAILED", "POLLING_FULL"),
    210: ("DELETE_ACL_CONFIG_FAILED", "POLLING_TIMEOUT"),
    211: ("UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED", "BROKER_NOT_EXIST"),
}


def official(version: str) -> dict[str, int]:
    kinds = ("ResponseCode", "RemotingSysResponseCode")
    return {row[2]: int(row[1]) for row in rows(f"request-classes-{version}.tsv") if row[0] in kinds}


@pytest.mark.parametrize("version", ["4.9.8", "5.5.0"])
def test_every_official_code_has_its_number(version: str) -> None:
    codes = official(version)
    assert {name: ResponseCode[name].value for name in codes} == codes


def test_every_code_is_official() -> None:
    assert ResponseCode.__members__.keys() == official("4.9.8").keys() | official("5.5.0").keys()


def test_three_numbers_with_two_meanings_have_the_newer_name() -> None:
    two_names = {
        code.value: [name for name, member in ResponseCode.__members__.items() if member is code]
        for code in ResponseCode
    }
    clashes = {number: names for number, names in two_names.items() if len(names) > 1}
    assert {number: set(names) for number, names in clashes.items()} == {
        number: set(names) for number, names in RENAMED.items()
    }
    for number, (old, new) in RENAMED.items():
        assert ResponseCode(number).name == new
        assert official("4.9.8")[old] == official("5.5.0")[new] == number
