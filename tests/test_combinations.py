"""Every model × objective × normaliser × points: a fit that makes sense, or a sentence with reason and remedy."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import unnorm as un
from unnorm.errors import UnnormError, UnnormWarning

OMEGA = un.Interval(-1, 1)
CHAIN = un.datasets.toy_chain(60, 0.5, 5.0, rng=1)
OBS = {
    "iid": un.iid(CHAIN[1:]),
    "transitions": un.transitions(CHAIN),
    "conditional": un.conditional({"y": CHAIN[1:], "x": CHAIN[:-1]}, y="y", x="x"),
}


def _curve(before: str) -> un.Additive:
    return un.Additive("y + s(gap, k=4)", OMEGA, covariates=[un.Expression("gap", f"abs(y - {before})")])


def _energy(theta: Any, y: Any, x: Any) -> Any:
    return theta["a"] * y - 0.5 * jnp.exp(theta["b"]) * (y - x) ** 2


START = {"a": 0.0, "b": 0.0}
MODELS = {
    ("family", "iid"): un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), OMEGA),
    ("family", "transitions"): un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), OMEGA),
    ("family", "conditional"): un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x["x"]) ** 2), ("a", "b"), OMEGA),
    ("energy", "iid"): un.Energy(lambda theta, y: _energy(theta, y, 0.0), START, OMEGA),
    ("energy", "transitions"): un.Energy(_energy, START, OMEGA),
    ("additive", "iid"): un.Additive("s(y, k=5)", OMEGA),
    ("additive", "transitions"): _curve("y_prev"),
}
OBJECTIVES = ("Exact", "Poisson", "Logistic", "Importance", "Ranking", "ConditionalNCE")
NORMALISERS = ("default", "Constant", "PerContext", "Smooth", "Fixed")
POINTS = {"default": None, "IID": un.IID(), "Stratified": un.Stratified(), "Lattice(2)": un.Lattice(2)}


def _normaliser(name: str, kind: str) -> Any:
    context = {"iid": "y", "transitions": "y_prev", "conditional": "x"}[kind]
    known = {"default": None, "Constant": un.Constant(), "PerContext": un.PerContext(), "Fixed": un.Fixed(0.0)}
    return un.Smooth(f"s({context}, k=4)") if name == "Smooth" else known[name]


def refusal(model: str, kind: str, objective: str, normaliser: str, points: str) -> str | None:
    """The sentence that is due, or None where the combination works."""
    iid = kind == "iid"
    if model == "additive" and normaliser == "Fixed":
        return r"Fixed.*terms of an additive model have none.*Use un.Constant"
    if objective == "Exact":
        if normaliser == "Smooth":
            return r"Exact takes no smooth normaliser: use un.Logistic"
        right = "Constant" if iid else "PerContext"
        return None if normaliser in ("default", right) else rf"can only be {right}\(\) here.*Leave normaliser out"
    if objective in ("Ranking", "ConditionalNCE"):
        if normaliser == "Smooth":
            return rf"{objective} takes no smooth normaliser: use un.Logistic"
        if normaliser in ("Constant", "Fixed"):
            return rf"In {objective} the normalising constants cancel: leave normaliser out"
        if points in ("Stratified", "Lattice(2)"):
            return rf"{objective} needs IID reference points: .*bias it.*use objective=un.Logistic"
        return rf"{objective} compares each observation.*IID data share theirs. Use un.Logistic" if iid else None
    if iid and normaliser == "Smooth":
        return r"is a function of the context, and IID data have none.*Use un.Constant"
    if iid and normaliser == "PerContext":
        return r"PerContext\(\) needs a context.*Use un.Constant"
    if objective == "Importance" and normaliser == "PerContext":
        return r"free ν_t for each context fails with few private reference points.*un.Smooth.*per_point ≥ 50"
    return None


@cache
def _exact(model: str, kind: str) -> un.Fit:
    return un.fit(MODELS[model, kind], OBS[kind])


CASES = [
    (model, kind, objective, normaliser, points)
    for model, kind in MODELS
    for objective in OBJECTIVES
    for normaliser in NORMALISERS
    for points in (POINTS if objective not in ("Exact", "Poisson") else ["default"])
    if kind != "conditional" or points == "default"
]


@pytest.mark.parametrize(("model", "kind", "objective", "normaliser"), list(dict.fromkeys(case[:4] for case in CASES)))
def test_it_fits_or_says_why_not(model: str, kind: str, objective: str, normaliser: str) -> None:
    for points in (case[4] for case in CASES if case[:4] == (model, kind, objective, normaliser)):
        given: dict[str, Any] = {"total": 600} if kind == "iid" else {"per_point": 10}
        chosen: Any = getattr(un, objective)
        chosen = chosen() if objective in ("Exact", "Poisson") else chosen(un.Uniform(), points=POINTS[points], **given)
        due = refusal(model, kind, objective, normaliser, points)
        args = (MODELS[model, kind], OBS[kind], chosen, _normaliser(normaliser, kind))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnnormWarning)  # Constant() with a context, which is another test's
            if due is not None:
                with pytest.raises(UnnormError, match=due):
                    un.fit(*args, rng=1)
                continue
            fit = un.fit(*args, rng=1)
        assert fit.converged
        assert np.all(np.isfinite(fit.se))
        assert fit.summary()
        assert fit.advise().sentences
        if fit.smooths is not None:
            table = fit.effect(next(iter(fit.smooths.model_labels)))
            assert np.all(np.isfinite(table["se"]))
        if normaliser == "Fixed" or (normaliser == "Constant" and kind != "iid"):
            continue  # another model
        exact = _exact(model, kind)
        if exact.names:
            # 60 observations, ten IID points each: a free ν_t is biased by up to a standard error (docs/toy.md)
            away = 2.0 if normaliser == "PerContext" or objective in ("Ranking", "ConditionalNCE") else 0.6
            assert np.all(np.abs(fit.estimate - exact.estimate) < away * exact.se), points


@pytest.mark.parametrize("objective", [un.Logistic, un.Importance, un.Ranking])
def test_kernels_around_the_outcome_are_for_conditional_nce(objective: Any) -> None:
    """q(·|y_t) is no law of y_t: with Logistic the estimates were off by two without a word."""
    bits = un.BinaryVectors(3)
    model = un.ExponentialFamily(lambda y, x: (y[0], y[1] * x[0]), ("a", "b"), bits)
    obs = un.transitions(np.random.default_rng(0).integers(0, 2, (60, 3)))
    normaliser = un.PerContext() if objective is un.Logistic else un.Constant() if objective is un.Importance else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)
        with pytest.raises(UnnormError, match=r"does not depend on the outcome.*use un.ConditionalNCE"):
            un.fit(model, obs, objective(un.BitFlip(), per_point=5), normaliser, rng=1)
    assert un.fit(model, obs, un.ConditionalNCE(un.BitFlip(), per_point=3), rng=1).converged


def test_a_pair_of_functions_gets_iid_points_and_says_so() -> None:
    pair = un.Custom(lambda rng, n, x: rng.uniform(-1, 1, n), lambda y, x: np.full(len(y), -np.log(2.0)))
    fit = un.fit(MODELS["family", "iid"], OBS["iid"], un.Logistic(pair, total=600), rng=1)
    assert any("no map from the unit cube, so its points are IID" in note for note in fit.notes)


def test_free_constants_come_with_a_word() -> None:
    model, obs = MODELS["family", "transitions"], OBS["transitions"]
    fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=10), un.PerContext(), rng=1)
    assert any("θ is biased" in note and "un.Ranking" in note for note in fit.notes)
