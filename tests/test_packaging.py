"""The package as it is installed: pyproject.toml, setup.py, the folders and the type checkers' links agree; what is
installed with it has licences that are allowed.

By day nothing is built: building a wheel needs the network for its build tools.
"""

import importlib.metadata
import os
import re
import runpy
import subprocess
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

import licences

ROOT = Path(__file__).resolve().parent.parent
NOT_PACKAGES = {"tests", "bench"}
FOLDERS = sorted(
    init.parent.name for init in ROOT.glob("*/__init__.py") if init.parent.name not in NOT_PACKAGES
)
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_folder_with_source_is_packaged() -> None:
    """A folder without `__init__.py` would work in an editable install and be missing from the wheel."""
    packages = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["packages"]()
    with_source = {
        ".".join(("pocketmq", *path.parent.relative_to(ROOT).parts))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    assert sorted(packages) == sorted(with_source - {"pocketmq.pipeline.formats"})


def test_each_package_is_mapped_to_its_folder() -> None:
    expected = {f"pocketmq.{folder}": folder for folder in FOLDERS} | {"": "pipeline/formats"}
    assert PROJECT["tool"]["setuptools"]["package-dir"] == expected


def test_modules_that_spark_looks_for_are_listed() -> None:
    """Spark finds formats by importable top-level modules named `pyspark_*`."""
    modules = sorted(path.stem for path in (ROOT / "pipeline" / "formats").glob("*.py"))
    assert modules == sorted(PROJECT["tool"]["setuptools"]["py-modules"])
    assert all(module.startswith("pyspark_") for module in modules)


@pytest.mark.parametrize("folder", FOLDERS)
def test_package_says_that_it_is_typed(folder: str) -> None:
    assert (ROOT / folder / "py.typed").is_file()


def test_type_checkers_see_the_same_folders() -> None:
    links = {link.name: os.readlink(link) for link in (ROOT / ".namespace" / "pocketmq").iterdir()}
    assert links == {folder: f"../../{folder}" for folder in FOLDERS}


def test_pocketmq_itself_stays_a_namespace() -> None:
    assert not (ROOT / ".namespace" / "pocketmq" / "__init__.py").exists()
    assert not (ROOT / "pocketmq").exists()


def test_installed_version_is_the_version_of_the_source() -> None:
    assert importlib.metadata.version("pocketmq") == PROJECT["project"]["version"]


def test_changelog_and_documents_name_the_version_of_the_source() -> None:
    """The newest release of the changelog is this one, with what has changed since above it."""
    version = PROJECT["project"]["version"]
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]
    tags = re.findall(r"pocketmq@(\S+)", (ROOT / "docs" / "languages.md").read_text(encoding="utf-8"))
    assert set(tags) == {f"v{version}"}


def test_every_declared_dependency_is_pinned_once() -> None:
    pins = [
        line.split("==")[0]
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    ]
    names = [re.sub(r"[-_.]+", "-", pin).lower() for pin in pins]
    assert len(names) == len(set(names))
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = (
        PROJECT["project"]["dependencies"]
        + extras["dev"]
        + extras["spark"]
        + extras["tables"]
        + extras["frames"]
        + extras["connect"]
        + extras["docs"]
    )
    missing = [text for text in wanted if _requirement_name(text) not in names]
    assert missing == []


def test_pins_name_versions_and_no_address() -> None:
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line


def _requirement_name(text: str) -> str:
    matched = re.match(r"[A-Za-z0-9._-]+", text)
    assert matched, text
    return re.sub(r"[-_.]+", "-", matched.group()).lower()


def test_bytecode_is_kept_for_the_next_run_and_for_programs_that_tests_start() -> None:
    assert not sys.dont_write_bytecode
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_every_file_that_programs_read_is_packaged() -> None:
    """What lies beside the source and is neither source nor a document for readers of the source."""
    patterns: dict[str, list[str]] = PROJECT["tool"]["setuptools"]["package-data"]
    not_data = {".py", ".md", ".c", ".h", ".so", ".pyc"}
    packages = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["packages"]()
    listed = set()
    for package in packages:
        folder = ROOT.joinpath(*package.split(".")[1:])
        for pattern in patterns["*"] + patterns.get(package, []):
            listed.update(folder.glob(pattern))
    found = {
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in not_data and ".egg-info" not in str(path)
    }
    assert found - listed == set()


def test_java_module_has_the_version_of_the_source() -> None:
    """Its examples and documents depend on that version."""
    version = PROJECT["project"]["version"]
    named = re.compile(r"pocketmq-junit5(?:</artifactId>\s*<version>|:)(\d[\w.-]*)")
    files = [ROOT / "docs" / "languages.md", *ROOT.glob("java/*.*"), *ROOT.glob("examples/*/pom.xml")]
    found = {path.name: set(named.findall(path.read_text(encoding="utf-8"))) for path in files}
    assert {name: versions for name, versions in found.items() if versions != {version}} == {}


def test_source_distribution_has_what_the_repository_has() -> None:
    """The folders that are not packages are listed in MANIFEST.in; the packages are the wheel."""
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    grafted = set(re.findall(r"^graft (\S+)$", manifest, re.MULTILINE))
    listed = subprocess.run(
        ["git", "ls-tree", "-d", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git work tree: nothing to compare against")
    folders = set(listed.stdout.split())
    assert folders - set(FOLDERS) - grafted == {".namespace"}, "links, which would be copies"


@pytest.mark.parametrize(
    ("command", "is_inside"), [("bdist_wheel", False), ("egg_info", False), ("sdist", True)]
)
def test_an_install_writes_nothing_into_the_checkout(
    command: str, is_inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where setuptools is told to build. An sdist has the egg-info as its own file; `make package` looks at a clone."""
    called: dict[str, Any] = {}
    setuptools = types.ModuleType("setuptools")
    setuptools.Extension = lambda *args, **options: None  # type: ignore[attr-defined]
    setuptools.setup = called.update  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "setuptools", setuptools)
    monkeypatch.setattr(sys, "argv", ["setup.py", command])
    runpy.run_path(str(ROOT / "setup.py"), run_name="__main__")
    places = [Path(path) for options in called["options"].values() for path in options.values()]
    assert [path for path in places if not path.is_absolute() or path.is_relative_to(ROOT)] == []
    assert ("egg_info" not in called["options"]) == is_inside


# -- what comes with it


def test_everything_that_is_installed_has_an_allowed_licence() -> None:
    """`make licences` lists them. A new licence is read before it is added to the list."""
    found = {one.name: one.licence for one in licences.installed()}
    assert {name: text for name, text in found.items() if not licences.is_allowed(text)} == {}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("(MIT OR Apache-2.0) AND LGPL-3.0-only", False),
        ("MIT AND", False),
        ("(MIT", False),
        ("MIT MIT", False),
        ("", False),
    ],
)
def test_an_expression_is_allowed_if_it_can_be_kept(expression: str, expected: bool) -> None:
    assert licences.is_allowed(expression) is expected


def built_wheel(folder: Path) -> Path:
    """The wheel of what git has, built from a folder of its own. Skips where the build tools cannot be fetched."""
    source = folder / "source"
    source.mkdir(parents=True)
    archive = ["git", "-c", "tar.umask=0022", "archive", "HEAD"]
    packed = subprocess.run(archive, cwd=ROOT, capture_output=True, check=False)
    if packed.returncode != 0:
        pytest.skip("not a git work tree")
    subprocess.run(["tar", "--extract", "--touch"], cwd=source, input=packed.stdout, check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps"]
    made = subprocess.run(
        [*pip, "--wheel-dir", str(folder), str(source)],
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "No matching distribution found for setuptools" in made.stderr:
        pytest.skip("the build tools cannot be fetched")
    assert made.returncode == 0, made.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_builds_make_the_same_wheel(tmp_path: Path) -> None:
    """Byte for byte, from different folders: whoever doubts a release builds it again. RELEASING.md says how."""
    one, other = built_wheel(tmp_path / "one"), built_wheel(tmp_path / "other" / "folder")
    assert one.name == other.name
    assert one.read_bytes() == other.read_bytes()
