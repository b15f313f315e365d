"""One version everywhere, and a source distribution that holds what the conda recipe builds from."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, as the build backend makes it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.iterdir()
    return found


def test_versions_are_equal(recipe: dict[str, Any], citation: dict[str, Any]) -> None:
    assert recipe["context"]["version"] == VERSION
    assert str(citation["version"]) == VERSION
    assert f"## {VERSION} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version = {{{VERSION}}}" in (ROOT / "docs" / "new.md").read_text(encoding="utf-8")


def test_the_recipe_needs_what_the_project_needs(recipe: dict[str, Any]) -> None:
    python = f"python{PROJECT['requires-python']}"
    wanted = {re.sub(r"\s", "", one) for one in (python, *PROJECT["dependencies"])}
    assert {one.replace(" ", "") for one in recipe["requirements"]["run"]} == wanted
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert {one.replace(" ", "") for one in recipe["requirements"]["host"]} == {python, "pip", *build}
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {at}" for name, at in PROJECT["scripts"].items()]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]


def test_addresses_are_equal(recipe: dict[str, Any], citation: dict[str, Any]) -> None:
    urls = PROJECT["urls"]
    assert set(urls) == {"Documentation", "Source", "Changelog", "Issues"}
    assert all(url.startswith(urls["Source"]) for url in urls.values())
    assert {recipe["about"]["homepage"], recipe["about"]["repository"], citation["repository-code"]} == {urls["Source"]}


def test_the_citation_has_the_library_and_the_five_papers(citation: dict[str, Any]) -> None:
    from lastiterate.reproduction import TITLES

    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["title"].startswith("lastiterate")
    assert citation["license"] == PROJECT["license"]
    assert {(one["title"], one["year"]) for one in citation["references"]} == {
        (title.partition(": ")[2], int(name[-4:])) for name, title in TITLES.items()
    }


def test_the_source_distribution_holds_what_the_recipe_needs(recipe: dict[str, Any], sources: Path) -> None:
    assert sources.name == Path(recipe["source"]["path"].replace("${{ version }}", VERSION)).name
    with tarfile.open(sources) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
        about = archive.extractfile(f"lastiterate-{VERSION}/PKG-INFO")
        assert about is not None
        metadata = about.read().decode()
    library = ROOT / "src"
    code = {
        path.relative_to(ROOT).as_posix()
        for path in library.rglob("*")
        if path.suffix in (".py", ".js", ".css", ".svg")
    }
    assert {"pyproject.toml", "README.md", recipe["about"]["license_file"], "CITATION.cff", *code} <= held
    assert "src/lastiterate/py.typed" in held
    assert not [name for name in held if name.startswith(("out/", "dist/", ".venv"))]
    assert f"\nVersion: {VERSION}\n" in metadata
    assert all(f"Project-URL: {name}, {url}" in metadata for name, url in PROJECT["urls"].items())
