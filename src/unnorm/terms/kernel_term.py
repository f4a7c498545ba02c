"""kernel(…): a function in a reproducing-kernel Hilbert space H (Section 2.3), as a term of the additive engine.

By the representer theorem (Remark 5) the minimiser of −ℓ(h(x_1), …, h(x_n)) + λ|h|²_H is h = Σ_t α_t k(·, x_t). With
K = V D Vᵀ at the distinct contexts and β = D^{1/2} Vᵀ α,

    h(x) = φ(x)ᵀβ,    φ(x) = D^{−1/2} Vᵀ k(x),    |h|²_H = βᵀβ,

so that columns φ with an identity penalty are the same problem. Beyond `EXACT` contexts the same with some of them, the
landmarks, in place of all (Nyström): the best h in the span of k(·, landmark). A free constant is not penalised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from ..errors import TermError
from .arguments import integer
from .base import Columns, Penalty
from .basis import chunked
from .built import SavedTerm
from .kernels import KERNELS, KernelFunction
from .kernels.base import named
from .sample import column_of
from .specs import Term, names_of
from .writing import options_of, written

EXACT = 1500  # distinct contexts up to which all are landmarks
LANDMARKS = 300  # beyond
CANDIDATES = 3000  # contexts among which landmarks are chosen
RELATIVE = 1e-10  # of K's largest eigenvalue: a λ above 1e-8 n leaves nothing of functions below that
CELLS = 1 << 22  # values of k computed at a time


@final
@dataclass(frozen=True)
class KernelSmooth(Term):
    """kernel(…): what the user wrote."""

    covariates: tuple[str, ...]
    kernel: KernelFunction
    lam: float | None = None
    landmarks: int | None = None
    seed: int = 0

    @property
    def label(self) -> str:
        names = self.covariates
        return f"kernel({','.join(names)})" if len(names) <= 4 else f"kernel({names[0]},…,{names[-1]})"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.covariates

    def __str__(self) -> str:
        own = {"k": self.kernel.name, **self.kernel.options()}
        options = options_of(**own, lam=self.lam, landmarks=self.landmarks, seed=self.seed or None)
        return f"kernel({', '.join([*(written(name) for name in self.covariates), *options])})"


def kernel(
    *covariates: str,
    k: str | KernelFunction = "gaussian",
    lam: float | None = None,
    landmarks: int | None = None,
    seed: int = 0,
    **parameters: Any,
) -> KernelSmooth:
    """A function of the context in a reproducing-kernel Hilbert space, penalised by λ|h|²_H (eq. 2.7).

    Args:
        covariates: columns; what they must hold depends on the kernel.
        k: "gaussian", "matern", "periodic", "linear", "hamming", "jaccard" or "spectrum", or one of `un.kernels`.
        lam: λ; default chosen with the other smoothing parameters (REML, or `smoothing="cv"`).
        landmarks: how many contexts h is made of; default all of up to 1,500 different ones, 300 of more.
        seed: of the choice of landmarks.
        parameters: of a kernel that is named, e.g. scale=0.5.

    >>> str(kernel("x", "z", k="matern", nu=2.5, lam=0.1))
    "kernel(x, z, k='matern', nu=2.5, lam=0.1)"
    """
    names = names_of("kernel", covariates)
    label = f"kernel({','.join(names[:4])})"
    if isinstance(k, KernelFunction):
        if parameters:
            raise TermError(f"{label}: parameters belong to k itself, e.g. k={k!r}; got {', '.join(parameters)} too.")
        function = k
    else:
        function = named(KERNELS, k, parameters)
    if lam is not None and (
        isinstance(lam, bool) or not isinstance(lam, int | float | np.number) or not 0 < lam < np.inf
    ):
        raise TermError(
            f"{label}: lam must be a finite number above 0, or None to have it chosen; got {lam!r}. Without a penalty "
            "the function is not unique."
        )
    count = None if landmarks is None else integer(label, "landmarks", landmarks, 1)
    at = integer(label, "seed", seed, 0)
    return KernelSmooth(names, function, None if lam is None else float(lam), count, at)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class KernelTerm(SavedTerm):
    """h(x) = φ(x)ᵀβ on given landmarks."""

    kind: ClassVar[str] = "kernel"
    kernel: Mapping[str, Any]  # the kernel's description, nothing left open
    landmarks: tuple[tuple[Any, ...], ...] = ()  # a tuple of values for each covariate
    transform: np.ndarray  # (m, p) V D^{−1/2}
    unexplained: float = 0.0  # the share of Σ k(x, x) that the landmarks do not span

    @property
    def larger(self) -> str | None:
        return f"landmarks={2 * len(self.landmarks[0])}" if self.unexplained else None

    def __post_init__(self) -> None:
        whole = np.ascontiguousarray(self.transform, dtype=np.float64).reshape(-1, self.size)
        object.__setattr__(self, "transform", whole)  # contiguous: products are the same to the last bit when read back

    @property
    def remark(self) -> str | None:
        if not self.unexplained:
            return None
        return (
            f"{self.label} is made of {len(self.landmarks[0]):,} landmarks, which leave {self.unexplained:.1g} of the "
            "kernel's trace: landmarks= sets their number."
        )

    @property
    def smooth_covariates(self) -> tuple[str, ...]:
        return self.covariates

    @cached_property
    def function(self) -> KernelFunction:
        return KERNELS[self.kernel["kernel"]].from_dict(self.kernel)

    @cached_property
    def _at(self) -> np.ndarray:
        columns = {name: np.array(values) for name, values in zip(self.covariates, self.landmarks)}
        return self.function.read(columns, self.covariates, self.label)

    def design(self, columns: Columns) -> np.ndarray:
        first, which = distinct(columns, self.covariates, self.label)
        some = {name: np.asarray(columns[name])[first] for name in self.covariates}
        points = self.function.read(some, self.covariates, self.label)
        rows = max(1, CELLS // len(self._at))
        return chunked(points, self.size, rows, lambda a: self.function.gram(a, self._at) @ self.transform)[which]


def distinct(columns: Columns, names: tuple[str, ...], what: str) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each different combination of values, in order of appearance; and which one each row is."""
    data = [column_of(columns, name, what) for name in names]
    if len({len(column) for column in data}) != 1:
        raise TermError(f"{what}: its columns have different lengths. Give one value a row in each.")
    n = len(data[0])
    new = np.zeros(n, dtype=bool)
    new[:1] = True
    for column in data:  # rows of one context lie together
        new[1:] |= column[1:] != column[:-1]
    runs = np.flatnonzero(new)
    keys = np.empty((len(runs), len(data)))
    for j, column in enumerate(data):
        here = column[runs]
        keys[:, j] = here + 0.0 if here.dtype.kind in "iufb" else np.unique(here, return_inverse=True)[1]
    whole = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1]))).ravel()
    _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return runs[first[order]], rank[inverse.ravel()][np.cumsum(new) - 1]


def build_kernel(spec: KernelSmooth, columns: Columns, periods: Mapping[str, Any]) -> KernelTerm:
    """The term on these data: its scales resolved, its landmarks chosen, K diagonalised."""
    what, names = spec.label, spec.covariates
    first, _ = distinct(columns, names, what)
    if not len(first):
        raise TermError(f"{what}: the data have no rows.")
    some = {name: np.asarray(columns[name])[first] for name in names}
    function = spec.kernel.resolved(some, names, periods, what)
    points = function.read(some, names, what)
    count = len(first)
    if spec.landmarks is not None and spec.landmarks > count:
        raise TermError(
            f"{what}: landmarks={spec.landmarks} needs as many different contexts; there are {count}. Lower it, or "
            "leave it out for all of them."
        )
    chosen, unexplained = np.arange(count), 0.0
    wanted = spec.landmarks if spec.landmarks is not None else count if count <= EXACT else LANDMARKS
    if wanted < count:
        chosen, unexplained = choose(function, points, wanted, spec.seed)
    K = function.gram(points[chosen], points[chosen])
    if not np.isfinite(K).all():
        raise TermError(f"{what}: the kernel is not finite at some contexts. Check its scale.")
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    keep = values > RELATIVE * max(float(values[-1]), 0.0)
    if not keep.any():
        raise TermError(f"{what}: the kernel is zero at every context, so that there is nothing to estimate.")
    transform = vectors[:, keep][:, ::-1] / np.sqrt(values[keep][::-1])
    size = transform.shape[1]
    return KernelTerm(
        label=what,
        covariates=names,
        size=size,
        penalties=(Penalty(np.ones((1, 1)), size, what, copies=size),),
        fixed_sp=(None if spec.lam is None else 2 * spec.lam,),  # the engine's penalty is ½ sp βᵀβ
        kernel=function.to_dict(),
        landmarks=tuple(tuple(some[name][chosen].tolist()) for name in names),
        transform=transform,
        unexplained=unexplained,
    )


def choose(function: KernelFunction, points: np.ndarray, wanted: int, seed: int) -> tuple[np.ndarray, float]:
    """Landmarks by randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber 2023), and the share of Σ k(x, x) that they
    leave: each is drawn with probability proportional to what the ones before do not explain, as k-means++ does it with
    distances. Among `CANDIDATES` contexts at most (or as many as are wanted)."""
    rng = np.random.default_rng(seed)
    candidates = np.arange(len(points))
    if len(points) > max(CANDIDATES, wanted):
        candidates = np.sort(rng.choice(len(points), max(CANDIDATES, wanted), replace=False))
    own = points[candidates]
    left = function.diagonal(own).astype(np.float64)
    trace = max(float(left.sum()), 1e-300)
    G = function.gram(own, own)
    factor, picked = np.zeros((len(own), wanted)), []
    for i in range(wanted):
        if left.sum() <= 1e-14 * trace:  # the landmarks so far span every candidate
            break
        pick = int(rng.choice(len(own), p=left / left.sum()))
        column = G[:, pick] - factor[:, :i] @ factor[pick, :i]
        factor[:, i] = column / np.sqrt(max(column[pick], 1e-300))
        left = np.maximum(left - factor[:, i] ** 2, 0.0)
        left[pick] = 0.0
        picked.append(pick)
    return candidates[np.array(picked)], float(left.sum() / trace)
