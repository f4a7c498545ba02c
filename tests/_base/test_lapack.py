"""LAPACK by its addresses: the eigenpairs of NumPy, and none where its whole numbers are not those expected."""

import numpy as np

from unnorm._base import lapack


def test_the_largest_eigenpairs(monkeypatch):
    A = np.random.default_rng(0).normal(size=(50, 50))
    A += A.T
    values, vectors = lapack.largest_eigenpairs(A, 7)
    every = np.linalg.eigvalsh(A)
    np.testing.assert_allclose(values, np.sort(every[np.argsort(-np.abs(every))[:7]]), rtol=1e-12)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-12)
    monkeypatch.setattr(lapack, "_routine", lambda name, arguments: None)
    assert lapack.largest_eigenpairs(A, 7) is None
