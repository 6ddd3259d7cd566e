"""The garbage collector rests while the server starts, and later leaves the objects of the start alone."""

import gc
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from pocketmq.broker.process import freeze_start_objects
from pocketmq.cli.main import main


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_a_server_collects_again_but_not_what_its_start_made() -> None:
    gc.disable()
    freeze_start_objects()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 1000


@pytest.mark.parametrize(
    "words", [["serve", "--set", "listenPort=abc"], ["serve", "--print-config"], ["serve", "--help"]]
)
def test_a_start_that_ends_early_leaves_the_collector_on(words: list[str], tmp_path) -> None:
    CliRunner().invoke(main, [*words, "--store", str(tmp_path)])
    assert gc.isenabled()
