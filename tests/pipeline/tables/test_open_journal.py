"""A journal as an Arrow reader."""

from pathlib import Path

import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.tables import journal_dataset, open_journal
from pocketmq.testing import EmbeddedServer, RocketMQ


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journal")
    with EmbeddedServer(journal=folder) as server:
        rocketmq = RocketMQ(server)
        for number in range(3):
            rocketmq.send("T", f"m{number}")
    return folder


def test_entries_are_rows(journal: Path) -> None:
    sends = open_journal(
        journal, columns=["request", "fields"], filters=[("topic", "=", "T"), ("kind", "=", "exchange")]
    ).read_all()
    rows = [row for row in sends.to_pylist() if row["request"] == "SEND_MESSAGE_V2"]
    assert len(rows) == 3
    assert dict(rows[0]["fields"])["b"] == "T"
    assert "fields" not in open_journal(journal, columns="kind").schema.names


def test_a_journal_is_a_dataset_too(journal: Path) -> None:
    assert journal_dataset(journal).count_rows() == open_journal([str(journal)]).read_all().num_rows > 3


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is not a journal"):
        open_journal(tmp_path)


def test_no_journal_is_an_empty_table() -> None:
    assert open_journal([]).read_all().num_rows == 0
