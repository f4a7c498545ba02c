"""The reference is complete: each public name has its line, its arguments and an example that runs."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import unnorm as un

HOW = r"^(?:Args|Attributes):\n((?:(?:[ ]+.*)?\n)*)"
# classes that answer questions, whose methods have arguments of their own to explain
RESULTS = (
    "Comparison", "DirectionFit", "Draws", "Fit", "FitGroup", "Gam", "GraphGof", "KernelPath", "Observations",
    "Pattern", "PatternFit", "PenaltyPath", "PredictionScores", "Repeats", "StepFit", "Track",
)  # fmt: skip
TELLS_ITSELF = {"held_out"}  # a method that is there to say what else to call


def parts() -> ModuleType:
    path = Path(__file__).parents[1] / "docs" / "_ext" / "parts.py"
    spec = importlib.util.spec_from_file_location("parts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PARTS = parts()
PAGES: dict[str, tuple[str, str, tuple[str, ...]]] = PARTS.PAGES
MODULES: dict[str, tuple[str, ...]] = PARTS.MODULES
NAMES = [name for _, _, names in PAGES.values() for name in names]
INNER = [f"{module}.{name}" for module, names in MODULES.items() for name in names]


def public(name: str) -> Any:
    """`fit` or `patterns.K`."""
    return attrgetter(name)(un)


def parameters(what: Any) -> list[str]:
    """Names of arguments, or of a dataclass's fields, that a user may give or read."""
    names = inspect.signature(what).parameters
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


@cache
def commented(kind: type) -> frozenset[str]:
    """Fields whose line, or the one above, has a comment for readers of the reference: `x: float  #: metres`."""
    lines = textwrap.dedent(inspect.getsource(kind)).splitlines()
    (node,) = ast.parse("\n".join(lines)).body
    assert isinstance(node, ast.ClassDef)
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
    said = lambda one: "  #: " in lines[(one.end_lineno or 0) - 1] or lines[one.lineno - 2].strip().startswith("#: ")  # noqa: E731
    return frozenset(one.target.id for one in fields if said(one) and isinstance(one.target, ast.Name))


def explained(text: str) -> set[str]:
    """Names in the docstring's sections of arguments: `level:`, or `draws, warmup:` for several at once."""
    found: set[str] = set()
    for section in re.findall(HOW, text + "\n", flags=re.M):
        for names in re.findall(r"^(\*{0,2}\w[\w*, ]*):", textwrap.dedent(section), flags=re.M):
            found |= {name.strip().lstrip("*") for name in names.split(",")}
    return found


def unexplained(what: Any) -> list[str]:
    known = explained(inspect.getdoc(what) or "") | (commented(what) if inspect.isclass(what) else frozenset())
    return [name for name in parameters(what) if name not in known]


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    for name, what in vars(kind).items():
        plain = what.__func__ if isinstance(what, classmethod | staticmethod) else what
        if not name.startswith("_") and (inspect.isfunction(plain) or isinstance(plain, property)):
            yield name, plain


@pytest.mark.parametrize("name", [*NAMES, *INNER])
def test_a_name_has_its_line_arguments_and_example(name: str) -> None:
    what = public(name)
    text = inspect.getdoc(what) or ""
    line = text.split("\n\n")[0]
    assert line.rstrip().endswith((".", ":")), f"un.{name}: the docstring begins with a sentence; got {line!r}"
    if inspect.isclass(what) and issubclass(what, Exception):
        return  # its line says when it is raised
    assert ">>> " in text, f"un.{name} has no example"
    missing = unexplained(what)
    assert not missing, f"un.{name} explains no {', '.join(missing)} (Args:, or `#:` at a dataclass's field)"
    stale = explained(text) - set(inspect.signature(what).parameters)
    assert not stale, f"un.{name} explains {', '.join(sorted(stale))}, which it does not have"


@pytest.mark.parametrize("name", RESULTS)
def test_methods_of_results_have_their_line_and_arguments(name: str) -> None:
    wrong = []
    for method, what in methods(getattr(un, name)):
        text = inspect.getdoc(what) or ""
        if not text.split("\n\n")[0].rstrip().endswith((".", ":", "?")):
            wrong.append(f"{method}: a docstring begins with a sentence; got {text.split(chr(10))[0]!r}")
        if inspect.isfunction(what) and method not in TELLS_ITSELF and (missing := unexplained(what)):
            wrong.append(f"{method}: no {', '.join(missing)}")
    assert not wrong, "\n".join([f"un.{name}", *wrong])


def test_every_class_that_answers_is_looked_at() -> None:
    """A public class on a page of results is one of RESULTS, or a part that users make themselves."""
    listed = {name for page in ("results", "data") for name in PAGES[page][2] if inspect.isclass(getattr(un, name))}
    assert listed <= set(RESULTS)
    assert {name for name in NAMES if name.endswith("Fit") or name == "Draws"} <= set(RESULTS)


def test_the_modules_hold_nothing_else() -> None:
    """Functions and classes of a public module are public themselves, on the page of modules, or base classes."""
    bases = {"BoundReference", "Domain", "Example", "Interaction", "KernelFunction", "PointScheme", "Points",
             "Quadrature", "Reference"}  # fmt: skip
    tools = {
        "errors": {"listing", "short", "unknown", "warn"},
        "pysaliency": {"pixel_log_density"},
    }  # of the rooms themselves
    for module, names in MODULES.items():
        home = getattr(un, module)
        found = {name: getattr(home, name) for name in getattr(home, "__all__", dir(home)) if not name.startswith("_")}
        own = hasattr(home, "__path__") or hasattr(home, "__all__")  # else a file, which also imports names to use them
        made = {
            name
            for name, what in found.items()
            if (inspect.isfunction(what) or inspect.isclass(what))
            and (what.__module__.startswith("unnorm") if own else what.__module__ == home.__name__)
        }
        assert made - set(NAMES) - bases - tools.get(module, set()) == set(names) - set(NAMES), module


def examples(name: str) -> Iterator[doctest.DocTest]:
    """Those of a public name and its methods, which may stand in another file (False: of any module)."""
    what = inspect.unwrap(public(name))
    known = dict(vars(sys.modules[what.__module__]))
    found = doctest.DocTestFinder().find(what, name, False, globs=known)  # pyright: ignore[reportArgumentType]
    yield from (one for one in found if one.examples)


def test_examples_of_methods_are_found_in_any_file() -> None:
    assert {"Gam.predict", "Gam.draws", "Gam.effect"} <= {one.name for one in examples("Gam")}


@pytest.mark.parametrize("page", sorted({*PAGES, *MODULES}))
def test_examples_run(page: str) -> None:
    """Those of a page's names and their methods."""
    names = PAGES[page][2] if page in PAGES else ()
    names = (*names, *(f"{page}.{name}" for name in MODULES.get(page, ())))
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    for name in names:
        for one in examples(name):
            runner.run(one, out=said.append)
    assert not runner.failures, "".join(said)
    assert runner.tries
