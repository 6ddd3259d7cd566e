"""Release names by their position, as in `MQVersion.getVersionDesc`: the first, the irregular and the last ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.languages import HIGHER_VERSION, version_name, version_names


@pytest.mark.parametrize(
    ("version", "name"),
    [
        *((0, "V3_0_0_SNAPSHOT"), (14, "V3_0_0_BETA9"), (15, "V3_0_0_FINAL"), (16, "V3_0_1_SNAPSHOT")),
        *((20, "V3_0_3_SNAPSHOT"), (27, "V3_0_6"), (45, "V3_0_15"), (46, "V3_1_0_SNAPSHOT"), (61, "V3_1_7")),
        *(
            (85, "V3_2_9"),
            (86, "V3_3_1_SNAPSHOT"),
            (103, "V3_3_9"),
            (104, "V3_4_1_SNAPSHOT"),
            (407, "V4_9_7"),
        ),
        *((413, "V5_0_0"), (513, "V5_5_0"), (611, "V5_9_9"), (612, "HIGHER_VERSION")),
        *((9999, "HIGHER_VERSION"), (-1, "V3_0_0_SNAPSHOT")),
    ],
)
def test_versions_have_their_official_names(version: int, name: str) -> None:
    assert version_name(version) == name


@given(st.integers(0, HIGHER_VERSION), st.integers(0, HIGHER_VERSION))
def test_no_two_versions_share_a_name(one: int, other: int) -> None:
    assert (version_name(one) == version_name(other)) == (one == other)


def test_the_list_ends_where_the_official_one_does() -> None:
    assert len(version_names()) == HIGHER_VERSION + 1
