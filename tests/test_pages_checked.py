"""docs/check.py: the pages pass it, and pages that should not pass do not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check", DOCS / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_link_example_command_and_figure(check: ModuleType) -> None:
    assert check.problems() == []


WRONG = [
    ("links", "[a](nowhere.md)", "nowhere.md"),
    ("links", "[a](other.md#no-such)", "no such heading"),
    ("links", "[a](#below)", "no such heading"),
    ("links", "![a](picture.png)", "picture.png"),
    ("links", "    code\n\n[a](nowhere.md)", "nowhere.md"),
    ("links", "[a](https://nohost)", "no address"),
    ("links", "[a](htps://arxiv.org)", "no address"),
    ("files", "see benchmarks/nothing.py", "benchmarks/nothing.py"),
    ("files", "`tests/no/such_test.py`", "tests/no/such_test.py"),
    ("examples", "```python\nx = = 1\n```", "does not compile"),
    ("examples", "```python\nx = 1\n```", "no test runs"),
    ("commands", "`python benchmarks/nothing.py --quick`", "which is not there"),
    ("commands", "`python benchmarks/engine.py --quickest`", "--quickest"),
    ("commands", "```sh\npython benchmarks/engine.py --quickest\n```", "--quickest"),
    ("figures", "It takes 3.5 s.", "3.5 s"),
    ("figures", "| a | 12 ms |", "12 ms"),
    ("figures", "It is 3 times as fast.", "3 times as fast"),
    ("figures", "Nothing.\n\n## Later\n\n1.2 GB, measured.\n", "'Later'"),
    ("figures", "3 s (`python docs/check.py --times eye`).\n\n## Later\n\n1.2 GB, measured.\n", "'Later'"),
]
RIGHT = [
    ("links", "[a](other.md#a-heading-twice-1), [b](https://arxiv.org/abs/1406.2839), `[c](nowhere.md)`"),
    ("links", "```text\n[a](nowhere.md)\n```"),
    ("links", "    [a](nowhere.md)\n    [b](nowhere.md)\n\nText."),
    ("files", "benchmarks/engine.py and `tests/report`"),
    ("commands", "`OMP_NUM_THREADS=1 python benchmarks/engine.py --quick`"),
    ("figures", "It takes 3.5 s (`python benchmarks/engine.py --quick`)."),
    ("figures", "Measured by `python benchmarks/engine.py`.\n\n## Later\n\n1.2 GB.\n"),
    ("figures", "A step of `6 s`; 10 s⁻¹; s(x); 14 subjects."),
]


@pytest.mark.parametrize(
    ("stem", "text", "right"),
    [
        ("other", "You get: all of it.", True),
        ("other", "All of it. You get: more.", False),
        ("eye", "You get: all of it.", False),
        ("eye", "*You get:* it.\n*Time:* 3 s (`python docs/check.py --times eye`).", True),
        ("index", "Anything.", True),
        ("other", "You get: what docs/eye.md has.", False),
        ("other", "You get: what [this](eye.md) has.", True),
    ],
)
def test_pages_begin_with_what_the_reader_gets(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stem: str, text: str, right: bool
) -> None:
    monkeypatch.setattr(check, "DOCS", tmp_path)
    page = tmp_path / f"{stem}.md"
    page.write_text(f"# Title\n\n{text}\n", encoding="utf-8")
    assert (not [*check.openings(page), *check.elsewhere(page)]) == right


def found(check: ModuleType, folder: Path, kind: str, text: str) -> list[str]:
    (folder / "other.md").write_text("# A heading, twice\n\n## A heading, twice\n", encoding="utf-8")
    page = folder / "page.md"
    page.write_text(f"# Title\n\n{text}\n", encoding="utf-8")
    return list(getattr(check, kind)(page))


@pytest.mark.parametrize(("kind", "text", "what"), WRONG)
def test_what_is_wrong_is_said(check: ModuleType, tmp_path: Path, kind: str, text: str, what: str) -> None:
    said = found(check, tmp_path, kind, text)
    assert any(what in one for one in said)


@pytest.mark.parametrize(("kind", "text"), RIGHT)
def test_what_is_right_passes(check: ModuleType, tmp_path: Path, kind: str, text: str) -> None:
    assert found(check, tmp_path, kind, text) == []


BUILT = [
    ('<a href="other.html#there">a</a> <img src="picture.png"> <a href="https://arxiv.org">b</a>', ""),
    ('<a href="no.html">a</a>', "which is not there"),
    ('<a href="other.html#nowhere">a</a>', "no such place"),
    ('<a href="#nowhere">a</a>', "no such place"),
    ('<img src="no.png">', "no.png is not there"),
    ('<script src="https://host.net/a.js"></script>', "fetches"),
    ('<code class="xref py py-obj">un.Nothing</code>', "un.Nothing is not linked"),
    ('<a href="other.html"><code class="xref py py-obj">un.Exact</code></a>', ""),
]


@pytest.mark.parametrize(("text", "what"), BUILT)
def test_the_built_site(check: ModuleType, tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "other.html").write_text("<h2 id='there'>There</h2>", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"")
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    said = check.site(tmp_path)
    assert any(what in one for one in said) if what else said == []
