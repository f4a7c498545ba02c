"""`Gam`: the frozen result of `un.gam`. Estimates, tests, predictions, effects; the mathematics is in `inference`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from .._base import numerics
from .._base.blas import single_threaded
from .._base.frames import to_native
from ..errors import CombinationError, InputError, unknown
from . import gam_fitted, gam_matrices, gam_posterior, gam_predict, gam_summary, inference
from .response import Response
from .response import response as response_of
from .smoothed import Smoothed

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns
    from .checks import Check
    from .gam_summary import ModelComparison
    from .level_covariance import LevelUnconditional


# long: one object answers what summary, plot, predict, anova and gam.check do for mgcv's users
@final
@dataclass(frozen=True, eq=False)
class Gam:
    """A fitted additive model, η = β₀ + Σ_j f_j + offset.

    Each smooth f_j sums to zero over the fitted rows (unless it is a random effect, a factor-smooth or has a numeric
    `by=`), so that β₀ carries the level; intercept, effects and offset add up to `linear_predictor`.

    Example:
        >>> import numpy as np, unnorm as un
        >>> x = np.linspace(0.0, 1.0, 200)
        >>> fit = un.gam("y ~ s(x)", {"x": x, "y": np.sin(6 * x) + 0.1 * np.cos(99 * x)})
        >>> fit.n, fit.family, sorted(fit.edf)
        (200, 'gaussian', ['s(x)'])
    """

    formula: str  #: as it was read
    family: str  #: "gaussian", "binomial", "poisson", "nb" or "quasipoisson"
    method: str  #: of smoothing: REML, ML, GCV, UBRE or CV
    smoothed: Smoothed = field(repr=False)  #: what the engine found: coefficients, smoothing parameters, curvature
    terms: tuple[BuiltTerm, ...] = field(repr=False)  #: with their bases, as built on the data
    columns: Columns = field(repr=False)  #: the covariates at the fitted rows
    response: str  #: the response, as the formula writes it
    y: np.ndarray = field(repr=False)  #: (n,) the response at the fitted rows
    weights: np.ndarray | None = field(repr=False)  #: None: all one
    offset: np.ndarray | None = field(repr=False)  #: None: all zero
    offset_names: tuple[str, ...] | None = field(repr=False)  #: columns that `predict` reads again
    backend: Any = field(repr=False, default=None)  #: the user's kind of table, for those given back
    notes: tuple[str, ...] = ()  #: what was dropped, and what a careful reader would want to know
    link: str | None = None  #: None: the family's own
    theta: float | None = None  #: of family "nb": Var y = μ + μ²/θ
    theta_known: bool = False  #: whether the user gave θ
    whole: int | None = None  #: rows fitted, where `columns`, `y`, `weights` and `offset` are those of a sample of them

    # --- estimates ------------------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Rows fitted (with positive weight)."""
        return self.smoothed.rows

    @property
    def distribution(self) -> Response:
        """The family with its link."""
        return response_of(self.family, self.link, self.theta)

    @cached_property
    def smooths(self) -> tuple[BuiltTerm, ...]:
        """The smooth terms, in the formula's order."""
        return tuple(term for term in self.terms if not term.parametric)

    def term(self, label: str) -> BuiltTerm:
        """The term of that label; an unknown one is an error that lists them.

        Args:
            label: the term, e.g. "s(x)".
        """
        terms = {term.label: term for term in self.terms}
        one = gam_predict.meant(label, terms)
        if one is None:
            raise InputError(unknown("label", label, list(terms)))
        return terms[one]

    @cached_property
    def edf(self) -> dict[str, float]:
        """Effective degrees of freedom of each smooth term, tr F over its coefficients."""
        return {term.label: float(self.smoothed.edf[self.smoothed.slices[term.label]].sum()) for term in self.smooths}

    @property
    def edf_total(self) -> float:
        """tr F: all terms and the intercept."""
        return float(self.smoothed.edf.sum())

    @cached_property
    def sp(self) -> dict[str, float]:
        """Smoothing parameters by penalty label, those the user fixed included; above about 1e6 they mean infinity."""
        return dict(zip(self.smoothed.sp_labels, np.exp(self.smoothed.rho).tolist()))

    @property
    def score(self) -> float:
        """The smoothing criterion at its minimum: −log REML or ML, GCV, UBRE, or the mean held-out deviance for CV."""
        return self.smoothed.score

    @property
    def deviance(self) -> float:
        """Σ w d(y, μ̂)."""
        return self.smoothed.deviance

    @property
    def null_deviance(self) -> float:
        """Deviance of the intercept (and offset) alone."""
        return self.smoothed.null_deviance

    @property
    def deviance_explained(self) -> float:
        """1 − D/D₀; 0 where the intercept alone leaves nothing to explain."""
        return 1.0 - self.deviance / self.null_deviance if self.null_deviance > 0.0 else 0.0

    @property
    def scale(self) -> float:
        """φ: 1 where known, else deviance / (n − edf)."""
        return self.smoothed.scale

    @property
    def residual_df(self) -> float:
        """n less the effective degrees of freedom."""
        return self.n - self.edf_total

    @property
    def converged(self) -> bool:
        """Whether the smoothing parameters and coefficients settled."""
        return self.smoothed.converged

    @cached_property
    def loglik(self) -> float:
        """Log-likelihood at β̂ with its constants (Gaussian: at the variance D/n); nan for a quasi-likelihood."""
        return gam_fitted.loglik(self)

    @cached_property
    def aic(self) -> float:
        """−2 loglik + 2 (edf₂ + 1 if the scale is estimated): conditional AIC corrected for the smoothing parameters'
        own uncertainty (Wood, Pya & Säfken 2016), as mgcv's `AIC`; with GCV, UBRE or CV the edf stands for edf₂. A
        quasi-likelihood has none: nan.
        """
        return -2.0 * self.loglik + 2.0 * self._aic_df

    @property
    def bic(self) -> float:
        """−2 loglik + log n × the degrees of freedom of `aic`."""
        return -2.0 * self.loglik + float(np.log(self.n)) * self._aic_df

    @property
    def edf2_total(self) -> float:
        """Effective degrees of freedom that count the smoothing parameters' uncertainty, as AIC does."""
        return self.edf_total if self._unconditional is None else float(self._unconditional.edf2.sum())

    @property
    def _aic_df(self) -> float:
        own = 0.0 if self.theta_known else float(self.distribution.parameters)
        own += 0.0 if self.smoothed.scale_known else 1.0
        return min(self.edf2_total, float(self.smoothed.size)) + own

    @cached_property
    def coefficients(self) -> dict[str, float]:
        """Coefficients by name: the intercept, `x`, `gb` (level b of factor g), `s(x).1`, …"""
        return dict(zip(self._names, self.smoothed.beta.tolist()))

    @cached_property
    def _names(self) -> list[str]:
        return gam_matrices.names(self)

    @property
    def covariance(self) -> np.ndarray:
        """Bayesian covariance V_β = φ (XᵀWX + S_λ)⁻¹ of the coefficients; see `vcov` for the other kinds."""
        return self.vcov()

    def vcov(self, kind: Literal["bayesian", "frequentist"] = "bayesian", unconditional: bool = False) -> np.ndarray:
        """Covariance (p, p) of the coefficients, in the order of `coefficients`.

        kind="frequentist" is V_e = φ H⁻¹ XᵀWX H⁻¹, the sampling covariance of β̂. unconditional=True adds what not
        knowing the smoothing parameters adds, V_c = V_β + J V_ρ Jᵀ + V″ (Wood, Pya & Säfken 2016; REML and ML only).

        Args:
            kind: "bayesian", V_β, or "frequentist".
            unconditional: whether to include the smoothing parameters' uncertainty.
        """
        if kind not in ("bayesian", "frequentist"):
            raise InputError(unknown("kind", kind, ("bayesian", "frequentist")))
        if not numerics.flag(unconditional, "unconditional"):
            return self._Vp if kind == "bayesian" else numerics.read_only(self.smoothed.Ve)
        if kind == "frequentist":
            raise CombinationError("unconditional=True is a correction of the Bayesian covariance: leave kind out.")
        return numerics.read_only(self.required_unconditional().covariance)

    @cached_property
    def _Vp(self) -> np.ndarray:
        return numerics.read_only(self.smoothed.Vp)

    # --- rows -----------------------------------------------------------------------------------------------------

    @cached_property
    def linear_predictor(self) -> np.ndarray:
        """η̂ at the fitted rows, offset included."""
        return numerics.read_only(self.smoothed.linear_predictor())

    @property
    def fitted(self) -> np.ndarray:
        """μ̂ at the fitted rows."""
        return self.distribution.mean(self.linear_predictor)

    # a method that stands beside its computation is written there, arguments and all
    residuals = gam_fitted.residuals
    predict = gam_predict.predict
    draws = gam_posterior.draws

    @cached_property
    def covariates(self) -> tuple[str, ...]:
        """Every column that some term reads."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.covariates))

    # --- terms ----------------------------------------------------------------------------------------------------

    def effect(
        self,
        label: str,
        at: Any = None,
        level: float = 0.95,
        unconditional: bool = False,
        simultaneous: bool = False,
        rng: Any = 0,
    ) -> Any:
        """One term as a table of the data's kind: its covariates, estimate, se, lower, upper, on the scale of η.

        Args:
            label: the term, e.g. "s(x)" or "s(x):groupa".
            at: points as a table with the term's covariates (an array where it has one). By default 100 points over
                the data's range, a 40 × 40 grid for two covariates, every level of a factor. A numeric `by` is 1 there.
            level: of the bands. Pointwise bands cover on average over the data (Marra & Wood 2012).
            unconditional: include the smoothing parameters' uncertainty.
            simultaneous: bands that hold for all points of `at` at once, by simulation from the posterior with `rng`.
            rng: seed or generator.

        >>> import numpy as np, unnorm as un
        >>> x = np.linspace(0.0, 1.0, 200)
        >>> fit = un.gam("y ~ s(x)", {"x": x, "y": np.sin(6 * x)}, family="gaussian")
        >>> sorted(fit.effect("s(x)"))
        ['estimate', 'lower', 'se', 'upper', 'x']
        """
        return to_native(self.effect_columns(label, at, level, unconditional, simultaneous, rng), self.backend)

    effect_columns = gam_posterior.effect_columns

    def derivative(
        self, label: str, at: Any = None, of: str | None = None, order: int = 1, level: float = 0.95,
        simultaneous: bool = False, unconditional: bool = False, rng: Any = 0,
    ) -> Any:  # fmt: skip
        """The derivative of a smooth in one of its covariates, a table as `effect` gives: estimate, se, lower, upper.

        Args:
            label: the term.
            at: points as a table with the term's covariates (an array where it has one); by default a grid over the
                data's range.
            of: the covariate, where there are several.
            order: 1 or 2.
            level: of the bands.
            simultaneous: whether bands hold for all points of `at` at once, by simulation from the posterior with
                `rng`.
            unconditional: whether to include the smoothing parameters' uncertainty.
            rng: seed or generator.

        >>> import numpy as np, unnorm as un
        >>> x = np.linspace(0.0, 1.0, 200)
        >>> fit = un.gam("y ~ s(x)", {"x": x, "y": x**2 + 0.01 * np.sin(99 * x)})
        >>> bool(abs(fit.derivative("s(x)", at=[0.5])["estimate"][0] - 1.0) < 0.05)
        True
        """
        made = gam_posterior.derivative(self, label, at, of, order, level, simultaneous, unconditional, rng)
        return to_native(made, self.backend)

    def difference(
        self, first: str, second: str, at: Any = None, level: float = 0.95, simultaneous: bool = False,
        unconditional: bool = False, rng: Any = 0,
    ) -> Any:  # fmt: skip
        """One smooth minus another of the same covariates, with pointwise or simultaneous bands: difference("s(x):ga",
        "s(x):gb") for two levels. Parametric levels are not part of it.

        Args:
            first: a smooth term.
            second: the one that is taken from it.
            at: points as a table with the term's covariates (an array where it has one); by default a grid over the
                data's range.
            level: of the bands.
            simultaneous: whether bands hold for all points of `at` at once, by simulation from the posterior with
                `rng`.
            unconditional: whether to include the smoothing parameters' uncertainty.
            rng: seed or generator.
        """
        made = gam_posterior.difference(self, first, second, at, level, simultaneous, unconditional, rng)
        return to_native(made, self.backend)

    term_values = gam_fitted.term_values

    # --- tests and comparisons ------------------------------------------------------------------------------------

    @cached_property
    def tests(self) -> dict[str, inference.Test]:
        """Each term against zero: Wood (2013a) for smooths, Wood (2013b) for terms without an unpenalised part (random
        effects, cyclic smooths), Wald for parametric terms. The smoothing parameters are taken as known.
        """
        return gam_summary.tests(self)

    @property
    def p_values(self) -> dict[str, float]:
        """p-value of each term, by label; see `tests` for what is tested and `summary()` for single coefficients."""
        return {label: test.p for label, test in self.tests.items()}

    @property
    def smoothing(self) -> Any:
        """Smoothing parameters with their uncertainty, a table: penalty, sp, log_sp, se (of log sp, from the inverse of
        the criterion's Hessian: REML and ML), lower and upper (95 %), state: "estimated", "fixed",
        "infinite" or "zero".
        """
        return to_native(gam_summary.smoothing(self), self.backend)

    def summary_table(self) -> Any:
        """The smooth terms' part of `summary()` as a table: term, edf, ref_df, statistic (χ², or F), p."""
        return to_native(gam_summary.smooth(self), self.backend)

    def parametric_table(self) -> Any:
        """The coefficients' part of `summary()` as a table: name, estimate, se, statistic (z, or t), p."""
        return to_native(gam_summary.parametric(self), self.backend)

    def summary(self) -> str:
        """The fit in words and numbers, as mgcv's `summary.gam` lays it out."""
        return gam_summary.summary(self)

    def __str__(self) -> str:
        return self.summary()

    def compare(self, other: Gam) -> ModelComparison:
        """This model against another fitted to the same rows: generalised likelihood ratio (nested models) and AIC.

        The test is mgcv's `anova(test="Chisq" or "F")`: the deviance difference against χ² (or F) on the difference of
        n − Σedf₁ − (Σedf₂ − Σedf). It is approximate, good for unpenalised or clearly needed terms; where the models
        differ in a random effect, or a term that could vanish, do not trust it: use the larger one's `p_values`.

        Args:
            other: a fit to the same rows.
        """
        return gam_summary.compare(self, other)

    def check(self, rng: Any = 1) -> Check:
        """Is each k large enough, and are terms concurved? Tables, and sentences that say what to do; see `Check`.

        Args:
            rng: of the permutations, and of the rows that are looked at where there are very many.
        """
        return gam_summary.check(self, rng)

    def concurvity(self, pairwise: bool = False) -> Any:
        """How far each term could be made of the others, 0 to 1, a table: term, worst, observed, estimate (mgcv's
        `concurvity`). pairwise=True: of each other term by itself, with a column `with`.

        Args:
            pairwise: whether to compare each term with each other one by itself.
        """
        return to_native(gam_summary.concurvity(self, pairwise), self.backend)

    def appraise(self, repeats: int = 200, level: float = 0.95, rng: Any = 1) -> Any:
        """Four pictures of the deviance residuals, `(Figure, axes)`: QQ plot with a band of `repeats` data sets
        simulated from the fit, against the linear predictor, histogram, and response against fitted values.

        Args:
            repeats: data sets simulated from the fit.
            level: of the band.
            rng: seed or generator.
        """
        from .gam_appraisal import appraise

        return appraise(self, repeats, level, rng)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fit with its rows as the folder `path`; `un.load(path)` reads it back. No pickles.

        Args:
            path: of the folder.
        """
        from .gam_saving import save

        save(self, path)

    def plot(
        self,
        terms: str | Sequence[str] | None = None,
        ax: Any = None,
        level: float = 0.95,
        unconditional: bool = False,
        simultaneous: bool = False,
        rug: bool = True,
    ) -> Any:
        """Every smooth term with its band: curves, contour maps, QQ plots of random effects.

        One term (or `ax`) gives the `Axes`, more give `(Figure, axes)`.

        Args:
            terms: labels; default every smooth.
            ax: where to draw one term.
            level: of the bands.
            unconditional: whether to include the smoothing parameters' uncertainty.
            simultaneous: whether bands hold for all points at once.
            rug: whether to mark the data along the axes.
        """
        from .gam_plots import plot

        return plot(self, terms, ax, level, unconditional, simultaneous, rug)

    # --- matrices that inference needs ----------------------------------------------------------------------------

    def index(self, label: str) -> np.ndarray:
        """The positions of a term's coefficients.

        Args:
            label: the term.
        """
        one = gam_predict.meant(label, self.smoothed.slices)
        if one is None:
            raise InputError(unknown("label", label, list(self.smoothed.slices)))
        return np.arange(self.smoothed.size)[self.smoothed.slices[one]]

    gram = gam_fitted.gram
    design_chunks = gam_fitted.design_chunks

    @cached_property
    def blocks(self) -> list[inference.Block]:
        """Every penalty with its first coefficient, in the order of ρ."""
        return gam_matrices.blocks([(int(self.index(term.label)[0]), term) for term in self.terms])

    @cached_property
    def S(self) -> np.ndarray:
        """S_λ, dense."""
        return gam_matrices.penalty(self)

    @cached_property
    def H_inv(self) -> np.ndarray:
        return self._Vp / self.scale

    @cached_property
    def A(self) -> np.ndarray:
        """XᵀWX."""
        return self.smoothed.XtWX

    @cached_property
    def criterion_hessian(self) -> np.ndarray:
        """∂²(−log REML or ML)/∂ρ∂ρᵀ, (M, M); see `gam_matrices.criterion_hessian`."""
        return gam_matrices.criterion_hessian(self)

    @cached_property
    def _unconditional(self) -> inference.Unconditional | LevelUnconditional | None:
        with single_threaded():
            return gam_matrices.unconditional(self)

    def required_unconditional(self) -> inference.Unconditional | LevelUnconditional:
        """The corrected covariance, or an error that says why this fit has none."""
        if self._unconditional is None:
            raise CombinationError(
                f"unconditional=True needs smoothing parameters estimated by REML or ML; this fit used {self.method}. "
                "Refit with method='REML'."
            )
        return self._unconditional


for _part in (gam_fitted, gam_posterior, gam_predict):  # whose methods know their class, and are called by its name
    vars(_part)["Gam"] = Gam
    for _name, _method in vars(Gam).items():
        if getattr(_method, "__module__", None) == _part.__name__:
            _method.__qualname__ = f"Gam.{_name}"
