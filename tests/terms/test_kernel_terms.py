"""Kernels and their terms: closed forms, positive semi-definite Gram matrices, landmarks, saving, messages."""

import json

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import DataError, TermError
from unnorm.terms import Terms, from_dict, parse
from unnorm.terms.kernel_term import EXACT, LANDMARKS, KernelTerm, distinct
from unnorm.terms.kernels import KERNELS

RNG = np.random.default_rng(0)
N = 60
COLUMNS = {
    "x": RNG.normal(size=N),
    "z": RNG.uniform(0, 24, N),
    "b1": RNG.integers(0, 2, N),
    "b2": RNG.integers(0, 2, N),
    "b3": RNG.integers(0, 2, N),
    "bits": np.array(["".join(RNG.choice(list("01"), 6)) for _ in range(N)]),
    "words": np.array([" ".join(RNG.choice(list("abcdefg"), 3)) for _ in range(N)]),
    "dna": np.array(["".join(RNG.choice(list("ACGT"), RNG.integers(5, 12))) for _ in range(N)]),
}
FORMULAS = [
    "kernel(x)",
    "kernel(x, z, k='gaussian', scale=(0.5, 2.0))",
    "kernel(x, z, k='matern', nu=0.5)",
    "kernel(x, k='matern', nu=1.5)",
    "kernel(x, k='matern', scale=0.3, nu=2.5)",
    "kernel(z, k='periodic', period=24.0)",
    "kernel(x, z, k='linear')",
    "kernel(b1, b2, b3, k='hamming')",
    "kernel(bits, k='hamming', scale=0.2)",
    "kernel(b1, b2, b3, k='jaccard')",
    "kernel(words, k='jaccard')",
    "kernel(dna, k='spectrum', length=2)",
    "kernel(x, z, landmarks=20, lam=0.1, seed=3)",
]


def built(formula: str) -> KernelTerm:
    (term,) = parse(formula).build(COLUMNS)
    assert isinstance(term, KernelTerm)
    return term


@pytest.mark.parametrize("formula", FORMULAS)
def test_columns_are_a_feature_map_of_the_kernel(formula: str) -> None:
    """φ(x)ᵀφ(x') = k(x, x') with all contexts; less with landmarks, on the diagonal; and k is semi-definite."""
    term = built(formula)
    points = term.function.read(COLUMNS, term.covariates, "k")
    K = term.function.gram(points, points)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(K), term.function.diagonal(points), atol=1e-12)
    assert np.linalg.eigvalsh(K)[0] > -1e-9 * N
    phi = term.design(COLUMNS)
    if "landmarks" in formula:
        assert np.all(np.sum(phi**2, axis=1) <= np.diag(K) + 1e-9)
        assert term.size <= 20
        assert 0 < term.unexplained < 0.5
    else:
        np.testing.assert_allclose(phi @ phi.T, K, atol=1e-7 * K.max())


@pytest.mark.parametrize("formula", FORMULAS)
def test_written_and_saved_terms_are_the_same(formula: str) -> None:
    terms = parse(formula)
    assert str(parse(str(terms))) == str(terms)
    term = built(formula)
    again = from_dict(json.loads(json.dumps(term.to_dict())))
    np.testing.assert_array_equal(again.design(COLUMNS), term.design(COLUMNS))
    np.testing.assert_array_equal(again.penalties[0].matrix, np.eye(term.size))
    assert again.fixed_sp == term.fixed_sp


def test_closed_forms() -> None:
    a, b = np.array([[0.0]]), np.array([[0.6]])
    kernels = un.kernels
    columns = {"x": np.array([0.0, 0.6])}

    def value(kernel: un.kernels.KernelFunction) -> float:
        whole = kernel.resolved(columns, ("x",), {}, "k")
        points = whole.read(columns, ("x",), "k")
        return float(whole.gram(points, points)[0, 1])

    assert value(kernels.Gaussian(2.0)) == pytest.approx(np.exp(-0.5 * 0.09))
    assert value(kernels.Matern(2.0, 0.5)) == pytest.approx(np.exp(-0.3))
    r = np.sqrt(3) * 0.3
    assert value(kernels.Matern(2.0, 1.5)) == pytest.approx((1 + r) * np.exp(-r))
    r = np.sqrt(5) * 0.3
    assert value(kernels.Matern(2.0, 2.5)) == pytest.approx((1 + r + r**2 / 3) * np.exp(-r))
    assert value(kernels.Gaussian()) == pytest.approx(np.exp(-0.5 * (0.6 / 0.3) ** 2))  # the sd of 0 and 0.6 is 0.3
    assert kernels.Periodic(1.0, 2.0).gram(a, b)[0, 0] == pytest.approx(np.exp(-2 * np.sin(0.6 * np.pi) ** 2 / 4))


def test_jaccard_of_text_and_bits_agree() -> None:
    k = un.kernels.Jaccard()
    bits = np.column_stack([COLUMNS[name] for name in ("b1", "b2", "b3")])
    text = np.array([" ".join(f"e{j}" for j in np.flatnonzero(row)) for row in bits])
    by_bits = k.read(COLUMNS, ("b1", "b2", "b3"), "k")
    by_text = k.read({"t": text}, ("t",), "k")
    np.testing.assert_array_equal(k.gram(by_bits, by_bits), k.gram(by_text, by_text))
    assert k.gram(by_bits, by_bits)[0, 0] == 1.0  # also for an empty set


def test_distinct_rows_come_in_order_of_appearance() -> None:
    columns = {"a": np.array([2.0, 2.0, -0.0, 0.0, 2.0, 1.0]), "t": np.array(["u", "u", "v", "v", "w", "u"])}
    first, which = distinct(columns, ("a", "t"), "k")
    np.testing.assert_array_equal(first, [0, 2, 4, 5])
    np.testing.assert_array_equal(which, [0, 0, 1, 1, 2, 3])


def test_many_contexts_get_landmarks_that_span_nearly_all() -> None:
    x = np.random.default_rng(1).normal(size=EXACT + 500)
    (term,) = parse("kernel(x, k='matern', nu=0.5)").build({"x": x})
    assert isinstance(term, KernelTerm)
    assert term.size <= LANDMARKS
    assert term.unexplained < 0.01
    (other,) = parse("kernel(x, k='matern', nu=0.5)").build({"x": x})
    np.testing.assert_array_equal(other.design({"x": x[:9]}), term.design({"x": x[:9]}))
    # drawn where the kernel is not yet explained: better than as many at random
    function = term.function
    points = function.read({"x": x}, ("x",), "k")
    some = points[np.random.default_rng(2).choice(len(x), LANDMARKS, replace=False)]
    across = function.gram(points, some)
    left = 1 - np.sum(across * np.linalg.solve(function.gram(some, some), across.T).T, axis=1)
    assert term.unexplained < 0.7 * left.mean()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: un.kernel("x", lam=0.0), TermError, "lam must be a finite number above 0"),
        (lambda: un.kernel("x", lam=float("nan")), TermError, "lam must be"),
        (lambda: un.kernel("x", k="gauss"), TermError, "gaussian"),
        (lambda: un.kernel("x", k="linear", nu=0.5), TermError, "takes"),
        (lambda: un.kernel("x", k=un.kernels.Gaussian(), scale=1.0), TermError, "belong to k itself"),
        (lambda: un.kernels.Gaussian(scale=-1.0), TermError, "scale must be"),
        (lambda: un.kernels.Matern(nu=2.0), TermError, "0.5, 1.5 or 2.5"),
        (lambda: un.kernels.Spectrum(length=0), TermError, "at least 1"),
        (lambda: built("kernel(words)"), DataError, "needs numbers"),
        (lambda: built("kernel(x, k='spectrum')"), DataError, "must be text"),
        (lambda: built("kernel(x, k='jaccard')"), DataError, "columns of 0 and 1"),
        (lambda: built("kernel(words, dna, k='spectrum')"), TermError, "one text column"),
        (lambda: built("kernel(dna, k='hamming')"), DataError, "must have one length"),
        (lambda: built("kernel(x, k='periodic')"), TermError, "declares no period"),
        (lambda: built("kernel(x, landmarks=61)"), TermError, "there are 60"),
        (lambda: built("kernel(x, z, scale=(1.0, 2.0, 3.0))"), TermError, "one for each of the 2 columns"),
        (lambda: parse("kernel(x)").build({"x": np.array([0.0, np.nan])}), DataError, "missing or infinite"),
        (lambda: parse("kernel(x)").build({"x": np.ones(5)}), TermError, "constant"),
    ],
)
def test_messages(make, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        make()


def test_every_kernel_is_public_and_named() -> None:
    for name, cls in KERNELS.items():
        assert getattr(un.kernels, cls.__name__) is cls
        assert cls.name == name
    assert str(Terms((un.kernel("x"),))) == "kernel(x, k='gaussian')"
