"""Errors from simulations are simulated until they are known: a standard error does not depend on the seed."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.objectives.pseudo import _noise

Y = np.random.default_rng(3).integers(0, 2, (30, 4))


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_standard_errors_of_rare_states_do_not_depend_on_the_seed() -> None:
    """With 1,000 draws and no more, those of the third field and of its couplings spread by 10 % over the seeds."""
    fits = [un.fit(un.Ising(4), un.iid(Y), un.PseudoLikelihood(), rng=seed) for seed in range(6)]
    se = np.array([fit.se for fit in fits])
    assert np.max(se.std(axis=0, ddof=1) / se.mean(axis=0)) < 0.05


def test_noise_of_a_root_mean_square() -> None:
    rng = np.random.default_rng(1)
    u = rng.normal(size=(4000, 400)) ** 3  # heavy tails
    roots = np.sqrt(np.mean(u**2, axis=0))
    told = [_noise(np.sum(column**2, keepdims=True), np.sum(column**4, keepdims=True), 4000) for column in u.T]
    assert np.mean(told) == pytest.approx(roots.std() / roots.mean(), rel=0.25)


def test_no_more_is_drawn_where_that_is_enough() -> None:
    y = np.random.default_rng(5).integers(0, 2, (200, 2))
    fit = un.fit(un.Ising(2), un.iid(y), un.PseudoLikelihood(errors="simulated", draws=4000), rng=1)
    assert any("are from 4,000 simulated" in note for note in fit.notes), fit.notes
