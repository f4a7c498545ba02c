"""`PatternFit`: what can be asked of a fitted point pattern; everything speaks of the intensity."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.frames import to_native
from .._base.intervals import quantile
from .._base.numerics import Rng, flag
from ..errors import CombinationError, InputError, unknown
from ..inference import tests
from ..inference.sandwich import ErrorParts
from ..inference.tests import NestedTest
from ..results.smooths import robust_covariance
from .places import Places
from .point_pattern import Pattern
from .scores import FittedRows
from .where import places_at

if TYPE_CHECKING:
    from ..data.covariates import Covariate
    from .diagnostics import Lurking, ResidualMap
    from .functions import Envelope
    from .gibbs import Process

NO_LIKELIHOOD = (
    "{what} needs the likelihood, and this fit is a logistic regression against dummy points{gibbs}. Compare nested "
    "models by fit.wald(…), whose errors count the dummy points{also}; check the fit by fit.envelope(…)."
)


# long: all that can be asked of a fitted pattern, most of it in one line
@final
@dataclass(frozen=True, eq=False)
class PatternFit:
    """Coefficients of the log (conditional) intensity with their errors.

    `tidy()` is a table and `summary()` a text; `intensity(at)` the intensity with its error; `process()` the fitted
    process, which simulates; `residuals`, `lurking`, `quadrat_test`, `envelope` and `plot` check the fit.

    Example:
        >>> import numpy as np, unnorm as un
        >>> xy = np.random.default_rng(1).random((200, 2))
        >>> fit = un.fit_pattern(un.pattern(xy, window=un.Box((0, 1), (0, 1))), rng=2)
        >>> fit.pattern.n, fit.estimate.shape
        (200, (1,))
    """

    fitted: FittedRows  #: the rows, data and dummy points, with the coefficients
    errors: ErrorParts  #: covariances of the coefficients, sampling and dummy points apart
    notes: tuple[str, ...] = ()  #: sentences for a careful reader

    @property
    def pattern(self) -> Pattern:
        """The data."""
        return self.fitted.pattern

    @property
    def names(self) -> tuple[str, ...]:
        """Of all coefficients, as ppm prints them."""
        return tuple(self.fitted.gam.coefficients)

    @property
    def estimate(self) -> np.ndarray:
        """The coefficients."""
        return np.array(self.fitted.gam.smoothed.beta)

    @property
    def theta(self) -> dict[str, float]:
        """Coefficients by name."""
        return dict(zip(self.names, self.estimate.tolist()))

    @property
    def covariance(self) -> np.ndarray:
        """Of all coefficients, dummy points' share included; assumes that the model is correct."""
        return self.errors.total

    @property
    def covariance_robust(self) -> np.ndarray:
        """From sums of the score over cells of the window (or replicates): right also where points attract or repel
        each other in ways that the model leaves out, over distances up to a tenth of the window's side. Its intervals
        are Student's, with `errors.robust.df` degrees of freedom."""
        return robust_covariance(self.errors)[0]

    def _covariance(self, robust: bool) -> tuple[np.ndarray, float | None]:
        """The covariance and the degrees of freedom of its intervals."""
        return robust_covariance(self.errors) if flag(robust, "robust") else (self.covariance, None)

    @property
    def se(self) -> np.ndarray:
        """Their standard errors."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def edf(self) -> dict[str, float]:
        """Effective degrees of freedom of each smooth term."""
        return dict(self.fitted.gam.edf)

    @property
    def poisson(self) -> bool:
        """Whether points do not interact in this model."""
        return self.fitted.model.interaction is None

    @property
    def aic(self) -> float:
        """Refused: see the message."""
        raise InputError(self._no_likelihood("AIC"))

    @property
    def bic(self) -> float:
        """Refused: see the message."""
        raise InputError(self._no_likelihood("BIC"))

    @property
    def loglik(self) -> float:
        """Refused: see the message."""
        raise InputError(self._no_likelihood("A log-likelihood"))

    @property
    def bits(self) -> float:
        """Refused: see the message."""
        raise InputError(self._no_likelihood("A count of bits"))

    def held_out(self, *_: Any) -> None:
        """Refused: see the message."""
        raise InputError(self._no_likelihood("A held-out likelihood"))

    def _no_likelihood(self, what: str) -> str:
        gibbs = "" if self.poisson else " of a Gibbs process, whose likelihood has an unknown constant for every θ"
        also = " and the dependence of near points" if not self.poisson else ""
        return NO_LIKELIHOOD.format(what=what, gibbs=gibbs, also=also)

    @cached_property
    def parametric(self) -> np.ndarray:
        """Positions of the coefficients that mean something one by one."""
        smooth = [self.fitted.gam.index(term.label) for term in self.fitted.gam.smooths]
        return np.setdiff1d(np.arange(len(self.names)), np.concatenate(smooth) if smooth else [])

    def tidy(self, level: float = 0.95, robust: bool = False) -> Any:
        """A table of the parametric coefficients: term, estimate, se, se_sampling, se_reference, lower, upper.

        Args:
            level: of the intervals.
            robust: whether errors come from sums over cells of the window, see `covariance_robust`.
        """
        at = self.parametric
        V, df = self._covariance(robust)
        se, z = np.sqrt(np.diag(V))[at], quantile(level, df)
        parts = {}
        if not robust:
            both = (("se_sampling", self.errors.sampling), ("se_reference", self.errors.reference))
            parts = {name: np.sqrt(np.maximum(np.diag(one), 0.0))[at] for name, one in both}
        table = {
            "term": np.array(self.names)[at],
            "estimate": self.estimate[at],
            "se": se,
            **parts,
            "lower": self.estimate[at] - z * se,
            "upper": self.estimate[at] + z * se,
        }
        return to_native(table, self.pattern.backend)

    def summary(self) -> str:
        """The fit as a text for people."""
        from .summary import summary

        return summary(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        what = "Poisson" if self.poisson else repr(self.fitted.model.interaction)
        return f"PatternFit({self.fitted.model.terms}; {what}; {self.pattern.n:,} points; see .summary())"

    def wald(self, which: str | Sequence[str], robust: bool = False) -> NestedTest:
        """Wald test that some coefficients are zero.

        Args:
            which: names of coefficients.
            robust: whether errors come from sums over cells of the window, see `covariance_robust`.
        """
        names = [which] if isinstance(which, str) else list(which)
        for name in names:
            if name not in self.names:
                raise InputError(unknown("which", name, self.names))
        index = np.array([self.names.index(name) for name in names])
        V, df = self._covariance(robust)
        return tests.wald(self.estimate[index], V[np.ix_(index, index)], df)

    # --- intensities ------------------------------------------------------------------------------------------------

    def intensity(self, at: Any = 64, level: float = 0.95, robust: bool = False) -> Any:
        """λ(u) of a Poisson model, with its error, as a table: coordinates (mark, replicate), intensity, se, lower,
        upper.

        Args:
            at: places, as a table with the pattern's columns or an (N, 2) array; or so many cells across the window.
            level: of the intervals, which are exp of those of log λ.
            robust: errors from sums over cells of the window, see `covariance_robust`.
        """
        if not self.poisson:
            raise CombinationError(
                "A Gibbs model states the conditional intensity λ(u | x), fit.conditional_intensity(at), and its "
                "trend, fit.trend(at); its intensity has no formula: average patterns of fit.simulate(99)."
            )
        return self._table(at, level, robust, "intensity")

    def conditional_intensity(self, at: Any = 64, level: float = 0.95, robust: bool = False) -> Any:
        """λ(u | x) given the observed pattern, at places that are not its points.

        Args:
            at: places as a table or (m, 2) numbers; a whole number for a grid with as many cells across the window.
            level: of the intervals.
            robust: whether errors come from sums over cells of the window, see `covariance_robust`.
        """
        return self._table(at, level, robust, "conditional_intensity")

    def trend(self, at: Any = 64, level: float = 0.95, robust: bool = False) -> Any:
        """The part of λ(u | x) that does not see the other points: its value where none is near.

        Args:
            at: places as a table or (m, 2) numbers; a whole number for a grid with as many cells across the window.
            level: of the intervals.
            robust: whether errors come from sums over cells of the window, see `covariance_robust`.
        """
        return self._table(at, level, robust, "trend", alone=True)

    def _table(self, at: Any, level: float, robust: bool, name: str, alone: bool = False) -> Any:
        pattern, fitted = self.pattern, self.fitted
        places = places_at(pattern, at)
        given = fitted.model.alone(pattern, places) if alone else fitted.model.at(pattern, places)
        X = fitted.matrix(given)
        log_lambda = fitted.log_intensity(given, X)
        V, df = self._covariance(robust)
        se, z = np.sqrt(np.einsum("ij,jk,ik->i", X, V, X, optimize=True)), quantile(level, df)
        lam = np.exp(log_lambda)
        obs = pattern.rows(places)
        table = {
            **{axis: places.xy[:, j] for j, axis in enumerate(pattern.names)},
            **obs.context,
            name: lam,
            "se": lam * se,
            "lower": lam * np.exp(-z * se),
            "upper": lam * np.exp(z * se),
        }
        return to_native(table, pattern.backend)

    def effect(self, label: str, n: int = 200, level: float = 0.95, robust: bool = False) -> Any:
        """One term as a table: its covariate, estimate (on the log scale, summing to zero), se, lower, upper.

        Args:
            label: the term.
            n: points of the grid.
            level: of the intervals.
            robust: whether errors come from sums over cells of the window, see `covariance_robust`.
        """
        gam = self.fitted.gam
        if label not in [term.label for term in gam.terms]:
            raise InputError(unknown("label", label, [term.label for term in gam.terms]))
        term = gam.term(label)
        if len(term.covariates) != 1:
            raise InputError(f"{label} is a function of several covariates: draw it with fit.intensity(at).")
        name = term.covariates[0]
        column = gam.columns[name]
        labels = column.dtype.kind not in "fiu" or term.factor_levels is not None
        values = np.unique(column) if labels else np.linspace(column.min(), column.max(), n)
        X, where = term.design({name: values}), gam.index(label)
        V, df = self._covariance(robust)
        V = V[np.ix_(where, where)]
        estimate = X @ self.estimate[where]
        se, z = np.sqrt(np.einsum("ij,jk,ik->i", X, V, X)), quantile(level, df)
        table = {name: values, "estimate": estimate, "se": se, "lower": estimate - z * se, "upper": estimate + z * se}
        return to_native(table, self.pattern.backend)

    # --- the process ------------------------------------------------------------------------------------------------

    def process(self) -> Process:
        """The fitted process, which can be simulated."""
        from .gibbs import Process

        fitted, model = self.fitted, self.fitted.model

        def trend(places: Places) -> np.ndarray:
            return fitted.log_intensity(model.alone(fitted.pattern, places))

        phi = tuple(self.theta[name] for name in model.statistics)
        return Process(self.pattern, trend, model.interaction, phi, model.correction == "periodic", str(model.terms))

    # --- checks -----------------------------------------------------------------------------------------------------

    def envelope(
        self, function: str = "L", n: int = 99, *, r: Any = None, level: float = 0.95, rng: Rng = None, **options: Any
    ) -> Envelope:
        """A summary function of the data beside that of n patterns of this model; see `un.patterns.envelope`.

        For a Poisson model whose intensity varies, the functions of data and simulations are those that know λ̂.

        Args:
            function: "K", "L", "g" (pair correlation), "F", "G" or "J".
            n: simulations.
            r: distances.
            level: of both bands.
            rng: seed or generator.
            options: of the function, such as correction="border".
        """
        from .checking import model_envelope

        return model_envelope(self, function, n, r, level, rng, options)

    def residuals(self, across: int = 64, bandwidth: float | None = None) -> ResidualMap:
        """Smoothed residuals as a map, `across` cells wide: positive where there are more points than expected.

        Args:
            across: cells along the window's width.
            bandwidth: of the smoothing; default an eighth of the window's shorter side.
        """
        from .diagnostics import residual_map

        return residual_map(self, across, bandwidth)

    def lurking(self, covariate: Any, points: int = 200) -> Lurking:
        """Cumulative residuals along a covariate: a name that the model knows, or a `un.Map`.

        Args:
            covariate: the name, or the map.
            points: of the curve.
        """
        from .diagnostics import lurking

        return lurking(self, covariate, points)

    def quadrat_test(self, nx: int = 5, ny: int | None = None) -> NestedTest:
        """Pearson's χ² of counts in nx × ny quadrats, for Poisson models.

        Args:
            nx: quadrats across.
            ny: quadrats upwards; default as many.
        """
        from .diagnostics import quadrat_test

        return quadrat_test(self, nx, ny)

    def plot(self, n: int = 39, rng: Rng = 1) -> Any:
        """Intensity with the points, residuals, and L with its envelope of n simulations: (Figure, axes).

        Args:
            n: simulations of the envelope.
            rng: seed or generator.
        """
        from .plots import overview

        return overview(self, n, rng)

    # --- on disk ----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder that `un.load` reads: JSON and npz, no code; an earlier fit there is replaced.

        Args:
            path: of the folder.
        """
        from .saving import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str], covariates: Sequence[Covariate] = ()) -> PatternFit:
        """Read a saved fit; `covariates`: the model's `un.Function` covariates, which are not saved.

        Args:
            path: of the folder.
            covariates: the model's functions.
        """
        from .saving import load

        return load(path, covariates)

    # --- simulation -------------------------------------------------------------------------------------------------

    def simulate(self, n: int = 1, rng: Rng = None) -> list[Pattern]:
        """n patterns of the fitted process, their numbers of points random.

        Args:
            n: how many patterns.
            rng: seed or generator.
        """
        return self.process().simulate(n, rng)
