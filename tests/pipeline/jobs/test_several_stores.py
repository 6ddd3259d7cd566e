"""Jobs read the stores of several brokers as one: `--store NAME=DIR` for each of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")

from pocketmq.cli.pipeline.command import pipeline
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.jobs.sql.message_input import stores_named

from pipeline.tables.stores import COUNT, write_store

FEW = 100
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("several")
    return [f"a={write_store(folder / 'a')}", f"b={write_store(folder / 'b', FEW)}"]


@pytest.fixture
def run(stores: list[str], tmp_path: Path) -> Run:
    def run_job(*words: str, named: list[str] = stores) -> Any:
        file = tmp_path / "tables.json"
        given = [word for store in named for word in ("--store", store)]
        ran = CliRunner().invoke(pipeline, [*words, *given, "--quiet", "--json-file", str(file)])
        assert ran.exit_code in (0, 1), ran.output
        return json.loads(file.read_text())

    return run_job


def test_statistics_keep_the_queues_of_two_brokers_apart(run: Run, stores: list[str]) -> None:
    found = run("stats")
    assert sum(row["messages"] for row in found["topics"]) == COUNT + FEW
    queues = {(row["brokerName"], row["topic"], row["queueId"]): row["messages"] for row in found["queues"]}
    assert sum(count for (broker, _, _), count in queues.items() if broker == "b") == FEW
    assert len(queues) == 2 * len({queue[1:] for queue in queues})
    one = run("stats", named=[stores[1].partition("=")[2]])["queues"]
    assert "brokerName" not in one[0]


def test_a_message_is_found_with_its_broker(run: Run) -> None:
    found = run("find", "--key", "k3")["messages"]
    assert [(row["brokerName"], row["keys"]) for row in found] == [("a", "k3 all"), ("b", "k3 all")]
    found = run("find", "--key", f"k{FEW}")["messages"]
    assert [row["brokerName"] for row in found] == ["a"]


def test_queries_and_duplicates_see_every_store(run: Run) -> None:
    rows = run("sql", "select brokerName, count(*) as n from messages group by 1 order by 1")["rows"]
    assert [(row["brokerName"], row["n"]) for row in rows] == [("a", COUNT), ("b", FEW)]
    assert len(run("duplicates")["duplicates"]) == FEW, "both brokers have these ids"
    latest = run("latest")["latest"]
    assert sum(row["brokerName"] == "a" for row in latest) >= COUNT - FEW


def test_an_audit_names_the_broker_of_what_it_found(run: Run, tmp_path: Path, stores: list[str]) -> None:
    sound = run("audit")
    assert {row["brokerName"] for row in sound["queues"]} == {"a", "b"}
    assert sum(row["records"] for row in sound["queues"]) == COUNT + FEW
    broken = write_store(tmp_path / "broken", FEW)
    (log, *_) = sorted((broken / "commitlog").iterdir())
    data = bytearray(log.read_bytes())
    data[200] ^= 1
    log.write_bytes(data)
    ran = CliRunner().invoke(pipeline, ["audit", "--store", stores[0], "--store", f"c={broken}"])
    assert ran.exit_code == 1
    assert "c: " in ran.output
    assert "a: " not in ran.output


def test_a_cluster_is_compared_with_another(stores: list[str], tmp_path: Path) -> None:
    pair = ",".join(stores)
    assert CliRunner().invoke(pipeline, ["compare", pair, pair]).exit_code == 0
    ran = CliRunner().invoke(pipeline, ["compare", pair, stores[0]])
    assert ran.exit_code == 1
    assert "Orders: " in ran.output


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("a=/x", "/y"), "--store must be NAME=DIR if it is given several times, .* got '/y'"),
        (("/x", "a=/y"), "--store must be NAME=DIR"),
        (("a=/x", "a=/y"), "broker a is named twice"),
        (("=/x", "a=/y"), "--store must be NAME=DIR"),
    ],
)
def test_mistakes_are_named(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        stores_named(texts)


def test_one_store_needs_no_name(tmp_path: Path) -> None:
    with_sign = tmp_path / "a=b"
    with_sign.mkdir()
    assert stores_named(()) == (None, ())
    assert stores_named(("/x",)) == ("/x", ())
    assert stores_named((str(with_sign),)) == (str(with_sign), ())
    assert stores_named(("a=/x",)) == (None, (("a", "/x"),))
