"""Jobs read a store behind a URL as they read its folder, on DuckDB; a job that cannot says so in one line."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from pocketmq.pipeline.jobs.answers.compare import input_of
from pocketmq.pipeline.tables import open_store
from pocketmq.pipeline.tables.files.store_topics import missing_topics

from pipeline.commands import run, tables


def refused(*words: str) -> Result:
    ran = run(*words)
    assert ran.exit_code == 2, ran.output
    return ran


@pytest.mark.parametrize(
    "words",
    [
        ["stats"],
        ["stats", "--since", "2023-11-14T23:00:00"],
        ["find", "--key", "k3"],
        ["find", "--text", '"n": 77}'],
        ["latest", "--topics", "Bills"],
        ["duplicates"],
        ["dlq"],
        ["sql", "select topic, count(*) as n from messages group by 1 order by 1"],
        ["sql", "select topic, count(*) as n from consumequeue group by 1 order by 1"],
        ["sql", "select * from consumer_offsets order by all"],
    ],
)
def test_a_job_has_the_rows_of_the_folder(store: Path, tmp_path: Path, words: list[str]) -> None:
    of_folder, of_url = (
        json.dumps(tables(tmp_path, *words, "--store", f"{scheme}{store}"), sort_keys=True)
        for scheme in ("", "file://")
    )
    assert of_url == of_folder.replace(f'"{store}', f'"file://{store}')


def test_an_audit_leaves_out_the_consume_queues_and_says_so(store: Path) -> None:
    ran = run("audit", "--store", f"file://{store}")
    assert ran.exit_code == 0, ran.output
    assert ran.stderr.startswith("pocketmq: Consume queues behind a URL are not compared with the log;")
    assert "not compared" in ran.stdout


def test_a_folder_and_its_url_are_alike(store: Path) -> None:
    ran = run("compare", str(store), f"file://{store}?scheme=x=y")
    assert ran.exit_code == 0, ran.output


def test_locations_with_keys_are_shown_without_them() -> None:
    side = input_of("s3://someone:hidden@bucket/store?endpoint_override=127.0.0.1:1", None)
    assert side.store is not None
    assert side.name == "s3://bucket/store"
    named = input_of("a=s3://someone:hidden@bucket/a,b=/data/b", None)
    assert named.name == "s3://bucket/a, /data/b"


def test_a_misspelt_topic_is_named(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    for place in (str(store), f"file://{store}"):
        for topic, meant in (("Ordres", "did you mean Orders?"), ("X", "it has Bills, Orders")):
            sentence = f"{place} has no topic {topic}; {meant}"
            assert missing_topics([place], ["Orders", topic]) == [sentence]
            caplog.clear()
            assert open_store(place, topics=topic).read_all().num_rows == 0
            assert caplog.messages == [f"{sentence}; what a deleted topic has left is read"]


@pytest.mark.parametrize(
    "job", [["audit"], ["stats"], ["sql", "select 1 from messages"], ["find", "--key", "k"]]
)
def test_a_url_without_a_store_is_one_line(job: list[str], tmp_path: Path) -> None:
    ran = refused(*job, "--store", f"file://{tmp_path}/none")
    assert ran.stderr.splitlines()[-1] == (
        f"pocketmq: --store: file://{tmp_path}/none has no folder commitlog, and so is no store"
    )
    ran = refused(*job, "--store", "nofs://someone:hidden@bucket/store")
    assert "--store: nofs://bucket/store cannot be opened" in ran.stderr
    assert "hidden" not in ran.output


def test_lag_reads_folders(store: Path) -> None:
    ran = refused("lag", "--store", f"file://{store}")
    assert ran.stderr == (
        "pocketmq: --store: lag reads a folder, not a URL; copy the store, or ask its brokers with --namesrv\n"
    )
