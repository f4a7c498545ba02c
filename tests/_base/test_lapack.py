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


def test_matrices_as_they_come():
    """Not contiguous, read only, with eigenvalues many times the same: the input stays, vectors are orthonormal."""
    A = np.random.default_rng(1).normal(size=(80, 80))
    A = (A + A.T)[::2, ::2]
    A.flags.writeable = False
    for given in (
        A,
        np.array(A, order="F"),
        np.eye(40),
        np.kron(np.eye(20), [[2.0, 1.0], [1.0, 2.0]]),
        np.outer(A[0], A[0]),
    ):
        before = given.copy()
        found = lapack.largest_eigenpairs(given, 6)
        assert found is not None
        values, vectors = found
        np.testing.assert_array_equal(given, before)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-12)
        np.testing.assert_allclose(given @ vectors, vectors * values, atol=1e-12)


def test_no_vectors_rather_than_nan():
    """LAPACK's inverse iteration does not scale its matrix, and says nothing where it overflows."""
    A = np.random.default_rng(2).normal(size=(40, 40))
    for bad in (1e200 * (A + A.T), np.zeros((40, 40)), np.where(np.eye(40) > 0, np.inf, A + A.T), A + np.nan):
        assert lapack.largest_eigenpairs(bad, 6) is None


def test_several_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    made = [np.random.default_rng(seed).normal(size=(60, 60)) for seed in range(4)]
    alone = [lapack.largest_eigenpairs(A + A.T, 9) for A in made]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: lapack.largest_eigenpairs(made[i % 4] + made[i % 4].T, 9), range(40)))
    for i, found in enumerate(together):
        for one, other in zip(found, alone[i % 4], strict=True):
            np.testing.assert_array_equal(one, other)


def test_whole_numbers_of_64_bits_are_not_taken_for_32(monkeypatch):
    """The capsule's name is the routine's signature in C."""
    import ctypes
    from types import SimpleNamespace

    kinds = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(("PyCapsule_New", ctypes.pythonapi))
    signature = b"void (char *, int64_t *, double *, int64_t *)"
    table = SimpleNamespace(__pyx_capi__={"dsytrd": new(1, signature, None)})
    monkeypatch.setattr(lapack, "import_module", lambda name: table)
    assert lapack._routine.__wrapped__("dsytrd", 10) is None
