"""The functions of the core in both forms, whichever of them the broker uses."""

import importlib
from types import ModuleType

import pytest
from pocketmq.core import gathered_records, index_entries, plain_records, properties, records, replies, sends

MODULES = (gathered_records, index_entries, plain_records, properties, records, replies, sends)
"""Imported, they are in `choice.in_python`."""


@pytest.fixture(scope="session")
def native() -> ModuleType:
    try:
        return importlib.import_module("pocketmq.core.native")
    except ImportError:
        pytest.skip("not built")
