"""Messages in the caller's words: each place that names a setting, in Python's and in the shell's."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
from unnorm.errors import InputError, UnnormError
from unnorm.inference.advice import advise
from unnorm.references import SCHEMES, PointScheme
from unnorm.report.analysis import Analysis
from unnorm.results.normaliser_check import NormaliserCheck


def test_examples_run() -> None:
    assert doctest.testmod(words).failed == 0


def test_every_option_is_an_argument_in_python_and_an_option_in_the_shell() -> None:
    callables: tuple[Callable[..., Any], ...] = (un.transitions, un.fit, un.Additive, un.Logistic)
    callables += (un.pattern, un.fit_pattern, un.fit_each, Analysis)
    arguments = {name for one in callables for name in inspect.signature(one).parameters}
    own = [name for one in (pattern, fit) for name in inspect.signature(one).parameters]
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
