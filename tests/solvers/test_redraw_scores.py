"""Scores on fresh reference points: tables and contexts against the dense design."""

from __future__ import annotations

import numpy as np

import unnorm as un
from unnorm.solvers.redraw_scores import RedrawScores


def test_they_are_those_of_the_dense_design():
    obs = un.transitions(un.datasets.eye(), y=("x", "y"), order="fix", group=("subject", "image"))
    one = obs.take(obs.group["subject"] == 1)
    terms = "s(step, k=8) + s(angle, bs='cc', k=8) + s(x, y, k=12) + linear(dcenter)"
    model = un.Additive(terms, un.Box((0, 800), (0, 600)), y_down=True)
    chi, logistic = un.Smooth("s(x_prev, y_prev, k=12)"), un.Logistic(un.Uniform(), per_point=10)
    problem = logistic.additive(model, one, chi, 1)
    gam = un.Smoothing(reference_error=False).solve_rows(problem).terms.gam
    inner = gam.smoothed
    score = RedrawScores(problem, gam.terms, inner.slices, inner.beta, gam.columns)
    for i in range(2):
        rows = problem.redraw(i, 1.0).whole()
        _, part = problem.predictor(rows)
        X = np.ones((len(rows), inner.size))
        for term in gam.terms:
            X[:, inner.slices[term.label]] = term.design({name: part.columns[name] for name in term.covariates})
        v = np.where(rows.data, 0.0, rows.likelihood.slopes(X @ inner.beta + part.offset)[0])
        # in units of the scores' own spread over the rows
        scale = np.sqrt((X**2).T @ v**2)
        assert np.max(np.abs(score(rows) - X.T @ v) / scale) < 2e-3
        label = rows.at % 3
        sums = np.stack([X[label == c].T @ v[label == c] for c in range(3)])
        np.testing.assert_allclose(score.by_label(rows, label, 3), sums, rtol=1e-9, atol=1e-9 * np.abs(sums).max())
