"""The functions of the core in both forms, whichever of them the broker uses."""

import importlib
from types import ModuleType, SimpleNamespace

import pytest
from pocketmq.core import (
    copies,
    gathered_records,
    index_entries,
    plain_records,
    properties,
    records,
    replies,
    sends,
)
from pocketmq.core.choice import in_python

MODULES = (copies, gathered_records, index_entries, plain_records, properties, records, replies, sends)
"""Imported, they are in `choice.in_python`."""


@pytest.fixture(scope="session")
def native() -> ModuleType:
    try:
        return importlib.import_module("pocketmq.core.native")
    except ImportError:
        pytest.skip("not built")


@pytest.fixture(params=["python", "c"])
def core(request: pytest.FixtureRequest, native: ModuleType) -> ModuleType | SimpleNamespace:
    """The functions of one form."""
    return native if request.param == "c" else SimpleNamespace(**in_python)
