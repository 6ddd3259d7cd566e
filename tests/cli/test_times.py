"""Times as users write them, and as commands print them."""

from datetime import datetime

import pytest
from pocketmq.cli.times import epoch_ms, local_time


@pytest.mark.parametrize("moment", [0, 1, 1_700_000_000_123, 1_720_000_000_999])
def test_a_printed_time_names_its_zone_and_is_read_as_the_same_moment(moment: int) -> None:
    printed = local_time(moment)
    assert datetime.fromisoformat(printed).utcoffset() is not None
    assert epoch_ms(printed) == moment


def test_no_time_is_a_dash() -> None:
    assert local_time(None) == local_time(-1) == "-"
