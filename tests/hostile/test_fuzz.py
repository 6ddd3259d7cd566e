"""A short run of `fuzz.py` keeps all rules; `make fuzz` has long ones."""

from pathlib import Path

import pytest

from hostile.fuzz import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_requests_at_random_to_every_port_leave_nothing_and_stop_nobody(tmp_path: Path) -> None:
    report = run(tmp_path, 6000, "a short run")
    assert report.broken == []
    assert report.requests >= 6000
    assert len(report.cpu_ms) > 50
