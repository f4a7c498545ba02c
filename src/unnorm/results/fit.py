"""`Fit`: the frozen result of an estimation, and what can be asked of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base.counts import number
from .._base.intervals import quantile
from .._base.numerics import Rng, flag
from ..data.observations import Kind, Observations
from ..data.placing import placed, within
from ..errors import InputError
from ..inference import tests
from ..inference.evidence import Evidence
from ..inference.sandwich import ErrorParts
from ..inference.tests import NestedTest
from ..models.base import Unnormalised
from ..solvers.base import Solution
from .density import Density, density_of
from .fitted_terms import columns_read, effect_columns, smooth_terms
from .nesting import extra_names, likelihood_ratio, tested_names
from .smooths import SmoothPart, robust_covariance
from .summaries import is_relative

if TYPE_CHECKING:
    from ..engine.gam_result import Gam
    from ..inference.advice import Advice
    from .held_out import HeldOut
    from .normaliser_check import Anchoring, NormaliserCheck
    from .scores import PredictionScores

NO_MODEL = "This needs the function f, which is not stored: load with un.load(path, model=...)."


@final
@dataclass(frozen=True, eq=False)
class Fit:  # long: what can be asked of a result
    """Estimates of θ and the normalising constants, with their uncertainty.

    `theta` gives the parameters as the model knows them; `tidy()` a table; `summary()` a text; `log_density(y, x)` the
    normalised density; `save(path)` a folder that `un.load` reads.

    Example:
        >>> import unnorm as un
        >>> toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("a", "b"), un.Interval(-1, 1))
        >>> fit = un.fit(toy, un.transitions(un.datasets.toy_chain(200, 0.5, 5.0, rng=1)))
        >>> fit.n, fit.names, fit.converged
        (200, ('a', 'b'), True)
    """

    names: tuple[str, ...]  #: of the parameters
    estimate: np.ndarray  #: flat θ̂
    nu: np.ndarray  #: ν̂, one value, or one for each observation
    nu_se: np.ndarray | None  #: their errors, where they were estimated and are few
    loglik: float  #: 𝓛(θ̂), or the contrast's own log-likelihood where `is_likelihood` is False
    value: float  #: the objective at its maximum
    is_likelihood: bool  #: whether likelihood ratios and AIC mean something
    converged: bool  #: whether the maximum was found
    reason: str  #: why the solver stopped
    iterations: int  #: of the solver
    n: float  #: observations: Σ w, weights being frequencies; an int where it is whole
    n_rows: int  #: rows of data
    kind: Kind  #: of observations: "iid", "transitions" or "conditional"
    settings: Mapping[str, Any]  #: model, objective, normaliser and solver, in words
    notes: tuple[str, ...] = ()  #: sentences: what was dropped, and what a careful reader would want to know
    #: figures by name: reference points, constants, the solver's path
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None  #: of the reference points
    model: Unnormalised | None = None  #: f; None where a saved fit was loaded without it
    obs: Observations | None = field(default=None, repr=False)  #: what was fitted; not saved
    backend: Any = None  #: the user's kind of table, for those given back
    errors: ErrorParts | None = None  #: covariances of θ̂, sampling and reference error apart; None where unknown
    no_errors: str | None = None  #: why they are unknown
    assumes_model: bool = True  #: whether `covariance` does; else it comes from the scores themselves
    smooths: SmoothPart | None = None  #: smooth terms of f and χ
    evidence: Evidence | None = field(default=None, repr=False)  #: what `advise` reads, computed when asked for
    solution: Solution | None = field(default=None, repr=False)  #: what the solver found; not saved
    anchoring: Anchoring | None = None  #: of constants that follow θ; None for others
    constants: str | None = None  #: the verdict on the constants, a sentence; None where they were not checked
    constants_failed: bool = False  #: whether that check failed

    @property
    def anchored(self) -> bool:
        """Whether the constants follow θ, χ = −log Z + δ."""
        return self.anchoring is not None

    def __repr__(self) -> str:
        parts = (self.settings[part][part] for part in ("model", "objective", "normaliser"))
        n = f"n={number(self.n)}" + ("" if self.n == self.n_rows else f" in {self.n_rows:,} rows")
        return f"Fit({', '.join(parts)}; {n}{'' if self.converged else ', NOT CONVERGED'}; see .summary())"

    def __str__(self) -> str:
        return self.summary()

    @property
    def theta(self) -> Any:
        """The parameters: names → values, or the energy's own tree (names → values without the model)."""
        if self.model is not None:
            return self.model.named(self.names, self.estimate)
        return dict(zip(self.names, (float(value) for value in self.estimate)))

    @property
    def has_covariance(self) -> bool:
        """Whether `covariance`, and with it every standard error, is known; `no_errors` says why where it is not."""
        return self.errors is not None

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of θ̂, in the order of `names`."""
        return self._known_errors.total

    @property
    def _known_errors(self) -> ErrorParts:
        if self.errors is None:
            raise InputError(
                self.no_errors
                or f"The covariance of {len(self.names):,} parameters was not computed; name some: fit.errors_of([…])."
            )
        return self.errors

    @property
    def covariance_robust(self) -> np.ndarray:
        """Covariance of θ̂ from the scores themselves, valid where the model is wrong; by cluster with cluster=."""
        return robust_covariance(self._known_errors)[0]

    def _covariance(self, robust: bool) -> tuple[np.ndarray, float | None]:
        """The covariance that is asked for, and the degrees of freedom of its intervals."""
        return robust_covariance(self._known_errors) if flag(robust, "robust") else (self.covariance, self.df)

    @property
    def df(self) -> float | None:
        """Degrees of freedom of the intervals; None for the normal. Of errors that rest on clusters about C − 1, on the
        scores of n observations n − 1 where these are few."""
        single = is_relative(self) and "clusters" not in self.diagnostics
        if self.assumes_model or single or self._known_errors.robust is None:
            return None
        return self._known_errors.robust.df

    @property
    def se(self) -> np.ndarray:
        """Standard errors of θ̂."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def aic(self) -> float:
        """−2𝓛 + 2 edf; fits that are not likelihoods are compared by `ncic` or `held_out`."""
        if not self.is_likelihood:
            raise InputError(
                "AIC needs the likelihood itself, and this objective's maximum is not that of the likelihood (it used "
                "reference points, or constants that do not normalise every context): compare by fit.ncic, or by "
                "fit.held_out(obs)."
            )
        if is_relative(self):
            raise InputError(
                "AIC needs weights that are counts, and weights='relative' are not: compare by fit.held_out(obs)."
            )
        edf = len(self.names) if self.smooths is None else float(sum(self.smooths.edf.values())) + len(self.names)
        return -2 * self.loglik + 2 * edf

    def tidy(self, level: float = 0.95, robust: bool = False) -> Any:
        """A table: term, estimate, se, lower, upper; in the kind of frame that the data came in.

        With reference points also the parts of se, se_sampling and se_reference. These assume the model: `robust=True`,
        which takes se from `covariance_robust`, leaves them out; with clusters its intervals are from Student's t on
        C − 1 degrees of freedom.

        Args:
            level: of the intervals.
            robust: whether errors come from the scores themselves, by cluster with cluster= on the objective.
        """
        from .._base.frames import to_native

        V, df = self._covariance(robust)
        se, z = np.sqrt(np.diag(V)), quantile(level, df)
        parts = {}
        if self.errors is not None and self.errors.points and not robust:
            both = (("se_sampling", self.errors.sampling), ("se_reference", self.errors.reference))
            parts = {name: np.sqrt(np.maximum(np.diag(V), 0.0)) for name, V in both}
        table = {
            "term": np.array(self.names),
            "estimate": self.estimate.copy(),
            "se": se,
            **parts,
            "lower": self.estimate - z * se,
            "upper": self.estimate + z * se,
        }
        return to_native(table, self.backend)

    def errors_of(
        self, which: str | Sequence[str], level: float = 0.95, simulated: int | None = None, rng: Rng = None
    ) -> Any:
        """As `tidy`, for the parameters named in `which`: where there are thousands of them, or too few observations.

        Args:
            which: names of parameters.
            level: of the intervals.
            simulated: draws of the model from which the spread of the scores is taken, for pseudo-likelihoods: errors
                that assume the model. None takes it from the scores of the observations.
            rng: for these draws.
        """
        from .chosen import errors_of

        return errors_of(self, which, level, simulated, rng)

    def summary(self) -> str:
        """The fit as a text for people."""
        from .summaries import fit_summary

        return fit_summary(self)

    @property
    def density(self) -> Density:
        """f̂ on any rows, and its normalising constants by quadrature."""
        if self.model is None:
            raise InputError(NO_MODEL)
        return density_of(self.model, self.estimate, self.smooths)

    def log_density(self, y: Any, x: Any = None) -> np.ndarray:
        """log p(y|x) at the estimate, normalised: f − log ∫ exp f; −inf outside Ω.

        Args:
            y: N outcomes (numbers, or rows); or observations, which have their own contexts.
            x: the previous points (transitions) or a mapping of covariates (regressions), N of each or one for all.
        """
        density = self.density
        from .new_points import contexts_once, new_observations

        obs = placed(density.domain, new_observations(self.kind, y, x, self.settings["observations"]))
        inside = within(density.domain, obs, obs.outcome)
        out = np.full(obs.n, -np.inf)
        if inside.any():
            obs = obs.take(inside)
            log_z = density.log_z(contexts_once(obs), rule_order(self))
            out[inside] = density.log_f(obs, obs.outcome, np.arange(obs.n)) - log_z
        return out

    @property
    def edf(self) -> dict[str, float]:
        """Effective degrees of freedom of each smooth term."""
        return dict(smooth_terms(self).edf)

    def effect(
        self, label: str, at: Any = None, level: float = 0.95, centre: str = "rows", robust: bool = False
    ) -> Any:
        """One term's effect as a table: its covariates, estimate, se, se_sampling, se_reference, lower, upper.

        The parts of se, se_sampling and se_reference, assume the model: `robust=True` leaves them out.
        An effect is known up to a constant, which the normaliser absorbs; `centre` fixes it, and the band with it.

        Args:
            label: as in `edf`, e.g. "s(angle)".
            at: a table of covariate values (or an array where there is one); default an even grid over the data.
            level: of the pointwise band.
            centre: where the effect averages to zero: over all "rows" that were fitted, which with k reference points
                for each observation are mostly reference points (mgcv's convention); or over the "observations".
            robust: se and band from the scores themselves, by cluster with cluster= on the objective.
        """
        from .._base.frames import to_native

        return to_native(effect_columns(self, label, at, level, centre, robust), self.backend)

    def contrast(self, at1: Any, at2: Any, level: float = 0.95, robust: bool = False) -> Any:
        """f̂ at some values of the covariates less f̂ at others, with its error: in step selection log RSS, the log of
        how many times likelier a step to at1 is than one to at2, both being equally available (Avgar et al. 2017).

        Args:
            at1, at2: tables, or covariate → value or values; one row serves for all rows of the other. Covariates that
                are not given are held at their median (the commonest level) over the observations.
            level: of the intervals.
            robust: se from the scores themselves, by cluster with cluster= on the objective.

        Returns a table: what differs, log_rss, se, lower, upper, and rss, rss_lower, rss_upper, their exponentials.
        """
        from .._base.frames import to_native
        from .contrasts import contrast_columns

        return to_native(contrast_columns(self, at1, at2, level, robust), self.backend)

    def rows(self) -> Any:
        """The rows that were fitted as a table, for other software: observations and the points they were compared
        with.

        Columns: case (1 for an observation, 0 for a reference point), stratum (the observation whose context the row
        has), outcome and context columns, the covariates of f, and offset: what was added to f, −log q(y|x) among it. A
        conditional logistic regression of case on the covariates with this offset, strata by stratum, gives the
        estimates of `un.Ranking`.
        """
        from .._base.frames import to_native
        from .case_control import case_control

        return to_native(case_control(self), self.backend)

    def advise(self) -> Advice:
        """What the reference points cost, how many would do, whether they lie too far from the data; and NCIC.

        Computed once, when first asked for, which takes a while where there are many rows; saved if it was asked for.
        """
        from ..inference.advice import advise
        from .evidence import known_evidence

        advice = advise(self.settings["objective"]["objective"], self.diagnostics, known_evidence(self))
        if not self.constants_failed:
            return advice
        first = f"The constants come first, as no number of points mends them. {self.constants}"
        return replace(advice, sentences=(first, *advice.sentences))

    @property
    def ncic(self) -> float:
        """NCIC = −2 𝓡 + 2 tr(Î Ĵ⁻¹) (Matsuda, Uehara & Hyvärinen 2021), for models on the same reference points."""
        from .evidence import ncic

        return ncic(self)

    def check_normaliser(
        self, contexts: int = 200, obs: Observations | None = None, order: int | None = None
    ) -> NormaliserCheck:
        """χ̂(x) (or ν̂_t) against −log ∫ exp f̂(y|x) dy by quadrature: numbers, a verdict, and `.plot()`.

        Anchored constants follow f̂ by construction: `level` is δ̂, `shape` the error of the rule they were fitted with
        (at other observations there is none), and the verdict rests on the rule and on tests that δ is constant.

        Args:
            contexts: at most so many, spread over the data.
            obs: whose contexts; default those that were fitted (a loaded fit has none).
            order: of the quadrature rule; default the domain's own.
        """
        from .constants import check_constants

        return check_constants(self, contexts, obs, order)

    def held_out(self, obs: Observations, order: int | None = None, rng: Rng = 0) -> HeldOut:
        """Log-likelihood of new observations, normalised by quadrature, and bits for each against the reference.

        Args:
            obs: the new observations.
            order: of the quadrature rule; default the domain's own.
            rng: for domains without a rule or a list of states, where log Z is estimated from the reference's points.
        """
        from .draws import reference_on
        from .held_out import held_out

        density = self.density
        proposal = reference_on(density.domain, self.diagnostics.get("law"))
        return held_out(density, obs, proposal, rule_order(self) if order is None else order, rng, order is None)

    def scores(
        self,
        obs: Observations,
        baseline: Observations | None = None,
        by: Sequence[str] | None = None,
        level: float = 0.95,
        order: int | None = None,
    ) -> PredictionScores:
        """Information gain over the uniform law and over a centre bias, NSS and AUC, at all of these observations.

        Args:
            obs: points in the plane, best those that were not fitted.
            baseline: what the centre bias is fitted to; default the observations of the fit (a loaded fit has none).
            by: grouping columns within which points may depend on each other; default all of them.
            level: of the intervals.
            order: of the quadrature rule; default 24.

        Example:
            >>> import unnorm as un
            >>> obs = un.transitions(un.datasets.eye(), y=("x", "y"), order="fix", group=("subject", "image"))
            >>> obs = obs.take(obs.group["subject"] <= 2)
            >>> train, test = obs.take(obs.group["image"] % 2 == 0), obs.take(obs.group["image"] % 2 == 1)
            >>> model = un.Additive("s(step, k=8) + s(dcenter, k=6)", un.Box((0, 800), (0, 600)))
            >>> found = un.fit(model, train, un.Logistic(per_point=5), rng=1).scores(test)
            >>> found["information gain over uniform"][0] > found["information gain over centre bias"][0] > 0
            True
        """
        from .scores import prediction_scores

        training = self.obs if baseline is None else baseline
        columns = None if self.smooths is None else self.smooths.covariates
        return prediction_scores(self.density, obs, training, by, level, 24 if order is None else order, columns)

    def beside(self, response: str, terms: str | None = None, random: Sequence[str] = (), **options: Any) -> Gam:
        """A gam of another outcome of the fitted points on the same covariates, as fit.beside("log(duration)").

        Args:
            response: a column (`beside=` of un.transitions, or of the context), or a function of one.
            terms: other effects than those of f.
            random: columns with an effect at random, as ("subject",).
            options: of `un.gam`.
        """
        from .beside import beside

        if self.model is None or self.obs is None:
            raise InputError("A loaded fit has no observations: fit again, or use un.gam on a table of covariates.")
        return beside(self.model, self.obs, response, terms, random, **options)

    def simulate(
        self,
        n: int,
        *,
        x0: Any = None,
        x: Any = None,
        chains: int | None = None,
        bound: float | None = None,
        rng: Rng = None,
    ) -> Any:
        """Draws from the fitted p(y|x), as a table of the data's kind.

        IID: n outcomes. Regressions: n outcomes for each row of `x`. Chains: n steps of each, with columns `chain` and
        `step`, the starting points first, so that `un.transitions(table, y=…, order="step", group="chain")` reads them.

        Args:
            n: as above.
            x0: the first points of each chain, in the order of time; default drawn from the observed contexts.
            x: covariates: a table or name → values; of chains, one value, one per chain or one per step.
            chains: how many; default as many as `x0` has.
            bound: an upper bound of f, for rejection; default estimated, and checked at every draw.
            rng: seed or generator.
        """
        from .._base.frames import to_native
        from .draws import reference_on
        from .simulation import Shape, simulated

        density = self.density
        shape = Shape.of(self.kind, self.settings["observations"], columns_read(self), density.domain.key)
        proposal = reference_on(density.domain, self.diagnostics.get("law"))
        found = simulated(
            density, shape, n, x0=x0, x=x, chains=chains, bound=bound, proposal=proposal, observed=self.obs, rng=rng
        )
        return to_native(found.columns, self.backend)

    def plot(self, terms: Any = None, ax: Any = None, level: float = 0.95) -> Any:
        """Intervals of the parameters, or the effects of smooth terms with bands and maps.

        Args:
            terms: labels of the effects to draw; default all of f.
            ax: where to draw; with one term, or parameters only. Returns the Axes, or (Figure, axes) for many panels.
            level: of the intervals.
        """
        from . import plots

        part = self.smooths
        curves = part is not None and any(not part.term(label).parametric for label in part.model_labels)
        if part is None or not (curves or terms is not None):
            return plots.intervals(self.names, self.estimate, self.se, level, ax)
        return plots.effects(part, terms, level, ax)

    def likelihood_ratio(self, smaller: Fit) -> NestedTest:
        """Test of a model nested in this one, fitted to the same observations; both must be likelihoods.

        For fits with reference points, whose contrast is no likelihood of the data, use `wald`.

        Args:
            smaller: the nested model's fit.
        """
        return likelihood_ratio(self, smaller)

    def wald(self, which: Fit | str | Sequence[str], robust: bool = False) -> NestedTest:
        """Wald test that some parameters are zero, θ̂ᵀ V⁻¹ θ̂ with V the total covariance: any objective.

        Args:
            which: their names, or a smaller fit, in which they are missing.
            robust: V from the scores themselves; by cluster with cluster= on the objective, then an F test.
        """
        names = extra_names(self, which) if isinstance(which, Fit) else tested_names(self, which)
        V, df = self._covariance(robust)
        index = np.array([self.names.index(name) for name in names])
        return tests.wald(self.estimate[index], V[np.ix_(index, index)], df)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit as a folder of JSON and npz (no code); `un.load(path, model=…)` reads it.

        `covariance_robust` is computed if it was not yet; `advise` and `ncic` are saved if they were asked for.

        Args:
            path: of the folder.
        """
        from .saving import save

        save(self, path)


def rule_order(fit: Fit) -> int | None:
    """Of the rule that normalises f̂: the fit's own, or the domain's where the fit needed less than that."""
    order = fit.diagnostics.get("order")
    default = None if fit.model is None else fit.model.domain.default_order
    return order if not fit.anchored or order is None or default is None else max(order, default)
