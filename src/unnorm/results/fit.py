"""`Fit`: the frozen result of an estimation, and what can be asked of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._base import storage
from .._base.numerics import Rng, floats
from .._version import __version__
from ..data.observations import Kind, Observations
from .density import Density, density_of
from ..errors import InputError, listing, unknown
from ..models.base import Model, Unnormalised
from ..inference.evidence import Later
from ..inference.sandwich import ErrorParts
from .smooths import NOT_CLUSTERED, SmoothPart

if TYPE_CHECKING:
    from ..inference.advice import Advice
    from .held_out import HeldOut
    from .normaliser_check import NormaliserCheck

MOST_COVARIANCE = 2000  # parameters; above this a dense covariance is refused


@dataclass(frozen=True)
class NestedTest:
    """Likelihood-ratio test of a smaller model inside a larger one, 2 (𝓛₁ − 𝓛₀) ~ χ²_df."""

    statistic: float
    df: int
    p_value: float

    def __str__(self) -> str:
        return f"likelihood ratio {self.statistic:.4g} on {self.df} df, p = {self.p_value:.3g}"


@final
@dataclass(frozen=True, eq=False)
class Fit:
    """Estimates of θ and the normalising constants, with their uncertainty.

    `theta` gives the parameters as the model knows them; `tidy()` a table; `summary()` a text; `log_density(y, x)` the
    normalised density; `save(path)` a folder that `un.load` reads.
    """

    names: tuple[str, ...]
    estimate: np.ndarray  # flat θ̂
    nu: np.ndarray  # ν̂, one value, or one for each observation
    nu_se: np.ndarray | None
    loglik: float  # 𝓛(θ̂)
    value: float  # the objective at its maximum
    converged: bool
    reason: str
    iterations: int
    n: int  # observations
    kind: Kind
    settings: Mapping[str, Any]  # model, objective, normaliser and solver, in words
    notes: tuple[str, ...] = ()
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    model: Unnormalised | None = None
    obs: Observations | None = field(default=None, repr=False)  # what was fitted; not saved
    backend: Any = None
    errors: ErrorParts | None = None  # where reference points were drawn: sampling and reference error apart
    smooths: SmoothPart | None = None  # smooth terms of f and χ
    evidence: Later | None = field(default=None, repr=False)  # what `advise` reads, worked out when asked for
    _covariance: np.ndarray | None = None

    def __repr__(self) -> str:
        parts = (self.settings[part][part] for part in ("model", "objective", "normaliser"))
        return f"Fit({', '.join(parts)}; n={self.n}{'' if self.converged else ', NOT CONVERGED'}; see .summary())"

    def __str__(self) -> str:
        return self.summary()

    @property
    def theta(self) -> Any:
        """The parameters: names → values, or the energy's own tree (key paths → values without the model)."""
        if isinstance(self.model, Model):
            return self.model.unflatten(self.estimate)
        return dict(zip(self.names, (float(value) for value in self.estimate)))

    @property
    def has_covariance(self) -> bool:
        """Whether `covariance`, and with it every standard error, is at hand: not for networks."""
        return self._covariance is not None

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of θ̂, in the order of `names`."""
        if self._covariance is None:
            raise InputError(
                f"The covariance of {len(self.names)} parameters was not computed (the limit is {MOST_COVARIANCE}); "
                "use a model with fewer parameters, or the draws of un.sample."
            )
        return self._covariance

    @property
    def se(self) -> np.ndarray:
        """Standard errors of θ̂."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def is_likelihood(self) -> bool:
        """Whether `loglik` is 𝓛(θ̂); with reference points it is the contrast's own log-likelihood instead."""
        return self.settings["objective"]["objective"] in ("Exact", "Poisson")

    @property
    def aic(self) -> float:
        """−2𝓛 + 2 edf; fits with reference points are compared by `ncic`."""
        if not self.is_likelihood:
            raise InputError(
                "AIC needs the likelihood itself, and this fit used reference points: compare by fit.ncic."
            )
        edf = len(self.names) if self.smooths is None else float(sum(self.smooths.edf.values())) + len(self.names)
        return -2 * self.loglik + 2 * edf

    @property
    def covariance_robust(self) -> np.ndarray:
        """Covariance of θ̂ that allows dependence within clusters: cluster= on the objective."""
        if self.errors is None or self.errors.robust is None:
            raise InputError(NOT_CLUSTERED)
        return self.errors.robust

    def tidy(self, level: float = 0.95, robust: bool = False) -> Any:
        """A table: term, estimate, se, lower, upper; in the kind of frame that the data came in.

        With reference points se_sampling and se_reference too. `robust=True` takes se from `covariance_robust`.
        """
        from .._base.frames import to_native
        from .._base.intervals import normal_quantile

        z = normal_quantile(level)
        se = np.sqrt(np.diag(self.covariance_robust)) if robust else self.se
        parts = {}
        if self.errors is not None:
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

    def summary(self) -> str:
        """The fit as a text for people."""
        from .summaries import fit_summary

        return fit_summary(self)

    @property
    def density(self) -> Density:
        """f̂ on any rows, and its normalising constants by quadrature."""
        if self.model is None:
            raise InputError("This needs the function f, which is not stored: load with un.load(path, model=...).")
        return density_of(self.model, self.estimate, self.smooths)

    def log_density(self, y: Any, x: Any = None) -> np.ndarray:
        """log p(y|x) at the estimate, normalised: f − log ∫ exp f; −inf outside Ω.

        Args:
            y: N outcomes (numbers, or rows).
            x: the previous points (transitions) or a mapping of covariates (regressions), N of each or one for all.
        """
        density = self.density
        obs = new_observations(self.kind, y, x, self.settings["observations"])
        inside = density.domain.contains(obs.outcome)
        out = np.full(obs.n, -np.inf)
        if inside.any():
            obs = obs.take(inside)
            log_z = density.log_z(obs, self.diagnostics.get("order"))
            out[inside] = density.log_f(obs, obs.outcome, np.arange(obs.n)) - log_z
        return out

    @property
    def edf(self) -> dict[str, float]:
        """Effective degrees of freedom of each smooth term."""
        return dict(self._need_smooths().edf)

    def effect(
        self, label: str, at: Any = None, level: float = 0.95, centre: str = "rows", robust: bool = False
    ) -> Any:
        """One term's effect as a table: its covariates, estimate, se, se_sampling, se_reference, lower, upper.

        An effect is known up to a constant, which the normaliser absorbs; `centre` fixes it, and the band with it.

        Args:
            label: as in `edf`, e.g. "s(angle)".
            at: a table of covariate values (or an array where there is one); default an even grid over the data.
            level: of the pointwise band.
            centre: where the effect averages to zero: over all "rows" that were fitted, which with k reference points
                for each observation are mostly reference points (mgcv's convention); or over the "observations".
            robust: se and band that allow dependence within clusters (cluster= on the objective).
        """
        from .._base.frames import to_native

        return to_native(self._effect(label, at, level, centre, robust), self.backend)

    def _effect(self, label: str, at: Any, level: float, centre: str, robust: bool = False) -> dict[str, np.ndarray]:
        part = self._need_smooths()
        if centre == "rows":
            return part.effect(label, at, level, robust=robust)
        if centre != "observations":
            raise InputError(unknown("centre", centre, ("rows", "observations")))
        if self.model is None or self.obs is None:
            raise InputError("A loaded fit has no observations to centre over: centre='rows', or fit again.")
        names = part.term(label).covariates
        return part.effect(label, at, level, self.model.covariates(self.obs).values(names, self.obs), robust)

    def _need_smooths(self) -> SmoothPart:
        if self.smooths is None:
            raise InputError("This fit has no smooth terms; its parameters are in `theta` and `tidy()`.")
        return self.smooths

    def advise(self) -> Advice:
        """What the reference points cost, how many would do, whether they lie too far from the data; and NCIC.

        It takes a while where there are many rows, is worked out once, and is saved with the fit if it was asked for.
        """
        from ..inference.advice import advise

        return advise(self.settings["objective"]["objective"], self.diagnostics, self._evidence() or self._shares())

    @property
    def ncic(self) -> float:
        """NCIC = −2 𝓡 + 2 tr(Î Ĵ⁻¹) (Matsuda, Uehara & Hyvärinen 2021), for models on the same reference points."""
        found = self._evidence().get("ncic")
        if found is None and self._unasked:
            raise InputError("NCIC was not asked for before this fit was saved: ask fit.ncic first, then fit.save.")
        if found is None:
            remedy = "compare by fit.aic" if self.is_likelihood else "compare by fit.held_out(obs)"
            raise InputError(
                "NCIC needs reference points, and a normaliser that does not grow with the data (not PerContext) or "
                f"none at all (Ranking); a joint fit of levels has none either: {remedy}."
            )
        return float(found)

    def _evidence(self) -> Mapping[str, Any]:
        return (self.diagnostics.get("evidence") or {}) if self.evidence is None else self.evidence()

    @property
    def _unasked(self) -> bool:
        """Whether the fit was saved before its evidence was asked for."""
        return self.evidence is None and self.diagnostics.get("evidence", ()) is None

    def _shares(self) -> Mapping[str, Any]:
        """The part of the evidence that a loaded fit has in any case: the reference points' share of each variance."""
        if not self._unasked:
            return {}
        if self.smooths is not None and self.smooths.model_labels:
            names = self.smooths.model_labels
            tables = [self.smooths.effect(label) for label in names]
            share = [float(np.sum(t["se_reference"] ** 2) / max(np.sum(t["se"] ** 2), 1e-300)) for t in tables]
            return {"names": list(names), "share": share}
        if self.errors is None:
            return {}
        total = np.maximum(np.diag(self.errors.total), 1e-300)
        return {"names": list(self.names), "share": (np.diag(self.errors.reference) / total).tolist()}

    def check_normaliser(
        self, contexts: int = 200, obs: Observations | None = None, order: int | None = None
    ) -> NormaliserCheck:
        """χ̂(x) (or ν̂_t) against −log ∫ exp f̂(y|x) dy by quadrature: numbers, a verdict, and `.plot()`.

        Args:
            contexts: at most so many, spread over the data.
            obs: whose contexts; default those that were fitted (a loaded fit has none).
            order: of the quadrature rule; default the domain's own.
        """
        from .draws import reference_on
        from .normaliser_check import check_normaliser

        density, own = self.density, obs is None
        obs = self.obs if obs is None else obs
        if obs is None:
            raise InputError("A loaded fit has no observations: pass obs=, e.g. those that were fitted.")
        chi = self.nu
        if self.smooths is not None and self.smooths.normaliser_labels and not own:
            chi = self._chi(self.smooths, obs)
        free = self.nu.size > 1 and (self.smooths is None or not self.smooths.normaliser_labels)
        order = self.diagnostics.get("order") if order is None else order
        proposal = reference_on(density.domain, self.diagnostics.get("law"))
        return check_normaliser(density, obs, chi, contexts, order, free and not self.is_likelihood, proposal)

    def _chi(self, part: SmoothPart, obs: Observations) -> np.ndarray:
        assert self.model is not None
        names = dict.fromkeys(name for label in part.normaliser_labels for name in part.term(label).covariates)
        return part.chi(self.model.covariates(obs).values(names, obs), obs.n)

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
        return held_out(density, obs, proposal, self.diagnostics.get("order") if order is None else order, rng)

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
            x: covariates: a table or name → values; of chains, one value, one a chain or one a step.
            chains: how many; default as many as `x0` has.
            bound: an upper bound of f, for rejection; default estimated, and checked at every draw.
            rng: seed or generator.
        """
        from .._base.frames import to_native
        from .draws import reference_on
        from .simulation import Shape, simulated

        density = self.density
        shape = Shape.of(self.kind, self.settings["observations"], self._needed())
        proposal = reference_on(density.domain, self.diagnostics.get("law"))
        found = simulated(
            density, shape, n, x0=x0, x=x, chains=chains, bound=bound, proposal=proposal, observed=self.obs, rng=rng
        )
        return to_native(found.columns, self.backend)

    def _needed(self) -> tuple[str, ...] | None:
        """The columns that f's terms read, through the user's own covariates too; None where f is a function."""
        if self.smooths is None or not self.smooths.model_labels or isinstance(self.model, Model):
            return None
        own = {one.name: one.needs for one in getattr(self.model, "covariate_objects", ())}
        names = [name for label in self.smooths.model_labels for name in self.smooths.term(label).covariates]
        for name in names:  # grows as it goes
            names += [need for need in own.get(name, ()) if need not in names]
        return tuple(names)

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
        """Test of a model nested in this one, fitted to the same observations."""
        from scipy.special import chdtrc

        df = len(self.names) - len(smaller.names)
        new = [name for name in smaller.names if name not in self.names]
        if df < 1 or new:
            raise InputError(
                "likelihood_ratio needs a smaller model whose parameters are all in this one; "
                f"this one has {listing(self.names)}, the other {listing(smaller.names)}."
            )
        if smaller.n != self.n:
            raise InputError(f"The fits must be to the same observations; they have {self.n} and {smaller.n}.")
        statistic = 2 * (self.loglik - smaller.loglik)
        return NestedTest(float(statistic), df, float(chdtrc(df, max(statistic, 0.0))))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit as a folder of JSON and npz (no code); `un.load(path, model=…)` reads it.

        Nothing is worked out for it: `advise` and `ncic` are saved if they were asked for.
        """
        diagnostics = dict(self.diagnostics)
        if self.evidence is not None:
            diagnostics["evidence"] = self.evidence.known
        about = {
            "unnorm": __version__,
            "class": "Fit",
            "names": list(self.names),
            "loglik": self.loglik,
            "value": self.value,
            "converged": self.converged,
            "reason": self.reason,
            "iterations": self.iterations,
            "n": self.n,
            "kind": self.kind,
            "settings": self.settings,
            "notes": list(self.notes),
            "diagnostics": diagnostics,
            "seed": self.seed,
        }
        arrays = {"estimate": self.estimate, "nu": self.nu}
        if self.nu_se is not None:
            arrays["nu_se"] = self.nu_se
        if self._covariance is not None:
            arrays["covariance"] = self._covariance
        if self.errors is not None:
            arrays |= {"errors.sampling": self.errors.sampling, "errors.reference": self.errors.reference}
            if self.errors.robust is not None:
                arrays["errors.robust"] = self.errors.robust
        if self.smooths is not None:
            about["smooths"], more = self.smooths.save()
            arrays |= more
        storage.write_folder(path, about, arrays)


def load(path: str | os.PathLike[str], model: Unnormalised | None = None) -> Fit:
    """Read a saved fit. With `model`, everything works; without it, numbers and tables do.

    Args:
        path: the folder that `Fit.save` wrote.
        model: the model that was fitted; its names and domain must match.
    """
    about, arrays = storage.read_folder(path)
    if about.get("class") != "Fit":
        raise InputError(f"{os.fspath(path)} holds a {about.get('class', 'result')}, not a Fit; read it with un.load.")
    try:
        fit = Fit(
            names=tuple(about["names"]),
            estimate=arrays["estimate"],
            nu=arrays["nu"],
            nu_se=arrays.get("nu_se"),
            loglik=float(about["loglik"]),
            value=float(about["value"]),
            converged=bool(about["converged"]),
            reason=str(about["reason"]),
            iterations=int(about["iterations"]),
            n=int(about["n"]),
            kind=about["kind"],
            settings=about["settings"],
            notes=tuple(about["notes"]),
            diagnostics=about["diagnostics"],
            seed=about["seed"],
            errors=_errors(arrays),
            smooths=SmoothPart.load(about["smooths"], arrays) if "smooths" in about else None,
            _covariance=arrays.get("covariance"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"The saved fit {os.fspath(path)} is damaged: {error!r} is missing or malformed.") from error
    if model is None:
        return fit
    saved, given = fit.settings["model"], model.to_dict()
    if differ := [key for key in {**saved, **given} if saved.get(key) != given.get(key)]:
        which = "; ".join(f"{key}: saved {saved.get(key)!r}, given {given.get(key)!r}" for key in differ)
        raise InputError(f"The model given does not match the saved fit: {which}.")
    return replace(fit, model=model)


def _errors(arrays: Mapping[str, np.ndarray]) -> ErrorParts | None:
    if "errors.sampling" not in arrays or "covariance" not in arrays:
        return None
    robust = arrays.get("errors.robust")
    return ErrorParts(arrays["covariance"], arrays["errors.sampling"], arrays["errors.reference"], (), robust)


def new_observations(kind: Kind, y: Any, x: Any, about: Mapping[str, Any]) -> Observations:
    """New points as observations of the kind that was fitted."""
    names = tuple(about["outcome_names"])
    outcome = floats(y, "y")
    outcome = outcome.reshape(-1, 1) if len(names) == 1 else np.atleast_2d(outcome)
    if outcome.shape[1] != len(names):
        raise InputError(f"y must have {len(names)} column(s) ({listing(names)}); got shape {np.shape(y)}.")
    n = outcome.shape[0]
    if kind == "iid":
        return Observations("iid", outcome, names)
    if x is None:
        raise InputError(
            "x is needed: the model was fitted with a context. Pass the previous points or the covariates."
        )
    if kind == "conditional" or isinstance(x, Mapping):
        context = {name: np.broadcast_to(np.asarray(values), (n,)).copy() for name, values in dict(x).items()}
        missing = [name for name in about["context_names"] if name not in context]
        if missing:
            raise InputError(f"x must give {listing(about['context_names'])}; missing {listing(missing)}.")
    else:
        lags, d = int(about["lags"]), len(names)
        previous = floats(x, "x").reshape(-1, lags * d)
        previous = np.broadcast_to(previous, (n, lags * d)) if len(previous) == 1 else previous
        if previous.shape != (n, lags * d):
            raise InputError(f"x must have one row for each y ({n}) or one for all; got shape {np.shape(x)}.")
        suffixes = ["_prev" if lag == 1 else f"_prev{lag}" for lag in range(1, lags + 1)]
        labels = [name + suffix for suffix in suffixes for name in names]
        context = {label: previous[:, j].copy() for j, label in enumerate(labels)}
        if about["extra"]:
            raise InputError(
                f"The model's context has extra columns: pass x as a mapping of {listing(about['context_names'])}."
            )
    return Observations(kind, outcome, names, context, lags=int(about["lags"]), extra=tuple(about["extra"]))
