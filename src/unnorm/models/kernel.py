"""χ in a reproducing-kernel Hilbert space (Section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, final

from ..data.observations import Observations
from ..errors import CombinationError
from ..terms import Terms
from ..terms.kernel_term import KernelSmooth, kernel
from ..terms.kernels import KernelFunction
from .normalisers import Layout, Normaliser


@final
class Kernel(Normaliser):
    """χ(x) = b + h(x), h in the reproducing-kernel Hilbert space of k, penalised by λ|h|²_H (eq. 2.7); b is free.

    By the representer theorem (Remark 5) h = Σ_t α_t k(·, x_t): exactly so up to 1,500 different contexts; beyond, h is
    a combination of k at some of them, the landmarks. As λ → 0 the estimate tends to that of free constants at rate
    O(λ) (`un.kernel_path`); there is no λ > 0 at which they are equal. What λ leaves of −log ∫ exp f(y|x) dy biases θ:
    where Ω has a rule, `un.Anchored` has no such bias, and takes a kernel for its δ, un.Anchored(un.Kernel()).

    Args:
        k: the kernel: one of `un.kernels`, or its name.
        columns: context columns that k reads; default all of them.
        lam: λ; default one that moves θ by less than .05 standard errors: the criterion's (REML), or a smaller one.
            With "reml" the criterion's as it is, to compare; with smoothing="cv", which the paper suggests for noise
            contrast, cross-validation's.
        landmarks: how many contexts h is made of.
        seed: of the choice of landmarks.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
        >>> chain = un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=1))
        >>> chi = un.Kernel(un.kernels.Gaussian(scale=0.5))
        >>> fit = un.fit(toy, chain, objective=un.Logistic(un.Uniform(), per_point=10), normaliser=chi, rng=1)
        >>> ml = un.fit(toy, chain)
        >>> bool(abs(fit.theta["theta2"] - ml.theta["theta2"]) < ml.se[1])
        True
    """

    of_context = True

    def __init__(
        self,
        k: KernelFunction | str = "gaussian",
        columns: str | Sequence[str] | None = None,
        *,
        lam: float | Literal["reml"] | None = None,
        landmarks: int | None = None,
        seed: int = 0,
    ) -> None:
        names = None if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
        # without columns the term is complete only when it meets the observations; its other parts are checked here
        self._term = kernel(
            *(("x",) if names is None else names),
            k=k,
            lam=None if lam == "reml" else lam,
            landmarks=landmarks,
            seed=seed,
        )
        self._bound = names is not None
        self.weakly = lam is None

    @property
    def _text(self) -> str:
        text = str(self._term)
        return text if self._bound else text.replace("(x", "(…", 1)

    def __repr__(self) -> str:
        return f"Kernel({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and (self._text, self.weakly) == (other._text, other.weakly)

    def __hash__(self) -> int:
        return hash(self._text)

    def bound(self, obs: Observations) -> Kernel:
        """With the columns of these observations' context, where none were named."""
        if self._bound or not obs.has_context:
            return self
        t = self._term
        lam = t.lam if self.weakly or t.lam is not None else "reml"
        return Kernel(t.kernel, tuple(obs.context), lam=lam, landmarks=t.landmarks, seed=t.seed)

    def with_lam(self, lam: float | None) -> Kernel:
        """The same with another λ."""
        names = self._term.covariates if self._bound else None
        return Kernel(self._term.kernel, names, lam=lam, landmarks=self._term.landmarks, seed=self._term.seed)

    @property
    def term(self) -> KernelSmooth:
        """The term that the additive engine fits."""
        if not self._bound:
            raise CombinationError(
                f"{self!r} names no columns: un.fit fills in those of the context; elsewhere write "
                "un.Kernel(k, ('x1', 'x2'))."
            )
        return self._term

    @property
    def terms(self) -> Terms:
        return Terms((self.term,))

    def layout(self, obs: Observations) -> Layout:
        raise CombinationError(
            "Kernel() is estimated with reference points or quadrature rows: use it with un.Logistic, un.Importance or "
            "un.Poisson. In un.Exact, un.Ranking and un.ConditionalNCE the constants are integrated out or cancel."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"normaliser": "Kernel", "terms": self._text, "knots": {}}
