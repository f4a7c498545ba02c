"""What the package says of itself is said once, or the same everywhere: version, dependencies, commands, exports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import unnorm as un

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RENAMED = {"matplotlib": "matplotlib-base", "torch": "pytorch"}  # what conda-forge calls them
DEVELOPERS = {"test", "docs", "lint"}
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def read_yaml(name: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def conda(requirement: str) -> str:
    """`name>=x` as conda writes it."""
    name, bound = re.fullmatch(r"([\w.-]+)([<>]=?[\d.]+)", requirement).groups()  # type: ignore[union-attr]
    return f"{RENAMED.get(name, name)} {bound}"


def test_the_version_is_semantic_and_said_once() -> None:
    assert re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(\.dev\d+)?", un.__version__)
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/unnorm/_version.py"


def test_the_command_says_the_version() -> None:
    code = "from unnorm.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == un.__version__


@pytest.mark.skipif(".dev" in un.__version__, reason="between releases they hold the last one")
def test_citation_and_recipe_have_the_version() -> None:
    assert str(read_yaml("CITATION.cff")["version"]) == un.__version__
    assert read_yaml("recipe/recipe.yaml")["context"]["version"] == un.__version__


def test_the_changelog_has_its_form() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Changelog"
    sections = [line for line in lines if line.startswith("## ")]
    assert sections[0] == "## [Unreleased]"
    found = [re.fullmatch(r"## \[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", line) for line in sections[1:]]
    assert all(found), sections
    versions = [tuple(map(int, one.groups()[:3])) for one in found if one is not None]
    days = [date.fromisoformat(one.group(4)) for one in found if one is not None]
    assert versions == sorted(set(versions), reverse=True)
    assert days == sorted(days, reverse=True)
    assert {line.removeprefix("### ") for line in lines if line.startswith("### ")} <= KINDS
    kind = None
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            kind = line if line.startswith("### ") else None
        assert kind or not line.startswith("- "), f"line {number}: an entry under no heading such as '### Added'"


def test_the_recipe_needs_what_the_package_needs() -> None:
    recipe, project = read_yaml("recipe/recipe.yaml"), PROJECT["project"]
    minimum = recipe["context"]["python_min"]
    assert project["requires-python"] == f">={minimum}"
    needs = recipe["requirements"]
    assert needs["run"] == ["python >=${{ python_min }}", *map(conda, project["dependencies"])]
    assert needs["host"][-1] == conda(*PROJECT["build-system"]["requires"])
    extras = (names for extra, names in project["optional-dependencies"].items() if extra not in DEVELOPERS)
    assert needs["run_constraints"] == [conda(name) for names in extras for name in names]
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license_file"] == project["license-files"][0]


def test_tests_are_run_with_every_extra_but_the_largest() -> None:
    """Those of `geo` and `pysaliency` bring gigabytes; `.ci/extras.py` tries them."""
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = {one for name in extras if name not in {*DEVELOPERS, "geo", "pysaliency"} for one in extras[name]}
    assert wanted <= set(extras["test"])


def test_each_extra_is_used() -> None:
    """`.ci/uses.py` has a use of every extra, and every extra that an error names is there."""
    extras = set(PROJECT["project"]["optional-dependencies"]) - DEVELOPERS
    tree = ast.parse((ROOT / ".ci" / "uses.py").read_text(encoding="utf-8"))
    (uses,) = (node.value for node in tree.body if isinstance(node, ast.AnnAssign))
    assert isinstance(uses, ast.Dict)
    assert {ast.literal_eval(key) for key in uses.keys if key is not None} == extras
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"unnorm\[(\w+)\]", source))
    called = set(re.findall(r'\bextra\("[\w.]+", "(\w+)"', source))
    assert called | named == extras


def test_every_name_is_exported_to_type_checkers() -> None:
    """`from .room import name as name` under TYPE_CHECKING: without `as`, checkers take a name for private."""
    tree = ast.parse(Path(un.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    exported = {one.name for node in imports for one in node.names if one.asname == one.name}
    starred = {node.module for node in imports if node.names[0].name == "*"}
    assert set(un._HOME) | set(un._MODULES) | {"__version__"} <= exported
    assert {f"{room}.registry" for room, _ in un._REGISTRIES} == starred


def test_files_of_the_tree_are_named_in_the_sdist() -> None:
    named = set(PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"])
    assert {name for name in named if not (ROOT / name).exists()} == set()
    assert {"LICENSE", "CHANGELOG.md", "CITATION.cff", "README.md", "tests", "src"} <= named
    assert (Path(un.__file__).parent / "py.typed").exists()
