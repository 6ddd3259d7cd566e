"""What Spark's Python workers load before they plan, and what they search for garbage after a task."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from pocketmq.pipeline.tables.planning import spark_processes
from pocketmq.pipeline.tables.planning.spark_processes import freeze_imports


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(spark_processes, "_known_modules", 0)
    before = gc.get_freeze_count()
    yield
    if gc.get_freeze_count() != before:
        gc.unfreeze()


def runs_as(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name=program), raising=False)


def test_a_worker_of_the_daemon_exempts_what_it_has_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    runs_as(monkeypatch, "pyspark.daemon")
    before = gc.get_freeze_count()
    freeze_imports()
    assert gc.get_freeze_count() > before


def test_what_the_work_makes_is_exempted_only_once_more_modules_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs_as(monkeypatch, "pyspark.daemon")
    freeze_imports()
    exempted, made = gc.get_freeze_count(), [[] for _ in range(1000)]
    freeze_imports()
    assert gc.get_freeze_count() <= exempted
    monkeypatch.setitem(sys.modules, "one_more_module", SimpleNamespace())
    freeze_imports()
    assert gc.get_freeze_count() >= exempted + len(made) - 100


def test_another_process_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("pyspark.worker", "pytest"):
        runs_as(monkeypatch, program)
        before = gc.get_freeze_count()
        freeze_imports()
        assert gc.get_freeze_count() == before


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("spark.sources.topic_source", ("pandas", "asyncio", "pocketmq.client.connections.connection")),
        ("spark.sources.store_source", ("pandas", "asyncio")),
        ("spark.sink.topic_writer", ("pandas",)),
    ],
)
def test_a_process_that_only_plans_loads_little(module: str, unwanted: tuple[str, ...]) -> None:
    pytest.importorskip("pyspark", reason="the pipeline's extra is not installed")
    program = (
        f"import sys, pocketmq.pipeline.{module}\nprint([name for name in {unwanted} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
