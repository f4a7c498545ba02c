"""Messages in the caller's words: each place that names a setting, in Python's and in the shell's."""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unnorm as un
from unnorm._base import words
from unnorm._base.words import OPTIONS, by_word, either, in_shell, option
from unnorm.cli.config import checked_job
from unnorm.cli.fit import fit
from unnorm.cli.options import Options
from unnorm.cli.pattern import pattern
from unnorm.cli.steps import steps
from unnorm.errors import InputError, UnnormError
from unnorm.inference.advice import advise
from unnorm.references import SCHEMES, PointScheme
from unnorm.report.analysis import Analysis
from unnorm.results.normaliser_check import NormaliserCheck


def test_examples_run() -> None:
    assert doctest.testmod(words).failed == 0


def test_every_option_is_an_argument_in_python_and_an_option_in_the_shell() -> None:
    callables: tuple[Callable[..., Any], ...] = (un.transitions, un.fit, un.Additive, un.Logistic)
    callables += (un.pattern, un.fit_pattern, un.fit_each, un.track, Analysis)
    arguments = {name for one in callables for name in inspect.signature(one).parameters}
    own = [name for one in (pattern, fit, steps) for name in inspect.signature(one).parameters]
    typed = {f"--{name.replace('_', '-')}" for name in (*Options.__dataclass_fields__, *own)}
    for name, one in OPTIONS.items():
        assert name in arguments, name
        assert one.shell in typed, one.shell


def test_a_new_scheme_has_its_words_from_the_registry() -> None:
    @dataclass(frozen=True)
    class Halton(un.Lattice):  # type: ignore[misc]
        """Only its name matters here."""

    with SCHEMES.including(Halton):
        assert list(by_word(SCHEMES)) == [name.lower() for name in SCHEMES]
        for word, scheme in by_word(SCHEMES).items():
            assert isinstance(scheme(), PointScheme)
            assert option("points", word) == f"points=un.{scheme.__name__}()"
            assert checked_job({"data": "a.csv", "window": (0, 1, 0, 1), "points": word}).points == word
            with in_shell():
                assert option("points", word) == f"--points {word}"
    with pytest.raises(InputError, match=r"--points must be one of .*got 'halton'"):
        checked_job({"data": "a.csv", "window": (0, 1, 0, 1), "points": "halton"})


@pytest.mark.parametrize(
    ("name", "value", "python", "shell"),
    [
        ("per_point", 20, "per_point=20", "--references 20"),
        ("per_point", 12345, "per_point=12345", "--references 12345"),
        ("missing", "drop", "missing='drop'", "--missing drop"),
        ("points", "lattice", "points=un.Lattice()", "--points lattice"),
        ("centre", (400, 300), "centre=(400, 300)", "--centre 400,300"),
        ("max_gap", None, "max_gap=", "--max-gap"),
        ("total", 4000, "total=4000", "total=4000"),  # which the shell does not have
        ("weight", None, "weight=", "weight="),
    ],
)
def test_option(name: str, value: Any, python: str, shell: str) -> None:
    assert option(name, value) == python
    with in_shell():
        assert option(name, value) == shell
        with in_shell():
            pass
        assert option(name, value) == shell
    assert option(name, value) == python


def test_the_words_change_back_after_an_error_and_hold_in_threads() -> None:
    def fail() -> None:
        with in_shell():
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        fail()
    assert either("python", "shell") == "python"
    with in_shell(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(either, "python", "shell").result() == "shell"


def _table(**columns: Any) -> dict[str, Any]:
    return {"x": np.array([1.0, 2.0, 3.0]), "y": np.array([1.0, 2.0, 3.0]), "t": np.array([1, 2, 3]), **columns}


def _transitions(order: Any = "t", **columns: Any) -> Callable[[], Any]:
    options = {name: columns.pop(name) for name in ("lags", "max_gap", "group") if name in columns}
    return lambda: un.transitions(_table(**columns), y=("x", "y"), order=order, **options)


def _fit(terms: str, domain: un.Box | None = None) -> Callable[[], Any]:
    model = un.Additive(terms, domain or un.Box((0, 4), (0, 4)))
    logistic = un.Logistic(un.Uniform(), per_point=2)
    return lambda: un.fit(model, un.transitions(_table(), y=("x", "y")), logistic, un.Smooth("s(x_prev, k=3)"), rng=1)


def _check() -> None:
    zero = np.zeros(20)
    raise UnnormError(NormaliserCheck(np.linspace(0, 2, 20), zero, np.arange(20), 0.0).verdict)


def _advice(objective: str = "Logistic", worst: float = 0.5, **more: Any) -> Callable[[], Any]:
    even = objective in ("Logistic", "Importance")
    about = {"m": 400, "k": 20, "reference": "uniform", "points": "IID", "iid_points": True, "even_points": even}
    multiples = [0.25, 1.0, 4.0, 16.0]
    evidence = {
        "names": ["a"],
        "share": [worst],
        "inflation": [1.1],
        "multiples": multiples,
        "shares": [[min(0.99, worst / c)] for c in multiples],
        "inflations": [[1.1]] * 4,
        "auc": 0.7,
        "effective": 0.5,
        "penalty": 2.0,
        "ncic": 10.0,
        **more,
    }

    def say() -> None:
        raise UnnormError(str(advise(objective, about, evidence)))

    return say


def _track(hours: Any = (0, 2, 1), x: Any = (1.0, 2.0, 3.0), unit: Any = "metres") -> Callable[[], Any]:
    """Its last fix is an hour before the second."""
    times = np.datetime64("2020-01-01", "us") + np.array(hours) * np.timedelta64(1, "h")
    table = {"x": np.array(x), "y": np.array(x), "t": times}
    return lambda: un.track(table, x="x", y="y", time="t", unit=unit, zero_steps="error")


@pytest.mark.parametrize(
    ("call", "python", "shell"),
    [
        (_transitions("when"), "(asked for by order=)", "(asked for by --order)"),
        (_transitions(t=["a", "b", "c"]), "Column 't' (order=) must", "Column 't' (--order) must"),
        (_transitions(x=["1", "2", "left"]), "Column 'x' (y=) must be numeric", "Column 'x' (--y) must be numeric"),
        (_transitions(x=["1", "2", "3"]), "Column 'x' (y=) holds numbers", "Column 'x' (--y) holds numbers"),
        (_transitions(x=np.array([1, 2, np.nan])), "Pass missing='drop'", "Pass --missing drop"),
        (_transitions(x=np.array([1, 2, np.inf])), "pass missing='drop'", "pass --missing drop"),
        (_transitions(t=np.array([1, 1, 2])), "name in group= the columns", "name in --group the columns"),
        (_transitions(None, max_gap=3), "max_gap= needs order=", "--max-gap needs --order"),
        (_fit("s(turn, k=3)"), "needs transitions with lags=2.", "needs transitions with --lags 2."),
        (_fit("s(step, k=3)", un.Box((0, 1), (0, 1))), "pass outside='drop'", "pass --outside drop"),
        (_track(), "pass order='sort'; if", "pass --order sort; if"),
        (_track((0, 0, 1)), "Pass repeated='first' to", "Pass --repeated first to"),
        (_track((0, 1, 2), unit=None), "Pass crs='EPSG:4326' to", "Pass --crs EPSG:4326 to"),
        (_track((0, 1, 2), x=(1.0, 1.0, 2.0)), "Pass zero_steps='join' to", "Pass --zero-steps join to"),
        (_check, "Use normaliser=un.Anchored()", "Use the default --normaliser"),
        (_advice(), "take per_point=200. points=un.Lattice() may", "take --references 200. --points lattice may"),
        (_advice("Ranking"), "un.Logistic with points=un", "--objective logistic with --points lattice"),
        (_advice(worst=0.99, shares=[[0.9]] * 4), "nearer to the data, or try points=un", "try --points lattice"),
        (_advice(auc=0.999), "Take one that is nearer (un.Gaussian", "Take more reference points, --references."),
        (_advice(), "(un.compare)", "(unnorm compare)"),
    ],
)  # fmt: skip
def test_each_message_in_both(call: Callable[[], Any], python: str, shell: str) -> None:
    with pytest.raises(UnnormError) as error:
        call()
    assert python in str(error.value)
    assert "--" not in str(error.value)
    with in_shell(), pytest.raises(UnnormError) as error:
        call()
    assert shell in str(error.value)
    for name in OPTIONS:
        assert f"{name}=" not in str(error.value)
    assert "un." not in str(error.value)


def _windows(**columns: Any) -> Callable[[], Any]:
    table = {"image": ["a", "b", "b"], "width": [800.0, 640.0, 640.0], "height": [600.0, 480.0, 480.0], **columns}
    return lambda: un.Windows(table, key="image")


def _pattern(x: Any, **more: Any) -> Callable[[], Any]:
    table = {"x": x, "y": [0.1, 0.2, 0.3], "m": ["a", "b", ""]}
    return lambda: un.pattern(table, y=("x", "y"), window=un.Box((0, 1), (0, 1)), **more)


@pytest.mark.parametrize(
    ("call", "row"),
    [
        (_transitions(x=["1", "2", "left"]), 2),
        (_transitions(x=np.array([1, 2, np.inf])), 2),
        (_transitions(t=np.array([1, 1, 2])), 1),
        (_fit("s(step, k=3)", un.Box((0, 2.5), (0, 2.5))), 2),
        (_windows(width=[800.0, np.nan, 640.0]), 1),
        (_windows(width=[800.0, 640.0, 600.0]), 2),
        (_windows(width=[800.0, -1.0, -1.0]), 1),
        (_pattern([0.1, 2.0, 0.3]), 1),
        (_pattern([0.1, 0.2, 0.3], marks="m"), 2),
        (_track(), 2),
        (lambda: un.iid({"a": [10.0, 20.0], "b": [5.0, 95.0]}, y=("a", "b"), unit="lonlat"), 1),
        (lambda: un.fit_direction(un.directions.von_mises(), un.iid([1.0, 90.0])), 1),
    ],
)
def test_rows_are_counted_as_the_caller_counts_them(call: Callable[[], Any], row: int) -> None:
    with pytest.raises(UnnormError) as error:
        call()
    assert f"ow {row} (rows count from 0)" in str(error.value)
    with in_shell(), pytest.raises(UnnormError) as error:
        call()
    assert f"ow {row + 1} (rows count from 1, the heading apart)" in str(error.value)
    assert "from 0)" not in str(error.value)


def test_missing_values_name_their_rows_and_how_they_are_counted() -> None:
    call = _transitions(x=np.array([1, 2, np.nan]), y=np.array([np.nan, 2, 3]))
    with pytest.raises(
        UnnormError, match=r"'x' has 1 \(first row 2\), .*'y' has 1 \(first row 0\); rows count from 0\."
    ):
        call()
    with in_shell(), pytest.raises(UnnormError, match=r"\(first row 3\), .*\(first row 1\); rows count from 1, the"):
        call()
    kept = un.iid({"x": [1.0, np.nan, 2.0]}, y="x", missing="drop")
    assert kept.notes[0].endswith("(first row 1); rows count from 0.")


# what only arrays in Python can bring about, and rows that are none of the table's
APART = {"engine", "process.py", "arithmetic.py", "soap.py", "words.py"}


def test_messages_name_rows_through_the_callers_words() -> None:
    """A literal 'row ' before a number would be Python's number in the shell too."""
    home, found = Path(un.__file__).parent, []
    for path in sorted(home.rglob("*.py")):
        if APART & {*path.relative_to(home).parts}:
            continue
        texts = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.JoinedStr)]
        for node in texts:
            for before, value in zip(node.values, node.values[1:]):
                text = before.value if isinstance(before, ast.Constant) else ""
                if str(text).lower().endswith("row ") and "row_number" not in ast.unparse(value):
                    found.append(f"{path.name}:{node.lineno}")
    assert not found, found


def test_points_of_the_advice_in_both() -> None:
    for scheme, shell in (("Lattice(randomisations=1)", "--points lattice, "), ("IID", "--points iid, ")):
        about = {"m": 400, "k": 20, "reference": "uniform", "points": scheme, "iid_points": True, "even_points": True}
        evidence = {"names": ["a"], "share": [0.5], "inflation": [1.1]}
        evidence |= {"multiples": [1.0], "shares": [[0.5]], "inflations": [[1.1]], "auc": 0.7, "effective": 0.5}
        evidence |= {"penalty": 2.0, "ncic": 10.0}
        assert f"against uniform, {scheme}, per_point=20" in str(advise("Logistic", about, evidence))
        with in_shell():
            assert f"against uniform, {shell}--references 20" in str(advise("Logistic", about, evidence))


def test_notes_name_no_options() -> None:
    """They are saved with the fit, and read in either place."""
    with in_shell():
        gap = un.transitions(_table(t=np.array([1, 2, 4])), y=("x", "y"), order="t")
        times = un.transitions(_table(t=np.array([1.0, 2.0, 4.0])), y=("x", "y"), order="t")
    for note in (*gap.notes, *times.notes):
        assert "--" not in note
        assert "max_gap=" not in note
    assert "(max_gap)" in gap.notes[0]
    assert "(max_gap)" in times.notes[0]
