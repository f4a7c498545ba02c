"""The site: every public name has its entry, the start page's Python runs, links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
MADE = ("reference/", "_tables/")  # by the build


def extension(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_its_entry() -> None:
    parts = extension("parts")
    assert parts.undocumented() == set()
    names = [name for _, _, names in parts.PAGES.values() for name in names]
    assert len(names) == len(set(names))
    for name in names:
        assert parts.first_line(name), f"un.{name} has no docstring"


def test_sentences_are_found_in_the_source() -> None:
    page = extension("sentences").page()
    assert "must be a whole number of at least" in page
    assert page.count("\n- `") > 300


def test_the_start_page_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.S)
    names: dict[str, object] = {}
    exec(compile(block, "docs/index.md", "exec"), names)  # the documentation's own text, not a user's
    assert "estimate" in names["curve"]  # type: ignore[operator]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http", *MADE)):
            assert (DOCS / target).exists(), f"{page.name} links to {target}, which is not there"


def test_every_page_is_in_a_table_of_contents() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    listed = re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.S)
    entries = {line.strip() for block in listed for line in block.splitlines() if line and not line.startswith(":")}
    assert {page.stem for page in PAGES} - {"index"} <= entries


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_formulas_can_be_set(page: Path) -> None:
    pytest.importorskip("docutils.utils.math.latex2mathml")  # of the extra docs
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
    for block, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", text, flags=re.S):
        extension("mathml").markup(block or inline, block=bool(block))  # an unknown command is an error
