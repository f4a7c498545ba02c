"""docs/note.md: its numbers are those of paper/note.json, and its findings hold."""

from __future__ import annotations

import copy
import importlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "note.md"
MARKED = re.compile(r"<!-- (\w+) -->.*?<!-- end of \1 -->", re.S)


@pytest.fixture
def text(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "paper"))
    return importlib.import_module("note_text")


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return json.loads((ROOT / "paper" / "note.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_page_has_the_numbers_of_the_results(text: ModuleType, results: dict[str, Any], page: str) -> None:
    assert text.renewed(page, results) == page, "run: python paper/note.py --page"


@pytest.mark.parametrize(
    "path",
    [
        ("anchored", "wave", 2, "smooth", "shift"),
        ("lattice", "by_k", 0, "said"),
        ("lattice", "rates", 1, "in_k"),
        ("split", "rows", 3, "se_reference"),
    ],
)
def test_another_result_is_another_page(
    text: ModuleType, results: dict[str, Any], page: str, path: tuple[Any, ...]
) -> None:
    changed = copy.deepcopy(results)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] *= 1.5
    assert text.renewed(page, changed) != page


def test_the_findings_hold(text: ModuleType, results: dict[str, Any]) -> None:
    found = text.findings(results)
    assert set(found) == {"anchored", "lattice", "split"}
    for name, sentences in found.items():
        for sentence, holds in sentences:
            assert holds, f"{name}: {sentence}"


def test_nothing_is_measured_outside_of_the_marked_parts(page: str) -> None:
    rest, marked = MARKED.subn("", page)
    assert marked == 3
    rest = re.sub(r"```.*?```", "", rest, flags=re.S)
    assert re.findall(r"(?<![\w.])\d*\.\d+|\d+ ?%", rest) == []


def test_the_figures_are_there_and_small(text: ModuleType, page: str) -> None:
    for name in text.FIGURES:
        assert f"]({name})" in page
        assert (ROOT / "docs" / name).stat().st_size < 150_000


def test_formats(text: ModuleType) -> None:
    assert [text.number(v) for v in (0.054, -1.2, -0.001)] == [".05", "−1.20", ".00"]
    assert [text.percent(v) for v in (0.123, 0.0151, 0.0008, 4e-7, 0.0)] == ["12 %", "1.5 %", ".08 %", "4e−5 %", "0 %"]
    assert text.share(1.0) == 0.5
