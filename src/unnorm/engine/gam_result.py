"""`Gam`: the frozen result of `un.gam`. Estimates, tests, predictions, effects; the mathematics is in `inference`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from .._base import numerics
from .._base.blas import single_threaded
from .._base.frames import to_native
from ..errors import CombinationError, InputError, unknown
from . import gam_effects, gam_levels, gam_matrices, gam_posterior, gam_predict, gam_summary, inference
from .gam_predict import Kind, Prediction, PredictOptions, Scale
from .response import Response
from .response import response as response_of
from .smoothed import INTERCEPT, Smoothed

if TYPE_CHECKING:
    from ..terms.base import BuiltTerm, Columns
    from .checks import Check
    from .gam_summary import ModelComparison
    from .level_covariance import LevelUnconditional


# long: one object answers what summary, plot, predict, anova and gam.check do for mgcv's users
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
        if not self.distribution.likelihood:
            return float("nan")
        if self.whole is not None:
            return self.smoothed.loglik
        if not self.smoothed.scale_known:
            w = np.ones(1) if self.weights is None else self.weights[self.weights > 0.0]
            n, D = self.n, self.deviance
            return -0.5 * (n * (np.log(2.0 * np.pi * D / n) + 1.0) - float(np.sum(np.log(w))))
        total = 0.0
        for rows in gam_predict.chunks(self.y.size):
            mu = self.distribution.mean(self.linear_predictor[rows])
            w = np.ones(mu.size) if self.weights is None else self.weights[rows]
            total += self.distribution.loglik(self.y[rows], mu, w)
        return total

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
        names = [INTERCEPT] if INTERCEPT in self.smoothed.slices else []
        for term in self.terms:
            if term.parametric:
                names += term.coefficient_names
            else:
                names += [f"{term.label}.{i + 1}" for i in range(term.size)]
        return gam_matrices.distinct(names)

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
        if not unconditional:
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

    def residuals(self, kind: Literal["deviance", "pearson", "response", "working"] = "deviance") -> np.ndarray:
        """Residuals at the fitted rows: sign(y − μ)√(w d), (y − μ)√(w/v), y − μ, or (y − μ) dη/dμ.

        Args:
            kind: "deviance", "pearson", "response" or "working".
        """
        if kind not in ("deviance", "pearson", "response", "working"):
            raise InputError(unknown("kind", kind, ("deviance", "pearson", "response", "working")))
        mu = self.fitted
        raw = self.y - mu
        if kind == "response":
            return raw
        if kind == "working":
            return raw / self.distribution.slope(self.linear_predictor)
        w = 1.0 if self.weights is None else self.weights
        if kind == "pearson":
            return raw * np.sqrt(w / self.distribution.variance(mu))
        return np.sign(raw) * np.sqrt(np.maximum(w * self.distribution.unit_deviance(self.y, mu), 0.0))

    @overload
    def predict(
        self, data: Any = ..., se: Literal[True] = ..., kind: Scale = ..., **options: Unpack[PredictOptions]
    ) -> Prediction[np.ndarray]: ...
    @overload
    def predict(
        self, data: Any = ..., *, se: Literal[False], kind: Scale = ..., **options: Unpack[PredictOptions]
    ) -> np.ndarray: ...
    @overload
    def predict(
        self, data: Any = ..., se: bool = ..., *, kind: Literal["matrix"], **options: Unpack[PredictOptions]
    ) -> np.ndarray: ...
    @overload
    def predict(  # tables of the data's kind, by term; or options by position
        self,
        data: Any = ...,
        se: bool = ...,
        kind: Kind = ...,
        unconditional: bool = ...,
        offset: Any = ...,
        terms: str | Sequence[str] | None = ...,
        exclude: str | Sequence[str] | None = ...,
    ) -> Any: ...
    def predict(
        self,
        data: Any = None,
        se: bool = True,
        kind: Kind = "link",
        unconditional: bool = False,
        offset: Any = None,
        terms: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
    ) -> Any:
        """Predictions at new rows, or at the fitted ones.

        Args:
            data: a table with the formula's covariates; None for the fitted rows.
            se: True gives `Prediction(estimate, se)`, False the estimates alone.
            kind: the scale of η ("link"), of μ ("response", se by the delta method), each term by itself ("terms",
                tables of the data's kind, one column a term; row sums plus the intercept and the offset are η), or the
                matrix X (rows, p) with Xβ̂ + offset = η, columns in the order of `coefficients` ("matrix", no se).
            unconditional: include the smoothing parameters' uncertainty in se.
            offset: the known part of η: a number, an array or (of new rows) a column's name. By default the column that
                the fit's offset came from.
            terms, exclude: labels of terms to count alone, or to leave out (they are zero then, and their covariates
                need not be in `data`); "(Intercept)" is one of them.

        >>> import numpy as np, unnorm as un
        >>> x = np.linspace(0.0, 1.0, 200)
        >>> fit = un.gam("y ~ s(x)", {"x": x, "y": np.sin(6 * x)}, family="gaussian")
        >>> at_half = fit.predict({"x": [0.5]})
        >>> bool(abs(at_half.estimate[0] - np.sin(3.0)) < 0.01)
        True
        """
        return gam_predict.predict(self, data, se, kind, unconditional, offset, terms, exclude)

    # long: those of `predict`, and how to draw
    def draws(
        self,
        n: int = 1000,
        data: Any = None,
        kind: Literal["coefficients", "link", "response"] = "coefficients",
        offset: Any = None,
        unconditional: bool = True,
        rng: Any = 0,
        method: Literal["gaussian", "metropolis"] = "gaussian",
        terms: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
    ) -> np.ndarray:
        """Draws from the posterior: (n, p) of the coefficients, or (n, rows) of η or μ at rows.

        method="gaussian" draws from N(β̂, V), with the smoothing parameters' uncertainty if `unconditional`;
        "metropolis" from the posterior itself at the estimated smoothing parameters (mgcv's `gam.mh`): for few rows.

        Args:
            n: how many.
            data: a table with the formula's covariates; None for the fitted rows. With kind="link" or "response".
            kind: "coefficients", "link" (η) or "response" (μ).
            offset: the known part of η at new rows, as in `predict`.
            unconditional: whether to include the smoothing parameters' uncertainty.
            rng: seed or generator.
            method: "gaussian" or "metropolis".
            terms, exclude: terms to count alone, or to leave out, as in `predict`: terms="s(x)", offset=0.0 draws a
                smooth.

        >>> import numpy as np, unnorm as un
        >>> x = np.linspace(0.0, 1.0, 200)
        >>> fit = un.gam("y ~ s(x)", {"x": x, "y": np.sin(6 * x) + 0.1 * np.cos(99 * x)})
        >>> fit.draws(500, {"x": [0.2, 0.8]}, kind="response", rng=1).shape
        (500, 2)
        """
        unconditional = unconditional and self.method in ("REML", "ML")
        return gam_posterior.draws(self, n, data, kind, offset, unconditional, rng, method, terms, exclude)

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

    def effect_columns(
        self, label: str, at: Any = None, level: float = 0.95, unconditional: bool = False,
        simultaneous: bool = False, rng: Any = 0,
    ) -> dict[str, np.ndarray]:  # fmt: skip
        """`effect` as plain arrays.

        Args:
            label: the term.
            at: points as a table with the term's covariates (an array where it has one); by default a grid over the
                data's range.
            level: of the bands.
            unconditional: whether to include the smoothing parameters' uncertainty.
            simultaneous: whether bands hold for all points of `at` at once, by simulation from the posterior with
                `rng`.
            rng: seed or generator.
        """
        term = self.term(label)
        points = gam_effects.grid(term, self.columns) if at is None else gam_effects.read_at(term, at)
        span = self.smoothed.slices[term.label]
        gam_effects.check_level(level)
        if self.smoothed.wide:
            rows = gam_levels.term_rows(self, term, gam_effects.completed(term, points))
            band = gam_levels.banded(self, rows, unconditional, level, simultaneous, rng)
            return {**points, **gam_effects.raised(band, gam_effects.known(term, points))}
        if unconditional:
            V = self.required_unconditional().covariance[span, span]
        else:
            V = self.smoothed.covariance_block(term.label)
        return gam_effects.effect(term, points, self.smoothed.beta[span], V, level, simultaneous, rng)

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

    def term_values(self, label: str) -> np.ndarray:
        """One term's contribution to η at the fitted rows.

        Args:
            label: the term.
        """
        term = self.term(label)
        beta = self.smoothed.beta[self.smoothed.slices[term.label]]
        out = np.empty(self.y.size)
        for here in gam_predict.chunks(out.size):
            columns = {name: self.columns[name][here] for name in term.covariates}
            if self.smoothed.wide:
                flat = self.smoothed.design.to_flat(self.smoothed.beta)
                out[here] = gam_levels.term_rows(self, term, columns).dot(flat)
            else:
                out[here] = term.design(columns) @ beta
        known = gam_effects.known(term, {name: self.columns[name] for name in term.covariates})
        return out if known is None else out + known

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

    def gram(self, most: int | None = None) -> np.ndarray:
        """XᵀX over the fitted rows (over `most` evenly spread ones), in chunks.

        Args:
            most: rows at most; None for all.
        """
        G = np.zeros((self.smoothed.size, self.smoothed.size))
        for _, X in self.design_chunks(1 if most is None else -(-self.y.size // most)):
            G += X.T @ X
        return G

    def design_chunks(self, step: int = 1) -> Iterator[tuple[slice, np.ndarray]]:
        """The dense design at every `step`-th fitted row, some rows at a time.

        Args:
            step: 1 for every row, 2 for every second one, …
        """
        rows = step * max(1, min(gam_predict.CHUNK, gam_predict.HELD // max(self.smoothed.size, 1)))
        for first in range(0, self.y.size, rows):
            here = slice(first, min(self.y.size, first + rows), step)
            yield (
                here,
                gam_predict.design(self, {k: column[here] for k, column in self.columns.items()}, self.y[here].size),
            )

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
