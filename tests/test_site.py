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


def test_rows_in_the_sentences_stand_as_rows() -> None:
    """`at_row(first)` writes 'row 3 (rows count from 0)': the page says that it is a row."""
    page = extension("sentences").page()
    assert "infinite values, first row ‹infinite›." in page
    assert "at\\_row" not in page


def test_typography() -> None:
    """Units keep to their numbers, indices go below the line, cells with sentences and long code are marked."""
    nodes = pytest.importorskip("docutils.nodes")  # of the extra docs
    pytest.importorskip("sphinx")
    from docutils.utils import new_document

    typography = extension("typography")
    tree = new_document("page")
    plain = nodes.paragraph("", "", nodes.Text("5 % of y_t in 3 s, Σ_{j>i} and x_prev; un.x_t stays"))
    code = nodes.paragraph("", "", nodes.literal("", "5 % of y_t " + "a" * 40))
    dash = nodes.paragraph("", "", nodes.Text("k"), nodes.Text(" -- "), nodes.Text("a -- b"))
    cells = [
        nodes.entry("", nodes.paragraph("", text)) for text in ("short", "a sentence that takes several words to say")
    ]
    tree += [plain, code, dash, nodes.row("", *cells)]
    typography.every(None, tree)
    assert plain.astext() == "5\u00a0% of yt in 3\u00a0s, Σj>i and x_prev; un.x_t stays"
    assert [one.astext() for one in plain.findall(nodes.subscript)] == ["t", "j>i"]
    assert code.astext() == "5 % of y_t " + "a" * 40
    assert [one["classes"] for one in tree.findall(nodes.literal)] == [["long"]]
    assert dash.astext() == "k – a -- b"
    assert [one["classes"] for one in cells] == [[], ["sentence"]]
