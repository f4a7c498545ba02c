"""χ linear in very many features of the context, dense or sparse (the paper's discussion), and hashed features."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, final

import numpy as np

from .._base.words import at_row
from ..data.observations import Observations
from ..errors import CombinationError, DataError, InputError
from .normalisers import Layout, Normaliser


@final
class Linear(Normaliser):
    """χ(x) = b + xᵀβ, penalised by λ|β|²: for contexts with hundreds of covariates, or thousands of sparse features.

    The matrix comes with the normaliser and not with the observations: its rows are those of the table that the
    observations were made from. Fitted by conjugate gradients (10⁵ contexts × 10⁴ features: benchmarks/contexts.py).

    Args:
        features: (rows, q), a NumPy array or anything of scipy.sparse; no column of ones, as b is free. Features of
            similar sizes share λ best: standardise dense columns.
        lam: λ; default the largest (by tenths) that moves θ by less than .05 standard errors. "reml" weighs the
            coefficients of χ against each other and not the bias of θ, and often makes χ constant: only to compare.

    Example:
        >>> import numpy as np, scipy.sparse as sp, unnorm as un
        >>> rng = np.random.default_rng(1)
        >>> words = sp.random_array((400, 50), density=0.1, rng=rng, format="csr")
        >>> score = words @ rng.normal(0, 0.4, 50)
        >>> t, u = 2 + score, rng.random(400)
        >>> y = np.log(np.exp(-t) + u * (np.exp(t) - np.exp(-t))) / t  # density ∝ exp(t y) on [−1, 1]
        >>> obs = un.conditional({"y": y, "score": score}, y="y", x="score")
        >>> model = un.ExponentialFamily(lambda y, x: (y, y * x["score"]), ("level", "effect"), un.Interval(-1, 1))
        >>> fit = un.fit(model, obs, un.Logistic(un.Uniform(), per_point=5), un.Linear(words), rng=1)
        >>> fit.names, bool(fit.converged)
        (('level', 'effect'), True)
    """

    of_context = True
    many = True

    def __init__(self, features: Any, *, lam: float | Literal["reml"] | None = None) -> None:
        from scipy.sparse import csr_array, issparse

        if not issparse(features):
            features = np.asarray(features)
            if features.ndim != 2 or features.dtype.kind not in "biuf":
                raise InputError(
                    f"Linear(features) takes a matrix of numbers, a row for each row of the table; got shape "
                    f"{features.shape} of {features.dtype}."
                )
        X: Any = csr_array(features, dtype=np.float64)
        if not np.isfinite(X.data).all():
            raise DataError(
                f"The features of un.Linear hold {int(np.sum(~np.isfinite(X.data))):,} that are not finite."
            )
        number = isinstance(lam, int | float | np.number) and not isinstance(lam, bool) and 0 < lam < np.inf
        if lam not in (None, "reml") and not number:
            raise InputError(f"lam of un.Linear must be a finite number above 0, 'reml' or None; got {lam!r}.")
        self._features = X
        self._lam: float | Literal["reml"] | None = lam if lam is None or lam == "reml" else float(lam)

    @property
    def lam(self) -> float | Literal["reml"] | None:
        """λ as given; None where the solver is to choose it."""
        return self._lam

    def __repr__(self) -> str:
        n, q = self._features.shape
        return f"Linear({n:,} × {q:,} features{'' if self._lam is None else f', lam={self._lam}'})"

    def features(self, obs: Observations) -> Any:
        """(n, q): the rows of these observations, as a scipy.sparse.csr_array."""
        if not obs.has_context:
            raise CombinationError(
                f"{self!r} is a function of the context, and IID data have none. Use un.Constant(), or leave "
                "normaliser out."
            )
        row = np.arange(obs.n) if obs.row is None else obs.row
        if int(row.max()) >= self._features.shape[0]:
            raise DataError(
                f"The features must have a row for each row of the table; they have {self._features.shape[0]:,}, and "
                f"an observation comes from {at_row(int(row.max()))}."
            )
        return self._features[row]

    def layout(self, obs: Observations) -> Layout:
        raise CombinationError(
            f"{self!r} goes with un.Logistic, un.Importance or un.Poisson and their own solver: leave solver out. In "
            "un.Exact, un.Ranking and un.ConditionalNCE the constants are integrated out or cancel; for un.SGD use "
            "un.Network(…)."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"normaliser": "Linear", "features": self._features.shape[1], "lam": self._lam}


def minwise(sets: Iterable[Any], *, hashes: int = 64, bits: int = 4, seed: int = 0) -> Any:
    """Features of sets by b-bit minwise hashing (Li & König 2010), for `un.Linear`: one of 2^b is on for each hash.

    For a random order of all elements, two sets have the same smallest element with probability |A ∩ B|/|A ∪ B|; its
    lowest b bits agree for 2^−b of the others too. The inner product of two rows is therefore, on average,
    J + (1 − J) 2^−b: χ linear in them is a function in the space of the Jaccard kernel and a constant.

    Args:
        sets: one for each row of the table: iterables of whole numbers or of text, or text with blanks in between.
        hashes: how many orders.
        bits: b.
        seed: of the orders.

    Returns:
        (rows, hashes · 2^bits), a scipy.sparse.csr_array with `hashes` entries of 1/√hashes in each row;
        an empty set has none.

    Example:
        >>> import unnorm as un
        >>> X = un.minwise(["red round", "red square big", "round red"], hashes=512, bits=8)
        >>> X.shape, round(float((X[[0]] @ X[[1]].T).toarray()[0, 0]), 1), (X[[0]] != X[[2]]).nnz
        ((3, 131072), 0.2, 0)
    """
    from scipy.sparse import csr_array

    for name, value, most in (("hashes", hashes, 1 << 20), ("bits", bits, 16)):
        if isinstance(value, bool) or value != int(value) or not 1 <= value <= most:
            raise InputError(f"{name} must be a whole number from 1 to {most}; got {value!r}.")
    numbered = [_numbers(one.split() if isinstance(one, str) else one, i) for i, one in enumerate(sets)]
    if not numbered:
        raise DataError("minwise(sets) needs at least one set; got none.")
    size = np.array([len(one) for one in numbered])
    flat = np.concatenate(numbered).astype(np.uint64)
    full = np.flatnonzero(size)
    starts = (np.cumsum(size) - size)[full]
    rng = np.random.default_rng(seed)
    a, b = rng.integers(1, 1 << 63, (2, hashes), dtype=np.uint64)
    column = np.empty((len(full), hashes), dtype=np.int64)
    for j in range(hashes):
        column[:, j] = j * (1 << bits) + (np.minimum.reduceat(_mixed(flat, a[j], b[j]), starts) & ((1 << bits) - 1))
    ends = np.concatenate([[0], np.cumsum(np.where(size > 0, hashes, 0))])
    data = np.full(column.size, 1 / np.sqrt(hashes))
    return csr_array((data, column.ravel(), ends), (len(size), hashes << bits))


def _numbers(elements: Iterable[Any], row: int) -> np.ndarray:
    """Elements as 64-bit numbers: whole numbers themselves, text by a hash that does not change between runs."""
    from hashlib import blake2b

    array: Any = elements if isinstance(elements, np.ndarray) else list(elements)
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        return array.astype(np.int64).view(np.uint64)
    out = np.empty(len(array), dtype=np.uint64)
    for i, element in enumerate(array):
        if isinstance(element, str):
            out[i] = int.from_bytes(blake2b(element.encode(), digest_size=8).digest(), "little")
        elif isinstance(element, int | np.integer) and not isinstance(element, bool):
            out[i] = int(element) & 0xFFFF_FFFF_FFFF_FFFF
        else:
            raise DataError(f"Elements of sets are text or whole numbers; {at_row(row)} holds {element!r}.")
    return out


def _mixed(x: np.ndarray, a: np.uint64, b: np.uint64) -> np.ndarray:
    """A random order of the 64-bit numbers: splitmix64's finaliser of x + a, keyed again by b."""
    with np.errstate(over="ignore"):
        x = x + a
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = (x ^ (x >> np.uint64(31))) + b
        x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        return x ^ (x >> np.uint64(33))
