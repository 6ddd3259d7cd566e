"""Which form of the core runs, and that both have the same functions."""

import importlib
import os
import shutil
import subprocess
import sys

import pytest
from pocketmq.core.choice import SWITCH, in_python, is_native


def test_c_is_built_where_there_is_a_compiler() -> None:
    if shutil.which("cc") is None:
        pytest.skip("no compiler")
    assert is_native or os.environ.get(SWITCH) == "off"


def test_it_works_without_c() -> None:
    program = "from pocketmq.core.choice import is_native; print(is_native)"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, SWITCH: "off"}, capture_output=True, check=True
    )
    assert done.stdout.strip() == b"False"


def test_functions_in_c_that_other_sources_made_are_not_used(native) -> None:
    """An editable installation keeps the old ones after a pull; they may take other arguments."""
    program = (
        "import importlib; from pocketmq.core import choice, native; native.FORMAT += 1\n"
        "print(importlib.reload(choice).is_native)"
    )
    environment = {name: value for name, value in os.environ.items() if name != SWITCH}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
    assert b"install again" in done.stderr


def test_each_function_has_its_rule_in_python(native) -> None:
    pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")
    importlib.import_module("pocketmq.pipeline.tables.records.scans")
    functions = {name for name in dir(native) if not name.startswith("_")} - {"FORMAT"}
    assert functions == set(in_python)
    assert functions == {
        *("read_sends", "stored_text", "read_values", "messages_of_sends", "read_properties"),
        *("fill_replies", "pack_records", "add_entries", "gather_records", "scan_plain", "read_copies"),
        *("scan_records", "read_records_at", "list_pairs"),
    }
