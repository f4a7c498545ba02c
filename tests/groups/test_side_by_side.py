"""Levels that are fitted side by side have every digit that they have one after the other."""

from __future__ import annotations

import numpy as np

import unnorm as un
from unnorm._base.threads import on_one_core
from unnorm.errors import hush
from unnorm.groups import each


def test_two_fits_at_a_time_are_those_of_one_at_a_time(monkeypatch):
    obs = un.transitions(un.datasets.eye(), y=("x", "y"), order="fix", group=("subject", "image"))
    some = obs.take(obs.group["subject"] <= 3)
    model = un.Additive("s(step, k=8) + s(angle, bs='cc', k=8)", un.Box((0, 800), (0, 600)), y_down=True)

    def fits() -> un.FitGroup:
        with hush():  # the model is too simple for these data
            return un.fit_each(model, some, "subject", un.Logistic(per_point=8), rng=1)

    with on_one_core():
        one = fits()
    monkeypatch.setattr(each, "cores", lambda: 2)
    two = fits()
    for level in one.levels:
        a, b = one.fits[level].smooths, two.fits[level].smooths
        assert np.array_equal(a.beta, b.beta)
        assert np.array_equal(a.errors.total, b.errors.total)
        assert one.fits[level].constants == two.fits[level].constants
    np.testing.assert_allclose(one.group.smooths.beta, two.group.smooths.beta, rtol=1e-8, atol=1e-10)
