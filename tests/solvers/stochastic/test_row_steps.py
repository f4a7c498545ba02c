"""Tables of which a point reads a few rows: the same numbers as dense steps, at a cost that V does not enter."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import unnorm as un
from unnorm.errors import InputError, OutsideError, UnnormWarning

V, D, LAGS = 12, 3, 2
TABLES = ("out", "bias", "in")


def energy(theta: Any, y: Any, x: Any) -> Any:
    """Log-bilinear: f = b_y + ⟨o_y, Σ_l a_l i_{x_l}⟩; the rows arrive, not the tables."""
    context = jnp.einsum("l,ld->d", theta["lag"], theta["in"])
    return theta["bias"] + theta["out"] @ context


def model(seed: int = 5) -> un.Energy:
    rng = np.random.default_rng(seed)
    start = {
        "bias": np.zeros(V),
        "in": 0.3 * rng.normal(size=(V, D)),
        "lag": np.array([1.0, 0.5]),
        "out": 0.3 * rng.normal(size=(V, D)),
    }
    return un.Energy(energy, start, un.FiniteSet(range(V)), by_outcome=("out", "bias"), by_context=("in",))


@pytest.fixture(scope="module")
def words() -> un.Observations:
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.full(V, 0.3), size=V)
    chain = [0]
    for _ in range(600):
        chain.append(int(rng.choice(V, p=P[chain[-1]])))
    return un.transitions(np.array(chain, dtype=float), lags=LAGS)


@pytest.mark.parametrize(
    ("objective", "normaliser"),
    [
        (un.Logistic(un.Marginal(), per_point=4, points=un.IID()), un.Constant()),
        (un.Logistic(un.Marginal(), per_point=4, points=un.IID()), un.Fixed(0.0)),
        (un.Ranking(un.Marginal(), 4), un.PerContext()),
        (un.Poisson(), un.Constant()),
    ],
    ids=["logistic", "constant ignored", "ranking", "poisson"],
)
def test_rows_alone_give_the_numbers_of_dense_adagrad(words: un.Observations, objective: Any, normaliser: Any) -> None:
    """Rows that a batch reads twice included; the dense optimiser sees every row, with a gradient of zero."""
    rest = optax.adagrad(0.05, initial_accumulator_value=0.0, eps=1e-8)
    common: dict[str, Any] = {"steps": 40, "batch": 32, "block": 10, "references": 4, "precondition": False}
    ends = []
    for rate in (0.05, None):
        solver = un.SGD(rest, row_rate=rate, **common)
        ends.append(solver.climb(solver.estimator(model(), words, objective, normaliser), np.random.default_rng(7)))
    by_rows, dense = ends
    np.testing.assert_allclose(by_rows.last, dense.last, rtol=0, atol=1e-9)
    assert np.abs(by_rows.last[: model().size] - model().start).max() > 0.05
    np.testing.assert_allclose(by_rows.history["value"], dense.history["value"], rtol=1e-9)


def test_f_sees_rows_wherever_it_is_asked(words: un.Observations) -> None:
    """log_f, log Z and densities by the same f written with indices."""
    m, start = model(), model().theta0
    plain = un.Energy(
        lambda th, y, x: energy(
            th | {"out": th["out"][y.astype(int)], "bias": th["bias"][y.astype(int)], "in": th["in"][x.astype(int)]},
            y,
            x,
        ),
        start,
        un.FiniteSet(range(V)),
    )
    from unnorm.models.base import context_arguments

    arguments = context_arguments(words, True, 1)
    for of in ("log_f", "jacobian"):
        ours, theirs = (getattr(one, of)(one.start, words.outcome, arguments) for one in (m, plain))
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert [(t.name, m.names[t.begin], m.names[t.end - 1]) for t in m.tables] == [
        ("bias", "bias[0]", f"bias[{V - 1}]"),
        ("in", "in[0,0]", f"in[{V - 1},{D - 1}]"),
        ("out", "out[0,0]", f"out[{V - 1},{D - 1}]"),
    ]


def test_a_fit_learns_and_a_checkpoint_goes_on_to_the_same_numbers(words: un.Observations, tmp_path: Any) -> None:
    q = un.Logistic(un.Marginal(), per_point=8, points=un.IID())
    with pytest.warns(UnnormWarning, match="did not converge"):
        fit = un.fit(model(), words, un.Ranking(un.Marginal(), 8), solver=un.SGD(steps=200, batch=100), rng=1)
    assert fit.diagnostics["value"][-1] > fit.diagnostics["value"][0] + 50
    path = tmp_path / "run"
    optimiser = optax.adam(1e-2)
    ends = []
    for steps, to in ((100, None), (50, path), (100, path)):
        solver = un.SGD(optimiser, steps=steps, batch=100, checkpoint=to)
        e = solver.estimator(model(), words, q, un.Constant())
        ends.append(solver.climb(e, np.random.default_rng(7)).last)
    np.testing.assert_array_equal(ends[0], ends[2])
    assert np.abs(ends[1] - ends[2]).max() > 1e-3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"by_outcome": ("nothing",)}, "theta0 has no 'nothing'; it has 'bias', 'in'"),
        ({"by_outcome": ("in",)}, "not to both"),
        ({"theta0": np.zeros(3)}, "must be a dict"),
        ({"domain": un.Box((0, 1), (0, 1))}, "FiniteSet of 0, 1, 2"),
        ({"theta0": {"out": 1.0, "bias": 0.0, "in": 2.0}}, "must be an array of V rows"),
        ({"f": lambda theta, y: 0.0}, "by_context needs an f with a context"),
    ],
)
def test_tables_that_cannot_be_looked_up_are_refused(change: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {
        "f": energy,
        "theta0": model().theta0,
        "domain": un.FiniteSet(range(V)),
        "by_outcome": ("out", "bias"),
        "by_context": ("in",),
    }
    with pytest.raises(InputError, match=says):
        un.Energy(**(good | change))


@pytest.mark.parametrize(
    ("change", "says"),
    [({"precondition": True}, "every row"), ({"prior": un.Normal(1.0)}, "every row"), ({"row_rate": 0.0}, "positive")],
)
def test_what_needs_every_row_is_refused_with_a_remedy(
    words: un.Observations, change: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        un.fit(model(), words, un.Ranking(un.Marginal(), 4), solver=un.SGD(steps=2, **change), rng=1)


def test_a_table_shorter_than_the_outcomes_is_refused() -> None:
    short = {**model().theta0, "out": np.zeros((V - 1, D))}
    with pytest.raises(InputError, match=r"'out' has 11 rows.*12 outcomes"):
        un.Energy(energy, short, un.FiniteSet(range(V)), by_outcome=("out", "bias"), by_context=("in",))
    with pytest.raises(InputError, match="0, 1, 2"):
        un.Energy(energy, model().theta0, un.FiniteSet([1, 2, 5]), by_outcome=("out", "bias"), by_context=("in",))


def test_words_outside_the_vocabulary_in_contexts(words: un.Observations) -> None:
    """JAX reads the last row in place of one that does not exist: held-out words after an unknown one had a number."""
    with pytest.warns(UnnormWarning, match="did not converge"):
        fit = un.fit(model(), words, un.Ranking(un.Marginal(), per_point=4), solver=un.SGD(steps=5, batch=16), rng=1)
    text = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
    for place, unknown in ((0, 99.0), (1, -1.0), (0, 2.5)):
        odd = text.copy()
        odd[place] = unknown
        with pytest.raises(OutsideError, match=rf"the first is row 2 \(rows count from 0\), y = \[ ?{unknown:g}\.?\]"):
            fit.held_out(un.transitions(odd, lags=LAGS))
        with pytest.raises(OutsideError, match="outside the vocabulary of 12 rows, 0 to 11"):
            fit.log_density([3.0], x=[[unknown, 1.0]])
    odd = text.copy()
    odd[0] = 99.0
    obs, omega = un.transitions(odd, lags=LAGS), model().domain
    inside = omega.contains(obs.outcome) & omega.contains(obs.previous(1)) & omega.contains(obs.previous(2))
    assert fit.held_out(obs.take(inside)).rows == 5  # the remedy, as the sentence writes it
    with pytest.raises(
        OutsideError, match=r"the first is row 2 \(rows count from 0\), y = \[99\.\] \(2 points before it\)"
    ):
        un.fit(model(), obs, un.Ranking(un.Marginal(), per_point=4), solver=un.SGD(steps=5), rng=1)


def test_rows_are_looked_up_by_the_points_of_a_chain() -> None:
    obs = un.conditional(np.zeros(9), x={"x1": np.zeros(9), "x2": np.zeros(9)})
    with pytest.raises(InputError, match=r"by_context=\('in',\) looks up rows by the earlier points of a chain"):
        un.fit(model(), obs, un.Ranking(un.Marginal(), per_point=4), solver=un.SGD(steps=5), rng=1)
