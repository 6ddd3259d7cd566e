"""The site that `make docs` builds: its navigation, and what its hooks make of a page. Needs no mkdocs."""

import runpy
import tomllib
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pocketmq import client, testing

from documents import ROOT

SETTINGS: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
PAGES_AT_MOST = 25
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
HOOKS = runpy.run_path(str(ROOT / "docs" / "site.py"))


def pages(part: object) -> list[str]:
    if isinstance(part, dict):
        return pages(list(part.values()))
    return [page for one in part for page in pages(one)] if isinstance(part, list) else [str(part)]


def test_every_page_is_in_the_navigation_once() -> None:
    listed = pages(SETTINGS["nav"])
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    assert len(listed) <= PAGES_AT_MOST


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    shown = HOOKS["on_page_markdown"](text, config=SimpleNamespace(repo_url="https://host/project"))
    expected = {
        f"pocketmq.{package.__name__.split('.')[-1]}.{name}"
        for package in (client, testing)
        for name in package.__all__
    }
    assert expected <= {line.removeprefix("::: ") for line in shown.splitlines()}
    assert "[[" not in shown


def test_a_link_out_of_the_documents_leads_to_the_repository() -> None:
    page = "[the format](../store/FORMAT.md#records), [a page](testing.md)"
    shown = HOOKS["on_page_markdown"](page, config=SimpleNamespace(repo_url="https://host/project"))
    assert (
        shown == "[the format](https://host/project/blob/main/store/FORMAT.md#records), [a page](testing.md)"
    )


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn/x.js">',
        "<img alt=a src=//cdn/x.png>",
        '<link rel="stylesheet" href="https://cdn/x.css">',
    ],
)
def test_a_page_that_loads_from_the_network_is_found(tag: str) -> None:
    assert HOOKS["LOADED"].search(tag)
    assert not HOOKS["LOADED"].search('<a href="https://host/">a link</a><script src="assets/x.js">')


def test_addresses_of_the_repository_are_those_of_the_package() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    repository = urls["Repository"]
    assert SETTINGS["repo_url"] == repository
    [contact] = yaml.safe_load((FORMS / "config.yml").read_text(encoding="utf-8"))["contact_links"]
    assert contact["url"] == f"{repository}/security/advisories/new"
    assert f"({contact['url']})" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert all(url.startswith(repository) for url in urls.values())


@pytest.mark.parametrize("name", ["bug", "difference", "wish"])
def test_a_form_asks_questions_with_names_of_their_own(name: str) -> None:
    form = yaml.safe_load((FORMS / f"{name}.yml").read_text(encoding="utf-8"))
    assert form["name"]
    assert form["description"]
    ids = [question["id"] for question in form["body"]]
    assert len(ids) == len(set(ids)) > 0
    assert all(question["attributes"]["label"] for question in form["body"])
