"""The public names of `pocketmq.client`: each loads when it is used, type checkers see the same ones, and the documents
import from nowhere else."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq import client

from processes import python

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "architecture.md"),
]
"""For users; how to add a request is for those who work behind the face."""


def names_type_checkers_see() -> dict[str, str]:
    """Name to module, from the imports under TYPE_CHECKING."""
    tree = ast.parse((ROOT / "client/__init__.py").read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    found = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        module = f"pocketmq.client.{node.module}" if node.level else str(node.module)
        found |= {alias.name: module for alias in node.names}
    return found


def imports_of_documents() -> Iterator[tuple[str, str, str]]:
    """(document, module, name) of every import from a package of ours in a Python block."""
    for document in DOCUMENTS:
        for block in re.findall(r"^```python\n(.*?)^```$", document.read_text("utf-8"), re.M | re.S):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pocketmq"):
                    yield from ((document.name, str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("name", client.__all__)
def test_every_name_is_the_one_of_its_file(name: str) -> None:
    module = importlib.import_module(names_type_checkers_see()[name])
    assert getattr(client, name) is getattr(module, name)


def test_type_checkers_see_the_same_names() -> None:
    assert sorted(names_type_checkers_see()) == sorted(client.__all__)
    assert set(client.__all__) <= set(dir(client))


@pytest.mark.parametrize("package", ["client", "testing", "pipeline", "pipeline/tables"])
def test_type_checkers_can_read_the_list_of_names(package: str) -> None:
    """`from pocketmq.client import *` imports nothing for them if the list is computed."""
    tree = ast.parse((ROOT / package / "__init__.py").read_text("utf-8"))
    (listed,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(imported) == sorted(listed)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Kroducer'"):
        client.Kroducer  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import pocketmq.client; print(*sorted(set(sys.modules) - before))"
    assert python("-c", program).stdout.split() == ["pocketmq", "pocketmq.client"]


def test_documents_import_clients_from_the_face_only() -> None:
    behind = [
        (document, module, name)
        for document, module, name in imports_of_documents()
        if (name in client.__all__ and module != "pocketmq.client") or module.startswith("pocketmq.client.")
    ]
    assert behind == []


@pytest.mark.parametrize("name", client.__all__)
def test_every_name_is_on_a_page_for_users(name: str) -> None:
    pages = [(ROOT / "docs" / page).read_text("utf-8") for page in ("client.md", "command-line.md")]
    assert any(re.search(rf"\b{name}\b", page) for page in pages)
