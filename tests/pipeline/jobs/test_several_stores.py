"""Jobs read the stores of several brokers as one: `--store NAME=DIR` for each of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.jobs.sql.message_input import stores_named

from pipeline.commands import run, tables
from pipeline.store_files import overwrite
from pipeline.tables.stores import COUNT, write_store

FEW = 100
Tables = Callable[..., Any]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("several")
    return [f"a={write_store(folder / 'a')}", f"b={write_store(folder / 'b', FEW)}"]


@pytest.fixture
def of_both(stores: list[str], tmp_path: Path) -> Tables:
    """of_both(words...): the tables of a job."""
    return lambda *words: tables(tmp_path, *words, "--store", stores[0], "--store", stores[1])


def test_statistics_keep_the_queues_of_two_brokers_apart(
    of_both: Tables, stores: list[str], tmp_path: Path
) -> None:
    found = of_both("stats")
    assert sum(row["messages"] for row in found["topics"]) == COUNT + FEW
    queues = {(row["brokerName"], row["topic"], row["queueId"]): row["messages"] for row in found["queues"]}
    assert sum(count for (broker, _, _), count in queues.items() if broker == "b") == FEW
    assert len(queues) == 2 * len({queue[1:] for queue in queues})
    one = tables(tmp_path, "stats", "--store", stores[1].partition("=")[2])["queues"]
    assert "brokerName" not in one[0]


def test_a_message_is_found_with_its_broker(of_both: Tables) -> None:
    found = of_both("find", "--key", "k3")["messages"]
    assert [(row["brokerName"], row["keys"]) for row in found] == [("a", "k3 all"), ("b", "k3 all")]
    found = of_both("find", "--key", f"k{FEW}")["messages"]
    assert [row["brokerName"] for row in found] == ["a"]


def test_queries_and_duplicates_see_every_store(of_both: Tables) -> None:
    rows = of_both("sql", "select brokerName, count(*) as n from messages group by 1 order by 1")["rows"]
    assert [(row["brokerName"], row["n"]) for row in rows] == [("a", COUNT), ("b", FEW)]
    assert len(of_both("duplicates")["duplicates"]) == FEW, "both brokers have these ids"
    latest = of_both("latest")["latest"]
    assert sum(row["brokerName"] == "a" for row in latest) >= COUNT - FEW


def test_an_audit_names_the_broker_of_what_it_found(
    of_both: Tables, tmp_path: Path, stores: list[str]
) -> None:
    sound = of_both("audit")
    assert {row["brokerName"] for row in sound["queues"]} == {"a", "b"}
    assert sum(row["records"] for row in sound["queues"]) == COUNT + FEW
    broken = write_store(tmp_path / "broken", FEW)
    (log, *_) = sorted((broken / "commitlog").iterdir())
    overwrite(log, 200)
    ran = run("audit", "--store", stores[0], "--store", f"c={broken}")
    assert ran.exit_code == 1
    assert "c: " in ran.output
    assert "a: " not in ran.output


def test_a_cluster_is_compared_with_another(stores: list[str], tmp_path: Path) -> None:
    pair = ",".join(stores)
    assert run("compare", pair, pair).exit_code == 0
    ran = run("compare", pair, stores[0])
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
